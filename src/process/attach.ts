import { spawn } from 'node:child_process'

/** Gives our terminal to a program until it ends. Resolves to its exit code; signals from the keyboard are its own. */
export const runInForeground = (
  [command, ...args]: readonly [string, ...string[]],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env })
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
