import { lstat, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../../../../domain/missing.ts'
import { openUntrusted, readFully } from '../../../../process/files/read-untrusted.ts'
import { realParent } from './real-parent.ts'

/**
 * Whether `relativePath` is the same under both roots: the same bytes, or a link with the same target. Missing in one
 * of them, or reached through a link: not the same. Throws if unreadable.
 */
export const sameContent = async (rootA: string, rootB: string, relativePath: string): Promise<boolean> => {
  for (const root of [rootA, rootB]) {
    if ((await realParent(root, relativePath)).kind !== 'real') return false
  }
  const [a, b] = [join(rootA, relativePath), join(rootB, relativePath)]
  const [statA, statB] = [await unlessMissing(lstat(a)), await unlessMissing(lstat(b))]
  if (statA === undefined || statB === undefined) return false
  if (statA.isSymbolicLink() && statB.isSymbolicLink()) return (await readlink(a)) === (await readlink(b))
  return statA.isFile() && statB.isFile() && statA.size === statB.size && sameBytes(a, b)
}

const chunk = 256 * 1024

type Path = string | Buffer

export const sameBytes = (a: Path, b: Path): Promise<boolean> => compareBytes(a, b, { isPart: false })

/** Whether the first is the second or a prefix of it, as an interrupted write leaves it. */
export const isBeginningOf = (part: Path, whole: Path): Promise<boolean> => compareBytes(part, whole, { isPart: true })

const compareBytes = async (a: Path, b: Path, { isPart }: { readonly isPart: boolean }): Promise<boolean> => {
  await using fileA = await openUntrusted(a)
  await using fileB = await openUntrusted(b)
  if (fileA === undefined || fileB === undefined) return false
  const [bufferA, bufferB] = [Buffer.alloc(chunk), Buffer.alloc(chunk)]
  for (let position = 0; ; position += chunk) {
    const lengthA = await readFully(fileA, bufferA, position)
    const lengthB = await readFully(fileB, bufferB, position)
    const compared = isPart ? Math.min(lengthA, lengthB) : lengthB
    if (!bufferA.subarray(0, lengthA).equals(bufferB.subarray(0, compared))) return false
    if (lengthA < chunk) return true
  }
}
