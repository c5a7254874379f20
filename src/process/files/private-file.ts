import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { deleteTree } from './delete-tree.ts'
import { liveness } from '../identity.ts'

export type PrivateFile = {
  /** Outside every environment, so it can't end up in a commit. */
  readonly directory: string
  readonly self: ProcessIdentity
  readonly name: string
  readonly text: string
}

/** Creates a file that only our user can read, and deletes it after `work`. */
export const withPrivateFile = async <T>(
  { directory, self, name, text }: PrivateFile,
  work: (file: string) => Promise<T>,
): Promise<T> => {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await removeAbandoned(directory)
  const own = await mkdtemp(join(directory, `${nameFor(self)}.`))
  try {
    const file = join(own, name)
    await writeFile(file, text, { mode: 0o600, flag: 'wx' })
    return await work(file)
  } finally {
    await deleteTree(own)
  }
}

/** The name identifies the owner, to tell a killed process's leftovers from files in use. */
const nameFor = ({ pid, startTime }: ProcessIdentity): string => `${pid}.${Buffer.from(startTime).toString('hex')}`

const removeAbandoned = async (directory: string): Promise<void> => {
  for (const name of await readdir(directory)) {
    const [, pid, start] = /^(\d+)\.([0-9a-f]+)\.[^.]+$/.exec(name) ?? []
    if (pid === undefined || start === undefined) continue
    const owner = { pid: Number(pid), startTime: Buffer.from(start, 'hex').toString() }
    if (liveness(owner) === 'dead') await deleteTree(join(directory, name))
  }
}
