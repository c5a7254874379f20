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
 * The user's other programs, including agents, can read the environment that a process was started with for as long as
 * it runs: /proc/<pid>/environ on Linux, `ps -E` on macOS. Deleting a variable doesn't change what they see. So we copy
 * whatever agents don't get for our own use, and wipe it from the process.
 */

export type TakenEnvironment = {
  /** All variables. */
  readonly env: Env
  /** Names of secrets that others can still read. */
  readonly exposed: readonly string[]
}

export type TakeOptions = {
  /** Our own process in /proc. */
  readonly proc: string
  /** Re-executes this process with this environment and doesn't return; undefined where unsupported. */
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

/** What agents get anyway, and what Node and libraries read later; never a secret. */
const staysReadable = (name: string): boolean =>
  isAllowedVariable(name) || (!isSecretName(name) && /^(?:NODE|UV|OPENSSL|PG|DEBUG$|NO_COLOR$|FORCE_COLOR$)/.test(name))

/** Overwrites the taken variables where the kernel reads them. True when all of them are gone. */
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

/** Field 50 of proc(5). The command in field 2 may contain spaces and parentheses, so count from the last `)`. */
const environmentStart = (stat: string): number => {
  const start = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[50 - 3])
  if (!Number.isSafeInteger(start) || start <= 0) throw new Error("couldn't find the environment in /proc/self/stat")
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

/** Through a private file, since open files don't survive the restart. Deleted once read. */
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
  // Delete nothing more: the path comes from a variable that anyone could set.
  rmdirSync(dirname(file))
  return JSON.parse(text) as Env
}

const ownProcess = (): TakeOptions => {
  if (process.execve === undefined) return { proc: '/proc/self', restart: undefined }
  const { execPath, execArgv, argv } = process
  return {
    proc: '/proc/self',
    restart: (environment) => {
      process.removeAllListeners('warning') // the user can't act on "execve is an experimental feature"
      process.execve?.(execPath, [execPath, ...execArgv, ...argv.slice(1)], environment)
    },
  }
}
