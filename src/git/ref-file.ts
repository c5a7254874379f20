import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isSha, type Sha } from '../domain/names.ts'

/**
 * Where a ref stands, read without starting git: for what is asked on every message. Only the files of git's ordinary
 * ref store; whatever is unusual (a reftable, a symbolic ref) is undefined here.
 */
export const readRefFile = async (commonDir: string, ref: string): Promise<Sha | undefined> => {
  const loose = (await textOf(join(commonDir, ref)))?.trim()
  if (loose !== undefined) return isSha(loose) ? loose : undefined
  const packed = await textOf(join(commonDir, 'packed-refs'))
  const line = packed?.split('\n').find((one) => one.endsWith(` ${ref}`))
  const sha = line?.slice(0, line.indexOf(' ')) ?? ''
  return isSha(sha) ? sha : undefined
}

const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined)
