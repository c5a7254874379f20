import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, isAppError, toAppError } from '../../domain/errors.ts'
import { unlessMissing } from '../../domain/missing.ts'
import type { Privileges } from '../../domain/trust.ts'
import { resolveCommit } from '../../git/refs.ts'
import { remoteInfo } from '../../git/remote.ts'
import { relativeTo } from '../../git/remote-url.ts'
import {
  initSubmodules,
  listSubmodules,
  type SubmoduleAddress,
  submoduleAddresses,
  updateAnonymously,
} from '../../git/submodule.ts'
import { baseAndConfig } from '../base-and-config.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from '../repo-of.ts'
import type { Dressing } from './dressing.ts'

/** A gitlink without `.gitmodules` is an accident that git itself cannot resolve: such trees stay as they are. */
export const bringSubmodules = async (
  context: IsolationContext,
  dressing: Dressing,
  which: Privileges['submodules'],
): Promise<string[]> => {
  const { config, tree, signal } = dressing
  if (!config.submodules || (await unlessMissing(lstat(join(tree.path, '.gitmodules')))) === undefined) return []
  const listed = await listSubmodules(context.git, tree, { signal })
  if (listed.length === 0) return []
  context.progress('fetching submodules')
  if (which === 'base') {
    return bringBaseSubmodules(
      context,
      dressing,
      listed.map(({ path }) => path),
    )
  }
  try {
    await initSubmodules(context.git, tree, { signal, ...(dressing.onSpawn && { onSpawn: dressing.onSpawn }) })
  } catch (error) {
    if (!isAppError(error, 'git-failed') && !isAppError(error, 'timeout')) throw error
    throw new AppError('submodules-failed', `couldn't fetch the submodules: ${error.message}`, {
      cause: error,
      remedy: 'check that they can be fetched, or set worktree.submodules to false on the base branch',
    })
  }
  return []
}

/**
 * A stranger's `.gitmodules` may name any address, one on our network or one that our credentials open. So only what
 * base has for the same path, under the same name and address, is fetched: over https, without credentials, redirects
 * or the submodules' own submodules. The rest stays empty and is named.
 */
const bringBaseSubmodules = async (
  context: IsolationContext,
  { codebase, tree, signal, onSpawn }: Dressing,
  paths: readonly string[],
): Promise<string[]> => {
  const { base } = await baseAndConfig(context, codebase)
  const head = await resolveCommit(context.git, tree, 'HEAD')
  const repo = repoOf(codebase)
  const trusted = await submoduleAddresses(context.git, repo, base.sha, { signal })
  const here = head === undefined ? new Map() : await submoduleAddresses(context.git, repo, head, { signal })
  const remote = (await remoteInfo(context.git, repo))?.url
  const notices: string[] = []
  for (const path of paths) {
    const allowed = allowedAddress(trusted.get(path), here.get(path), remote)
    const problem =
      'problem' in allowed
        ? allowed.problem
        : await updateAnonymously(context.git, tree, allowed, { signal, ...(onSpawn && { onSpawn }) }).then(
            () => undefined,
            (error: unknown) => {
              if (isAppError(error, 'cancelled')) throw error
              return `it cannot be fetched without credentials: ${toAppError(error).message}`
            },
          )
    if (problem !== undefined) notices.push(`Submodule ${path} was not fetched: ${problem}.`)
  }
  return notices
}

const allowedAddress = (
  trusted: SubmoduleAddress | undefined,
  here: SubmoduleAddress | undefined,
  remote: string | undefined,
): SubmoduleAddress | { readonly problem: string } => {
  if (trusted === undefined) return { problem: 'the base branch has none there' }
  if (here?.url !== trusted.url || here.name !== trusted.name)
    return { problem: 'its address is not the base branch’s' }
  const url = /^\.\.?\//.test(trusted.url) ? relativeTo(remote, trusted.url) : trusted.url
  if (url === undefined || !/^https:\/\/[^/@]+\//i.test(url)) {
    return { problem: 'only https addresses without credentials are fetched for work that is not trusted' }
  }
  return { ...trusted, url }
}
