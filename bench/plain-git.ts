import { execFileSync } from 'node:child_process'
import type { Sandbox } from '../test/helpers/repo.ts'

/** Git as a person would type it. No timeout: a slow disk is a result here, not an error. */
export const plainGit = (box: Pick<Sandbox, 'env'>, cwd: string, ...args: string[]): string =>
  run(box, cwd, args, undefined)

export const fastImport = (box: Pick<Sandbox, 'env'>, cwd: string, stream: string | Buffer): void =>
  void run(box, cwd, ['fast-import', '--quiet'], stream)

export const plainEnvironment = ({ env }: Pick<Sandbox, 'env'>): Record<string, string> => ({
  ...env,
  GIT_CONFIG_NOSYSTEM: '1',
})

const run = (
  box: Pick<Sandbox, 'env'>,
  cwd: string,
  args: readonly string[],
  input: string | Buffer | undefined,
): string =>
  execFileSync('git', args, {
    cwd,
    env: plainEnvironment(box),
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: Number.MAX_SAFE_INTEGER,
    ...(input !== undefined && { input }),
  }).trimEnd()
