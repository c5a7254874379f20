import { lstatSync, mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { AgentAttachment } from '../../agents/agent.ts'
import { AppError } from '../../domain/errors.ts'
import { isMissing } from '../../domain/missing.ts'
import { deleteTree } from '../../process/files/delete-tree.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import { replaceFileSync, writeNewFileSync } from '../../process/files/replace-file.ts'
import { fileNameFor } from './file-name.ts'
import type { FileKind } from './kinds.ts'

/*
 * Files that came with messages: `<home>/attachments/<message>/`, and beside it `<message>.json`, written last, which
 * says what is there. Outside every environment, so that none ends up in a commit. An agent runs as our user and can
 * change them, so what is read back is checked like anything else it wrote.
 */

export type FetchedAttachments = {
  readonly files: readonly AgentAttachment[]
  readonly notFetched: readonly NotFetched[]
}

export type NotFetched = { readonly name: string; readonly why: NotFetchedReason }

const reasonKinds = [
  'too-large',
  'message-too-large',
  'too-many',
  'kind-not-taken',
  'damaged-image',
  'too-many-pixels',
  'unsupported',
] as const

export type NotFetchedReason =
  | { readonly kind: (typeof reasonKinds)[number] }
  /** The service or the network said no; in one clause, redacted. */
  | { readonly kind: 'failed'; readonly problem: string }

export type AttachmentContent = {
  readonly content: Uint8Array
  readonly is: FileKind
  /** Of an image, in pixels. */
  readonly longestSide?: number
  readonly fromOthers?: true | undefined
}

export type AttachmentDirectory = {
  /** What was fetched for the message before; undefined: nothing yet, or not completely. */
  load(): Promise<FetchedAttachments | undefined>
  /** Deletes what an interrupted attempt left. */
  clear(): Promise<void>
  add(name: string, file: AttachmentContent): AgentAttachment
  /** Records that everything was fetched or refused. */
  complete(fetched: FetchedAttachments): void
}

export const attachmentDirectory = (home: string, messageId: string): AttachmentDirectory => {
  const all = allIn(home)
  const directory = join(all, messageId)
  const record = join(all, `${messageId}.json`)
  const taken = new Set<string>()
  return {
    load: async () => {
      if (isElsewhere(all)) return undefined
      const text = await readUntrustedText(record).catch(() => undefined)
      return text === undefined ? undefined : recorded(text, directory)
    },
    clear: async () => {
      if (isElsewhere(all)) throw new AppError('unusable-file', `${all} isn't a directory`)
      taken.clear()
      rmSync(record, { force: true })
      await deleteTree(directory)
    },
    add: (name, { content, is, longestSide, fromOthers }) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      const path = join(directory, fileNameFor(name, is, taken))
      writeNewFileSync(path, content, { mode: 0o600 })
      const { byteLength: bytes } = content
      return {
        path,
        name,
        mediaType: is.mediaType,
        bytes,
        ...(longestSide !== undefined && { longestSide }),
        ...(fromOthers === true && { fromOthers }),
      }
    },
    complete: (fetched) => {
      mkdirSync(all, { recursive: true, mode: 0o700 })
      replaceFileSync(record, JSON.stringify(fetched), { mode: 0o600 })
    },
  }
}

/** Deletes the files of messages that are no longer stored. */
export const forgetAttachments = async (
  home: string,
  isStored: (messageId: string) => Promise<boolean>,
): Promise<number> => {
  const all = allIn(home)
  if (isElsewhere(all)) return 0
  const names = await listDirectory(Buffer.from(all)).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  const messages = new Set(names.map(({ name }) => /^([\w-]{1,100})(?:\.json)?$/.exec(name)?.[1]))
  let forgotten = 0
  for (const id of messages) {
    if (id === undefined || (await isStored(id))) continue
    await attachmentDirectory(home, id).clear()
    forgotten += 1
  }
  return forgotten
}

/** Behind a link would be other people's files, or a worktree in which ours would be committed. */
const isElsewhere = (all: string): boolean => lstatSync(all, { throwIfNoEntry: false })?.isDirectory() === false

const allIn = (home: string): string => join(home, 'attachments')

/** Only if all its files are still there, in this directory, with the sizes they had. */
const recorded = (text: string, directory: string): FetchedAttachments | undefined => {
  try {
    const { files, notFetched } = JSON.parse(text) as Record<keyof FetchedAttachments, readonly Fields[]>
    const found = { files: files.map(fileOf), notFetched: notFetched.map(notFetchedOf) }
    return found.files.every(({ path, bytes }) => isInside(path, directory) && sizeOf(path) === bytes)
      ? found
      : undefined
  } catch {
    return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

const fileOf = ({ path, name, mediaType, bytes, longestSide, fromOthers }: Fields): AgentAttachment => ({
  path: String(path),
  name: shortText(name),
  mediaType: shortText(mediaType),
  bytes: Number(bytes),
  ...(longestSide !== undefined && { longestSide: Number(longestSide) }),
  ...(fromOthers === true && { fromOthers }),
})

const notFetchedOf = ({ name, why }: Fields): NotFetched => {
  const { kind, problem } = why as Fields
  const known = reasonKinds.find((one) => one === kind)
  return {
    name: shortText(name),
    why: known === undefined ? { kind: 'failed', problem: shortText(problem) } : { kind: known },
  }
}

const shortText = (value: unknown): string => String(value).slice(0, 300)

const isInside = (path: string, directory: string): boolean =>
  join(directory, basename(path)) === path && !basename(path).startsWith('.')

const sizeOf = (path: string): number | undefined => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found?.isFile() === true ? found.size : undefined
}
