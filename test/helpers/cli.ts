import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { built } from './built.ts'
import { makeSandbox, type Sandbox, type TestRepo } from './repo.ts'
import { needsOwnProcess, runWarm } from './warm-cli.ts'

const root = resolve(import.meta.dirname, '../..')

/** From source, as `npm run coppice` does. */
export const fromSource = join(root, 'src/main.ts')

export const main = built('src/main.ts')

export type CliResult = { readonly code: number | null; readonly out: string; readonly err: string }

/** A sandbox in which the real command line runs. */
export type CliWorld = {
  readonly box: Sandbox
  readonly home: string
  /** In a process that has loaded the program already, one command after the other. */
  run(cwd: string, ...args: string[]): Promise<CliResult>
  /** Its JSON answer; the exit code has to be the one that is expected. */
  json<T = Record<string, unknown>>(cwd: string, code: number, ...args: string[]): Promise<T>
  /** As a process of its own, for what depends on that: signals, two at once, the start itself. */
  start(cwd: string, ...args: string[]): ChildProcess
  readonly env: Record<string, string>
  /** Words before the program, such as those of nsenter: what is pushed here counts for every later start. */
  readonly through: string[]
  [Symbol.dispose](): void
}

/** Without spares unless asked: they are made by a process that outlives the command. */
export const makeCliWorld = (
  options: { readonly config?: string; readonly env?: Record<string, string> } = {},
): CliWorld => {
  const box = makeSandbox()
  const home = box.path('state')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(join(home, 'config.yaml'), options.config ?? 'worktrees:\n  spares: 0\n')
  const env = { ...box.env, COPPICE_HOME: home, ...options.env }
  const through: string[] = []
  const start = (cwd: string, ...args: string[]): ChildProcess => {
    const program = [process.execPath, main, ...args]
    // Another mount namespace has no idea of where we stand.
    const [command = '', ...rest] =
      through.length === 0 ? program : [...through, 'sh', '-c', 'cd "$0" && exec "$@"', cwd, ...program]
    return spawn(command, rest, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const run = (cwd: string, ...args: string[]): Promise<CliResult> =>
    through.length > 0 || needsOwnProcess(args) ? ended(start(cwd, ...args)) : runWarm({ cwd, env, args })
  return {
    box,
    home,
    env,
    through,
    start,
    run,
    json: async <T>(cwd: string, code: number, ...args: string[]) => {
      const result = await run(cwd, '--json', ...args)
      if (result.code !== code) {
        throw new Error(`exit code ${result.code} instead of ${code}\n${result.out}\n${result.err}`)
      }
      return JSON.parse(result.out) as T
    },
    [Symbol.dispose]: () => box[Symbol.dispose](),
  }
}

export const ended = async (child: ChildProcess): Promise<CliResult> => {
  let out = ''
  let err = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const code = await new Promise<number | null>((done) => child.once('close', (status) => done(status)))
  return { code, out, err }
}

export type EnvironmentJson = {
  id: string
  codebase: string
  work: { type: string; id: string }
  path: string
  branch: string
  status: string
  owned: boolean
}

export const project = (world: CliWorld): TestRepo => world.box.repo('project')
