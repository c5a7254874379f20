import type { MessageAttachment } from '../../../domain/message.ts'
import { withoutInvisible } from '../../../domain/text/visible.ts'
import { type Fields, isId, listOf, textIn } from './record.ts'

export type MessageFiles = {
  readonly attachments: readonly MessageAttachment[]
  /** Text that was too long for a message: Slack made a file of it, and it is part of what its author wrote. */
  readonly snippets: readonly MessageAttachment[]
}

/** The files of a message, and those of the messages that it forwards: Slack puts them into its attachments. */
export const filesOf = (message: Fields): MessageFiles => {
  const own = listOf(message['files'], MOST_FILES)
  const forwarded = listOf(message['attachments'], MOST_FILES).flatMap(({ files }) => listOf(files, MOST_FILES))
  const isSnippet = ({ mode }: Fields): boolean => mode === 'snippet'
  return {
    attachments: [
      ...own.filter((file) => !isSnippet(file)).flatMap((file) => attachmentOf(file)),
      ...forwarded.flatMap((file) => attachmentOf(file)).map((file) => ({ ...file, fromOthers: true as const })),
    ],
    snippets: own.filter((file) => isSnippet(file)).flatMap((file) => attachmentOf(file)),
  }
}

const MOST_FILES = 20

/** Deleted, or too old for the workspace's plan. */
const gone: readonly unknown[] = ['tombstone', 'hidden_by_limit']

/**
 * A file from another workspace in a shared channel has only its ID (`file_access: check_file_info`); the rest is asked
 * for when it is fetched.
 */
const attachmentOf = (file: Fields): MessageAttachment[] => {
  const { id, mode, mimetype, size } = file
  const reference = textIn(file['url_private_download']) || textIn(file['url_private']) || (isId(id) ? id : '')
  if (gone.includes(mode) || reference === '' || reference.length > 2_000) return []
  const name = textIn(file['name']) || textIn(file['title'])
  return [
    {
      name: withoutInvisible(name.slice(0, 200)).replaceAll('\n', ' ').trim() || 'file',
      ...(typeof mimetype === 'string' && mimetype.length <= 100 && { mediaType: mimetype }),
      ...(typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 && { bytes: size }),
      reference,
    },
  ]
}
