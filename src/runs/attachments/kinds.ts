/** What an agent can be given. */
export type FileKind = {
  readonly mediaType: string
  /** The usual ones first. Agents choose by the extension how to read a file. */
  readonly extensions: readonly string[]
}

/** Decided by the content alone: names and declared types are the sender's. Undefined: not taken. */
export const kindOf = (content: Uint8Array): FileKind | undefined => {
  const image = imageOrPdf(content)
  if (image !== undefined) return image
  return isText(content) ? text : undefined
}

/** Whether a file that begins like this may be taken; for stopping a download early. */
export const mayBeTaken = (beginning: Uint8Array): boolean =>
  imageOrPdf(beginning) !== undefined || hasUtf16Mark(beginning) || !beginning.includes(0)

/** Extensions that make an agent expect something else than text. */
export const binaryExtensions = (): readonly string[] => signatures.flatMap(({ kind }) => kind.extensions)

const text: FileKind = { mediaType: 'text/plain', extensions: ['txt'] }

const ascii = (characters: string): readonly number[] => [...Buffer.from(characters, 'latin1')]

const signatures: readonly {
  readonly kind: FileKind
  readonly parts: readonly [at: number, bytes: readonly number[]][]
}[] = [
  { kind: { mediaType: 'image/png', extensions: ['png'] }, parts: [[0, ascii('\u0089PNG\r\n\u001a\n')]] },
  { kind: { mediaType: 'image/jpeg', extensions: ['jpg', 'jpeg'] }, parts: [[0, [0xff, 0xd8, 0xff]]] },
  { kind: { mediaType: 'image/gif', extensions: ['gif'] }, parts: [[0, ascii('GIF8')]] },
  {
    kind: { mediaType: 'image/webp', extensions: ['webp'] },
    parts: [
      [0, ascii('RIFF')],
      [8, ascii('WEBP')],
    ],
  },
  { kind: { mediaType: 'application/pdf', extensions: ['pdf'] }, parts: [[0, ascii('%PDF-')]] },
]

const imageOrPdf = (content: Uint8Array): FileKind | undefined =>
  signatures.find(({ parts }) => parts.every(([at, bytes]) => bytes.every((byte, n) => content[at + n] === byte)))?.kind

/** UTF-8, or UTF-16 as Windows programs write it. A NUL is in no text, and in nearly every other file. */
const isText = (content: Uint8Array): boolean => {
  if (hasUtf16Mark(content)) return true
  if (content.includes(0)) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(content)
    return true
  } catch {
    return false
  }
}

const hasUtf16Mark = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
