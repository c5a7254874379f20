import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

/** A process's program and arguments. Undefined if it has none, is gone or can't be read. */
export const argumentsOf = async (pid: number): Promise<readonly string[] | undefined> => {
  try {
    if (process.platform !== 'linux') return await argumentsByPs(pid)
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return text === '' ? undefined : text.replace(/\0$/, '').split('\0')
  } catch {
    return undefined
  }
}

/** `ps` joins them with spaces. */
const argumentsByPs = async (pid: number): Promise<readonly string[] | undefined> => {
  const { stdout } = await promisify(execFile)('/bin/ps', ['-ww', '-o', 'command=', '-p', String(pid)])
  const line = stdout.trim()
  return line === '' ? undefined : line.split(' ')
}
