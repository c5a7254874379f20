import { realpathSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { AppError, isAppError } from '../domain/errors.ts'
import { type RepoPath, toRepoPath } from '../domain/names.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { lastValue } from './config-entries.ts'
import type { CallOptions, Git } from './door.ts'
import { remedy, shell } from '../domain/remedy.ts'

export type Discovered = {
  readonly commonDir: RepoPath
  /** The main working tree; undefined when the repository is bare. */
  readonly checkoutPath: string | undefined
  /** The top directory of the linked worktree that contains the path, if any. */
  readonly linkedWorktree: string | undefined
}

/** Which repository a path belongs to. The only call that lets git search for one. */
export const discoverRepository = async (git: Git, path: string, options: CallOptions = {}): Promise<Discovered> => {
  const { stdout, exitCode, stderr } = await ask(git, path, options)
  const [commonDir, gitDir, top] = stdout.split('\n').filter((line) => line !== '')
  if (commonDir === undefined || gitDir === undefined) throw notARepository(path, stderr)
  const common = toRepoPath(realpathSync(commonDir))
  const linked = exitCode === 0 && realpathSync(gitDir) !== common
  return {
    commonDir: common,
    checkoutPath: await checkoutOf(git, common),
    linkedWorktree: linked && top !== undefined ? realpathSync(top) : undefined,
  }
}

/** In a bare repository `--show-toplevel` fails after the rest was printed, which is a valid answer. */
const ask = async (git: Git, path: string, { signal }: CallOptions) => {
  const args = ['rev-parse', '--path-format=absolute', '--git-common-dir', '--git-dir', '--show-toplevel']
  try {
    return await git.run({ operation: 'rev-parse', at: { cwd: path }, args, ok: [0, 128], ...(signal && { signal }) })
  } catch (error) {
    if (!isAppError(error, 'not-found')) throw error
    throw new AppError('not-a-repository', `${path} doesn't exist or isn't a directory`, { cause: error })
  }
}

const checkoutOf = async (git: Git, commonDir: RepoPath): Promise<string | undefined> => {
  const entries = await git.config({ commonDir })
  if (/^(?:true|yes|on|1)$/i.test(lastValue(entries, 'core.bare') ?? '')) return undefined
  const named = lastValue(entries, 'core.worktree')
  if (named !== undefined) return realpathSync(resolve(commonDir, named))
  return basename(commonDir) === '.git' ? dirname(commonDir) : undefined
}

const notARepository = (path: string, stderr: string): AppError => {
  if (/dubious ownership/.test(stderr)) {
    return new AppError(
      'not-a-repository',
      `the repository at ${path} belongs to another user, so git refuses to use it`,
      {
        remedy: remedy`if you trust it: ${shell(`git config --global --add safe.directory ${shellWord(path)}`)}`,
      },
    )
  }
  return new AppError('not-a-repository', `${path} is not in a git repository`, {
    remedy: 'change to a repository, or pass --codebase',
  })
}
