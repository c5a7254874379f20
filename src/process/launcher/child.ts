/*
 * The small process that starts programs for a large one. In: requests. Out: each program's identity, its output and
 * how it ended. Exits with the large process; the programs that it started keep running.
 */
import { spawn } from 'node:child_process'
import { collect } from '../collect.ts'
import { identifySync } from '../identity.ts'
import type { LaunchRequest, LaunchReport } from './protocol.ts'

const report = (about: LaunchReport): void => void process.send?.(about)

const start = ({ id, program, args, cwd, env, stdin, stderrLimit }: LaunchRequest): void => {
  const failed = (cause: unknown): void =>
    report({ id, kind: 'failed', message: cause instanceof Error ? cause.message : String(cause) })
  try {
    const child = spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    child.once('error', failed)
    // In the same tick, Node can't have reaped it yet, so the pid is still its own even if it has exited.
    const identity = child.pid === undefined ? undefined : identifySync(child.pid)
    if (identity === undefined) {
      // Without a pid, `error` says why.
      if (child.kill('SIGKILL')) failed("its start time couldn't be read")
      return
    }
    report({ id, kind: 'started', identity })
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(stdin)
    const exit = new Promise<{ exitCode: number | null; signal: string | null }>((resolve) =>
      child.once('exit', (exitCode, signal) => resolve({ exitCode, signal })),
    )
    Promise.all([exit, collect(child.stdout), collect(child.stderr, { limit: stderrLimit })]).then(
      ([ended, stdout, stderr]) => report({ id, kind: 'ended', ...ended, stdout, stderr }),
      failed,
    )
  } catch (cause) {
    failed(cause)
  }
}

process.on('message', (request) => start(request as LaunchRequest))
process.on('disconnect', () => process.exit())
report({ kind: 'ready' })
