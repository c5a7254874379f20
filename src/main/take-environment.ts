import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Env } from '../domain/config/config.ts'
import { isAllowedVariable } from '../process/environment.ts'
import { isSecretName } from '../process/redaction/secret-names.ts'

/*
 * Programs of the same user, agents among them, can read the environment that a process was started with, for as long
 * as it lives: /proc/<pid>/environ on Linux, `ps -E` on macOS. Deleting a variable does not change what they see. So what
 * agents are not given is copied for our own use and then taken out of the process.
 */

export type TakenEnvironment = {
  /** All variables, for those who are to have them. */
  readonly env: Env
  /** Secrets that others can still read, by name. */
  readonly exposed: readonly string[]
}

export type TakeOptions = {
  /** Where Linux shows us our own process. */
  readonly proc: string
  /** Goes on as the same process with this environment, and does not return; undefined where the system cannot. */
  readonly restart: ((environment: Record<string, string>) => void) | undefined
}

export const takeEnvironment = ({ proc, restart }: TakeOptions = ownProcess()): TakenEnvironment => {
  const handed = process.env[HANDED_OVER]
  if (handed !== undefined) return { env: received(handed), exposed: [] }
  const env = { ...process.env }
  const taken = Object.keys(env).filter((name) => !staysReadable(name))
  for (const name of taken) delete process.env[name]
  if (wipe(proc)) return { env, exposed: [] }
  const exposed = taken.filter(isSecretName)
  if (exposed.length > 0 && restart !== undefined) handOver(env, restart)
  return { env, exposed }
}

/** What agents are given anyway, and what Node and libraries look up later; nothing of it is a secret. */
const staysReadable = (name: string): boolean =>
  isAllowedVariable(name) || (!isSecretName(name) && /^(?:NODE|UV|OPENSSL|PG|DEBUG$|NO_COLOR$|FORCE_COLOR$)/.test(name))

/** Overwrites the taken variables where the kernel reads them from. True when none of them is there any more. */
const wipe = (proc: string): boolean => {
  try {
    const start = environmentStart(readFileSync(join(proc, 'stat'), 'latin1'))
    const memory = openSync(join(proc, 'mem'), 'r+')
    try {
      for (const { from, to } of takenEntries(readFileSync(join(proc, 'environ')))) {
        writeSync(memory, Buffer.alloc(to - from), 0, to - from, start + from)
      }
    } finally {
      closeSync(memory)
    }
    return takenEntries(readFileSync(join(proc, 'environ'))).length === 0
  } catch {
    return false
  }
}

/** Field 50 of proc(5). The command in field 2 may hold spaces and parentheses, so fields count from the last `)`. */
const environmentStart = (stat: string): number => {
  const start = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[50 - 3])
  if (!Number.isSafeInteger(start) || start <= 0) throw new Error('the kernel does not say where the environment is')
  return start
}

const takenEntries = (block: Buffer): { from: number; to: number }[] => {
  const entries: { from: number; to: number }[] = []
  for (let from = 0; from < block.length;) {
    const end = block.indexOf(0, from)
    const to = end === -1 ? block.length : end
    const [name = ''] = block.toString('latin1', from, to).split('=')
    if (to > from && !staysReadable(name)) entries.push({ from, to })
    from = to + 1
  }
  return entries
}

const HANDED_OVER = 'COPPICE_ENVIRONMENT_FILE'

/** Through a private file, since an open one does not survive the restart. It is gone once it was read. */
const handOver = (env: Env, restart: NonNullable<TakeOptions['restart']>): void => {
  const file = join(mkdtempSync(join(tmpdir(), 'coppice-environment-')), 'variables.json')
  writeFileSync(file, JSON.stringify(env), { mode: 0o600, flag: 'wx' })
  const kept = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  restart({ ...Object.fromEntries(kept), [HANDED_OVER]: file })
}

const received = (file: string): Env => {
  delete process.env[HANDED_OVER]
  const text = readFileSync(file, 'utf8')
  unlinkSync(file)
  // Not more than this: where the path comes from, another could come from.
  rmdirSync(dirname(file))
  return JSON.parse(text) as Env
}

const ownProcess = (): TakeOptions => {
  if (process.execve === undefined) return { proc: '/proc/self', restart: undefined }
  const { execPath, execArgv, argv } = process
  return {
    proc: '/proc/self',
    restart: (environment) => {
      process.removeAllListeners('warning') // "execve is an experimental feature" is nothing the user can act on
      process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], environment)
    },
  }
}
