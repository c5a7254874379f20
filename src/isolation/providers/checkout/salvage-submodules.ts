import { rawBytes, shownPath, toRaw } from '../../../domain/text/raw-path.ts'
import { trimEndOf } from '../../../domain/text/trim-end.ts'
import { convertedFiles } from '../../../git/converted.ts'
import type { Tree } from '../../../git/door.ts'
import type { Setting } from '../../../git/neutral.ts'
import { resolveCommit } from '../../../git/refs.ts'
import { treePath } from '../../../git/tree-path.ts'
import type { IsolationContext } from '../../context.ts'
import { convertedEdits } from './look/converted-edits.ts'
import { type DirtySubmodule, lookIntoSubmodules, submoduleTree } from './look/submodules.ts'
import type { ExpectedContent } from './provision/expected-content.ts'

/**
 * Submodules that hold more than their commit; git status doesn't look inside. Leaves out those being restored, whose
 * source still exists. One that git can't read is kept whole.
 */
export const changedSubmodules = async (
  context: Pick<IsolationContext, 'git' | 'settings'>,
  tree: Tree,
  gitlinks: readonly string[],
  { content, settings }: { readonly content: ExpectedContent; readonly settings: readonly Setting[] },
): Promise<DirtySubmodule[]> => {
  const found: DirtySubmodule[] = []
  for (const path of gitlinks) {
    const problem = await submoduleProblem(context, tree, path, settings).catch(() => 'has changes' as const)
    if (problem !== undefined && !(await content.has(`${path}/`))) found.push({ path, problem })
  }
  return found
}

const submoduleProblem = async (
  context: Pick<IsolationContext, 'git' | 'settings'>,
  tree: Tree,
  path: string,
  settings: readonly Setting[],
): Promise<DirtySubmodule['problem'] | undefined> => {
  const { dirty, ignored, converted } = await lookIntoSubmodules(context, tree, [treePath(rawBytes(path))])
  const own = dirty.find((one) => one.path === path)
  if (own !== undefined) return own.problem
  if (dirty.length > 0 || ignored.some((file) => !isRegenerable(context, file))) return 'has changes'
  for (const one of converted) if (await hasHiddenEdits(context, tree, one, settings)) return 'has changes'
  return undefined
}

const hasHiddenEdits = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  path: string,
  settings: readonly Setting[],
): Promise<boolean> => {
  const inner = await submoduleTree(tree, path)
  const commit = inner && (await resolveCommit(context.git, inner, 'HEAD'))
  if (inner === undefined || commit === undefined) return true
  const paths = (await convertedFiles(context.git, inner)).map(({ bytes }) => toRaw(bytes))
  return (await convertedEdits(context, inner, { commit, paths, settings })).length > 0
}

export const isRegenerable = ({ settings }: Pick<IsolationContext, 'settings'>, path: string): boolean =>
  settings.regenerable.includes(trimEndOf(shownPath(path), '/').split('/').at(-1) ?? '')
