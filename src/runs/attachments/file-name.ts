import { trimEndOf } from '../../domain/text/trim-end.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'
import { binaryExtensions, type FileKind } from './kinds.ts'

/**
 * A sender's name as it is shown: on one line, without characters that hide a part of it or change its order
 * (`report\u202efdp.exe` looks like `reportexe.pdf`).
 */
export const shownName = (sent: string): string =>
  withoutInvisible(sent.slice(0, 1_000))
    .replaceAll(/[\s\u2800]+/g, ' ')
    .trim()
    .slice(0, 200)
    .toWellFormed() || 'file'

/** In bytes, of which a file system takes 255; a number and an extension may be added. */
const LONGEST = 100

/**
 * A file name made of a sender's: no separators, no leading dot or dash (a hidden file, an option), no shell characters,
 * bounded, with the extension of what it really is, and none of those already taken.
 */
export const fileNameFor = (sent: string, kind: FileKind, taken: Set<string>): string => {
  const plain = sent
    .slice(-1_000)
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{N}._-]/gu, '_')
    .replace(/^[._-]{1,1000}/, '')
  const { stem, extension } = withExtension(plain, kind)
  for (let n = 1; ; n++) {
    const name = `${cut(stem)}${n === 1 ? '' : `-${n}`}.${extension}`
    // Some file systems ignore case.
    const key = name.toLowerCase()
    if (taken.has(key)) continue
    taken.add(key)
    return name
  }
}

const withExtension = (name: string, kind: FileKind): { readonly stem: string; readonly extension: string } => {
  const [, stem = name, given] = /^(.{0,1000})\.([A-Za-z0-9]{1,10})$/su.exec(name) ?? []
  const [usual = 'txt'] = kind.extensions
  const isFitting =
    given !== undefined &&
    (kind.mediaType === 'text/plain'
      ? !binaryExtensions().includes(given.toLowerCase())
      : kind.extensions.includes(given.toLowerCase()))
  return isFitting ? { stem, extension: given } : { stem: name, extension: usual }
}

const cut = (stem: string): string => {
  const bytes = Buffer.from(stem)
  const whole = bytes.length <= LONGEST ? stem : bytes.subarray(0, LONGEST).toString().replaceAll('\ufffd', '')
  return trimEndOf(whole, '.') || 'file'
}
