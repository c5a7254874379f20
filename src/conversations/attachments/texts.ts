import { code, plain } from '../../commands/views/view.ts'
import type { NotFetched } from '../../runs/attachments/directory.ts'
import { MAX_FILE_BYTES, MAX_FILES, MAX_IMAGE_SIDE, MAX_MESSAGE_BYTES } from './fetch.ts'

/** In the thread. */
export const notFetchedNotice = (files: readonly NotFetched[]): string => {
  const { named, left } = shown(files)
  const list = named.map((one) => `${code(one.name, { chat: true, paint: plain })} (${whyNotFetched(one)})`).join(', ')
  return `Not passed to the agent: ${list}${left === 0 ? '' : `; and ${left} more`}.`
}

/** For the agent. */
export const notFetchedContext = (files: readonly NotFetched[]): string => {
  const { named, left } = shown(files)
  return [
    "Files that came with the message or its thread and that you don't have:",
    ...named.map((one) => `- ${JSON.stringify(one.name)}: ${whyNotFetched(one)}`),
    ...(left === 0 ? [] : [`- and ${left} more`]),
  ].join('\n')
}

/** A forwarded thread may have hundreds. */
const MOST_NAMED = 20

const shown = (files: readonly NotFetched[]): { readonly named: readonly NotFetched[]; readonly left: number } => ({
  named: files.slice(0, MOST_NAMED),
  left: Math.max(0, files.length - MOST_NAMED),
})

const whyNotFetched = ({ why }: NotFetched): string => {
  switch (why.kind) {
    case 'too-large':
      return `larger than ${megabytes(MAX_FILE_BYTES)}`
    case 'message-too-large':
      return `a message's files may have ${megabytes(MAX_MESSAGE_BYTES)} in total`
    case 'too-many':
      return `a message may have at most ${MAX_FILES} files`
    case 'kind-not-taken':
      return 'not a PNG, JPEG, GIF or WebP image, text or PDF'
    case 'damaged-image':
      return 'the image is damaged or incomplete'
    case 'too-many-pixels':
      return `larger than ${MAX_IMAGE_SIDE} × ${MAX_IMAGE_SIDE} pixels`
    case 'unsupported':
      return "Coppice can't fetch files here"
    case 'failed':
      return why.problem.replaceAll(/\s+/g, ' ')
  }
}

const megabytes = (bytes: number): string => `${bytes / 1024 / 1024} MB`
