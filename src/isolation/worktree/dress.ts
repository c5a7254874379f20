import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, isAppError } from '../../domain/errors.ts'
import { initSubmodules, listSubmodules } from '../../git/submodule.ts'
import type { IsolationContext } from '../context.ts'
import { layBeadsRedirect } from './beads.ts'
import { copyFiles } from './copy-files.ts'
import type { Dressing } from './dressing.ts'
import { makeLinks } from './links.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { leasePorts } from './ports.ts'
import { runSetup } from './scripts.ts'

/**
 * All that a tree gets beside its commit, after git has made it and before it is active. Each step leaves alone what is
 * there already, so doing it again after a crash is harmless. Setup comes last: it may need all of the others.
 */
export const dressEnvironment = async (
  context: IsolationContext,
  dressing: Dressing,
): Promise<{ notices: string[] }> => {
  const notices = await layBeadsRedirect(dressing)
  await bringSubmodules(context, dressing)
  // A stranger's code may run in a fork's tree: it gets neither the user's `.env` nor a way into the shared area.
  if (!dressing.isFork || dressing.config.allowForks) {
    notices.push(...(await copyFiles(context, dressing)))
    notices.push(...(await makeLinks(context, dressing)))
  }
  await leasePorts(context, dressing.environment, dressing.config.ports)
  notices.push(...(await runSetup(context, dressing)))
  return { notices }
}

/** A gitlink without `.gitmodules` is an accident that git itself cannot resolve: such trees stay as they are. */
const bringSubmodules = async (context: IsolationContext, dressing: Dressing): Promise<void> => {
  const { config, tree, signal } = dressing
  if (!config.submodules || (await unlessMissing(lstat(join(tree.path, '.gitmodules')))) === undefined) return
  if ((await listSubmodules(context.git, tree, { signal })).length === 0) return
  context.progress('bringing submodules')
  try {
    await initSubmodules(context.git, tree, { signal, ...(dressing.onSpawn && { onSpawn: dressing.onSpawn }) })
  } catch (error) {
    if (!isAppError(error, 'git-failed') && !isAppError(error, 'timeout')) throw error
    throw new AppError('submodules-failed', `the submodules could not be brought: ${error.message}`, {
      cause: error,
      remedy: 'see that they can be fetched, or set worktree.submodules to false on the base branch',
    })
  }
}
