import { execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { runDirectory } from './run-directory.ts'

export type Command = {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/**
 * Runs a program and waits for it, like `execFileSync`. Starting a process copies the page tables of its parent, which
 * takes a test worker longer than most git commands run: a small shell that stays open starts the program instead.
 */
export const runInSmallShell = (program: string, args: readonly string[], command: Command): string => {
  const shell = (open ??= openShell())
  const words = [program, ...args].map(quoted).join(' ')
  const variables = Object.entries(command.env).map(([name, value]) => `${name}=${quoted(value)}`)
  const file = (name: string): string => join(shell.directory, name)
  // Not the file of the previous command: the shell may not have read to its end yet, and would continue in this one.
  const name = `command-${(shell.ran += 1) % 2}`
  writeFileSync(file('status'), '')
  writeFileSync(
    file(name),
    `(cd ${quoted(command.cwd)} && export ${variables.join(' ')} && exec ${words}) </dev/null >out 2>err; echo $? >status\n`,
  )
  writeSync(shell.commands, `${name}\n`)
  waitUntilFilled(file('status'), command.timeoutMs, () => {
    open = undefined
    closeSync(shell.commands)
    process.kill(-shell.pid, 'SIGKILL')
  })
  const [status, stdout, stderr] = [file('status'), file('out'), file('err')].map((path) => readFileSync(path, 'utf8'))
  if (status === '0\n') return stdout ?? ''
  throw Object.assign(new Error(`Command failed: ${[program, ...args].join(' ')}\n${stderr}`), {
    status: Number(status),
    stdout,
    stderr,
  })
}

type Shell = {
  readonly pid: number
  readonly directory: string
  readonly commands: number
  ran: number
}

let open: Shell | undefined

/** It exits when this process does: nobody has its commands open for writing any more. */
const openShell = (): Shell => {
  const directory = mkdtempSync(join(runDirectory(), 'shell-'))
  const commands = join(directory, 'commands')
  execFileSync('mkfifo', [commands])
  const script = 'cd "$1" && exec <commands && while read -r name; do . "./$name"; done'
  const child = spawn('sh', ['-c', script, 'sh', directory], { stdio: 'ignore', env: {}, detached: true })
  child.unref()
  if (child.pid === undefined) throw new Error('no shell could be started')
  return { pid: child.pid, directory, commands: openSync(commands, 'w'), ran: 0 }
}

const pause = new Int32Array(new SharedArrayBuffer(4))

const waitUntilFilled = (path: string, timeoutMs: number, giveUp: () => void): void => {
  const end = Date.now() + timeoutMs
  while (statSync(path).size === 0) {
    if (Date.now() > end) {
      giveUp()
      throw new Error(`Command did not end in ${timeoutMs} ms`)
    }
    Atomics.wait(pause, 0, 0, 1)
  }
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`
