import { constants } from 'node:fs'
import { lstat, open, readlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessMissing } from '../../domain/missing.ts'
import { realParent } from './real-parent.ts'

/**
 * Whether `relativePath` is the same under both roots: the same bytes, or a link with the same target.
 * Not there in one of them, or only through a link: not the same. What cannot be read is thrown.
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

const sameBytes = async (a: string, b: string): Promise<boolean> => {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW
  await using fileA = await open(a, flags)
  await using fileB = await open(b, flags)
  const [bufferA, bufferB] = [Buffer.alloc(chunk), Buffer.alloc(chunk)]
  for (let position = 0; ; position += chunk) {
    const readA = await readFully(fileA, bufferA, position)
    const readB = await readFully(fileB, bufferB, position)
    if (!readA.equals(readB)) return false
    if (readA.length < chunk) return true
  }
}

/** A read may give less than asked for without being at the end. */
const readFully = async (file: FileHandle, buffer: Buffer, position: number): Promise<Buffer> => {
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, position + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}
