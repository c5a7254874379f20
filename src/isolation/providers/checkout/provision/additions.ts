import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RepoConfig } from '../../../../domain/config/repository.ts'
import type { Codebase, IsolatedEnvironment } from '../../../../domain/environment.ts'
import type { Tree } from '../../../../git/door.ts'
import type { IsolationContext } from '../../../context.ts'
import { isOurRedirect, redirectPath } from './beads.ts'
import { isOurLink } from './links.ts'
import { isNamed, matchingFiles } from './matching-files.ts'
import { sameContent } from './same-content.ts'
import { fileSource } from './shared-area.ts'
import { trackedFiles } from '../../../../git/tracked-files.ts'

/**
 * Whether Coppice created this untracked file and it is unchanged, so that it is nobody's work. A copied file counts
 * while its source has the same bytes, since then removal can't lose them.
 */
export const isOurAddition = async (
  context: Pick<IsolationContext, 'home'>,
  codebase: Codebase,
  environment: Pick<IsolatedEnvironment, 'path'>,
  config: RepoConfig,
  relativePath: string,
): Promise<boolean> => {
  // A directory (`nested/`) is never ours; git lists one only if it is a repository.
  if (relativePath.endsWith('/')) return false
  if (relativePath === redirectPath && (await isOurRedirect(codebase, environment.path))) return true
  if (config.link.includes(relativePath) && (await isOurLink(context, codebase, environment.path, relativePath))) {
    return true
  }
  if (config.copy.length === 0) return false
  // Called per untracked file, and an agent can make a great many.
  await nextTurn()
  if (!isNamed(relativePath, config.copy)) return false
  return sameContent(environment.path, fileSource(context, codebase), relativePath)
}

/**
 * Untracked files that the config says to keep and that differ from their source. Read errors are thrown, so that the
 * gate answers "can't tell".
 */
export const keptFilesThatDiffer = async (
  context: Pick<IsolationContext, 'home' | 'git'>,
  codebase: Codebase,
  tree: Tree,
  config: RepoConfig,
  signal?: AbortSignal,
): Promise<string[]> => {
  const matches = await matchingFiles(tree.path, [...config.copy, ...config.keep])
  if (matches.length === 0) return []
  const tracked = await trackedFiles(context.git, tree, signal)
  const source = fileSource(context, codebase)
  const differing: string[] = []
  for (const { path, exact } of matches) {
    if (exact && tracked.has(path)) continue
    if (exact && config.link.includes(path) && (await isOurLink(context, codebase, tree.path, path))) continue
    if (!exact || !(await sameContent(tree.path, source, path))) differing.push(path)
  }
  return differing
}
