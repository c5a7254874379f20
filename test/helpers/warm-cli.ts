import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { built } from './built.ts'
import { compileCache } from './repo.ts'

export type Order = { readonly cwd: string; readonly env: Readonly<Record<string, string>>; readonly args: string[] }
export type Answer = { readonly code: number; readonly out: string; readonly err: string }

/**
 * Runs one command line in a process that has loaded the program already: that takes a third of the CPU time of a
 * process of its own. Commands that run for long, get signals or have a terminal need one: see `start`.
 */
export const runWarm = (order: Order): Promise<Answer> => {
  const answer = before.then(() => ask(order))
  before = answer.catch(() => undefined)
  return answer
}

/** They start agents, or run until they are told to stop. */
export const needsOwnProcess = (args: readonly string[]): boolean => args.includes('serve') || args.includes('chat')

/** One at a time: a process has one current directory. */
let before: Promise<unknown> = Promise.resolve()
let open: ChildProcess | undefined

const ask = async (order: Order): Promise<Answer> => {
  const child = (open ??= openChild())
  child.ref()
  child.channel?.ref()
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const failed = (code: number | null, signal: string | null): void => {
        open = undefined
        reject(new Error(`${order.args.join(' ')} ended the process of all commands: ${code ?? signal}`))
      }
      child.once('exit', failed)
      child.once('message', (message) => {
        child.off('exit', failed)
        resolve(message as Answer)
      })
      child.send(order)
    })
  } finally {
    child.unref()
    child.channel?.unref()
  }
}

/** It exits when this process does, with the channel. */
const openChild = (): ChildProcess =>
  fork(join(import.meta.dirname, 'warm-cli-child.ts'), [built('src/main.ts')], {
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...compileCache() },
    execArgv: ['--max-semi-space-size=1', '--optimize-for-size'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
