import { lstatIfThere } from '../process/files/lstat-if-there.ts'
import { notAFile } from '../process/files/read-untrusted.ts'
import type { Git } from './door.ts'

/** One value of a configuration file. Works even if its repository is broken. */
export const readConfigFile = async (git: Git, file: string, key: string): Promise<string | undefined> => {
  const args = ['config', '--file', file, '--no-includes', '-z', '--get', key]
  const { stdout, exitCode } = await git.run({ operation: 'config', at: { cwd: '/' }, args, ok: [0, 1] })
  return exitCode === 0 ? stdout.replace(/\0$/, '') : undefined
}

/** Through a link, git would write into somebody else's file. */
export const writeConfigFile = async (git: Git, file: string, key: string, value: string): Promise<void> => {
  const found = lstatIfThere(file)
  if (found?.isSymbolicLink() === true) throw notAFile(file, found)
  const args = ['config', '--file', file, '--replace-all', key, value]
  await git.run({ operation: 'config', at: { cwd: '/' }, args, locks: true })
}
