/*
 * A checkout of one commit in which commands may do anything: its repository is its own and borrows only objects, and
 * everything is deleted afterwards. A file beside it names its process; after a crash the next one deletes both.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Codebase } from '../../../domain/environment.ts'
import { AppError, toAppError } from '../../../domain/errors.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { type Sha, toBranchName } from '../../../domain/names.ts'
import { identityWord, parseIdentityWord } from '../../../domain/process-identity.ts'
import { cloneBorrowing } from '../../../git/borrowing-clone.ts'
import type { CallOptions } from '../../../git/door.ts'
import { remoteInfo } from '../../../git/remote.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import { listDirectory } from '../../../process/files/list-directory.ts'
import { makeDirectorySync } from '../../../process/files/make-directory.ts'
import { readUntrustedText } from '../../../process/files/read-untrusted.ts'
import { writeNewFileSync } from '../../../process/files/replace-file.ts'
import { liveness } from '../../../process/identity.ts'
import { killRun } from '../../../process/kill.ts'
import { type RunMark, scratchMark } from '../../../process/run-mark.ts'
import type { IsolationContext } from '../../context.ts'
import { prepareRoot, scratchDirectory } from '../../paths.ts'
import { withoutSecret } from '../register.ts'
import { repoOf } from '../repo-of.ts'

export type ScratchTree = {
  readonly path: string
  /** For every process that works in it. */
  readonly mark: RunMark
}

export type Scratch = {
  readonly at: Sha
  /** The branch that it has there, and what the remote's branch of that name is. */
  readonly branch: string
  readonly base: Sha
}

const OWNER = '.owner'
const GRACE_MS = 2_000

export const withScratchTree = async <T>(
  context: IsolationContext,
  codebase: Codebase,
  scratch: Scratch,
  work: (tree: ScratchTree) => Promise<T>,
  options: CallOptions = {},
): Promise<T> => {
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  const directory = scratchDirectory(root)
  const id = context.ids().slice(0, 13)
  makeDirectorySync(directory)
  writeNewFileSync(join(directory, `${id}${OWNER}`), identityWord(context.self), { mode: 0o600, sync: true })
  const path = join(directory, id)
  try {
    await mkdir(path, { mode: 0o700 })
    const repo = repoOf(codebase)
    await cloneBorrowing(
      context.git,
      {
        path,
        lender: repo,
        branch: toBranchName(scratch.branch),
        at: scratch.at,
        refs:
          codebase.remote === undefined
            ? []
            : [{ name: `refs/remotes/${codebase.remote}/${scratch.branch}`, sha: scratch.base }],
        config: await remoteConfig(context, codebase),
        onSpawn: () => undefined,
      },
      options,
    )
    return await work({ path, mark: scratchMark(context.home, id) })
  } finally {
    await discard(context, directory, id).catch((error: unknown) => {
      context.log.warn('a scratch tree could not be deleted', { path, error: toAppError(error).message })
    })
  }
}

/** So that tools in it find the remote, and relative submodules too. */
const remoteConfig = async (
  { git }: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
): Promise<(readonly [string, string])[]> => {
  const info = codebase.remote === undefined ? undefined : await remoteInfo(git, repoOf(codebase), codebase.remote)
  const url = withoutSecret(info?.url)
  return info === undefined || url === undefined ? [] : [[`remote.${info.name}.url`, url]]
}

/** The owner's file last: it's what finds the directory. */
const discard = async (
  { home, clock }: Pick<IsolationContext, 'home' | 'clock'>,
  directory: string,
  id: string,
): Promise<void> => {
  const killed = await killRun([scratchMark(home, id)], { graceMs: GRACE_MS, clock })
  if (killed.outcome === 'survivors') throw new AppError('busy', 'something is still running in it')
  await unlessMissing(deleteTree(join(directory, id)))
  await unlessMissing(deleteTree(join(directory, `${id}${OWNER}`)))
}

/** Ends and deletes what a process that has died left. Skips those of a process that may be alive. */
export const clearScratchTrees = async (context: IsolationContext): Promise<void> => {
  const directory = scratchDirectory(context.worktreesBase)
  for (const { name } of (await unlessMissing(listDirectory(Buffer.from(directory)))) ?? []) {
    if (!name.endsWith(OWNER)) continue
    const owner = parseIdentityWord((await readUntrustedText(join(directory, name)))?.trim() ?? '')
    if (owner === undefined || liveness(owner) !== 'dead') continue
    await discard(context, directory, name.slice(0, -OWNER.length)).catch((error: unknown) => {
      context.log.warn('a scratch tree could not be deleted', { name, error: toAppError(error).message })
    })
  }
}
