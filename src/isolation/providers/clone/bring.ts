import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError, toAppError } from '../../../domain/errors.ts'
import type { EnvironmentId, Sha } from '../../../domain/names.ts'
import type { Tree } from '../../../domain/tree.ts'
import { borrowsFrom, bringObjects } from '../../../git/borrowing-clone.ts'
import { readRefFile } from '../../../git/ref-file.ts'
import { listRefs, readRef, updateRefs } from '../../../git/refs.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { makePrivateDirectory } from '../../durable.ts'
import { presenceOf } from './presence.ts'
import { tipRefOf } from './refs.ts'

/** What each has committed on its branch comes to the codebase's repository. Answers why it could not for some. */
export const bringTips = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
): Promise<ReadonlyMap<EnvironmentId, string>> => {
  const problems = new Map<EnvironmentId, string>()
  for (const environment of environments) {
    // On another host, or without its directory, what was brought last is all there is.
    if (environment.host !== context.host || environment.status !== 'active') continue
    try {
      await bringTip(context, codebase, environment)
    } catch (error) {
      problems.set(environment.id, toAppError(error).message)
    }
  }
  return problems
}

const bringTip = async (
  context: IsolationContext,
  codebase: Codebase,
  { id, branch, ...environment }: IsolatedEnvironment,
): Promise<void> => {
  const presence = await presenceOf(codebase, { id, branch, ...environment })
  if (presence.state === 'missing') return
  if (presence.state !== 'present') throw new AppError('not-found', presence.detail)
  const { tree } = presence
  const name = `refs/heads/${branch}`
  const tip = (await readRefFile(tree.commonDir, name)) ?? (await readRef(context.git, tree, name))?.sha
  const repo = repoOf(codebase)
  const brought = await readRefFile(repo.commonDir, tipRefOf(id))
  if (tip === undefined || tip === brought) return
  await bring(context, codebase, tree, [tip], join(context.home, 'bring', id))
  const kept = await updateRefs(context.git, repo, [{ update: tipRefOf(id), to: tip, from: undefined }], {
    reason: 'coppice: brought from the clone',
  })
  if (!kept.ok) throw new AppError('git-failed', `${tipRefOf(id)} could not be updated: ${kept.stderr.trim()}`)
}

/** Everything that a restore point's commit reaches, and the tags of the clone, which are no commits. */
export const bringCommit = async (
  context: IsolationContext,
  codebase: Codebase,
  tree: Tree,
  commit: Sha,
  { through }: { readonly through: string },
): Promise<void> => {
  const tags = await listRefs(context.git, tree, ['refs/tags/'])
  await bring(context, codebase, tree, [commit, ...tags.map(({ sha }) => sha)], through)
}

const bring = async (
  context: IsolationContext,
  codebase: Codebase,
  tree: Tree,
  objects: readonly Sha[],
  through: string,
): Promise<void> => {
  const repo = repoOf(codebase)
  // What it borrows elsewhere would be left out, and the repository would have half of it.
  if (!borrowsFrom(tree, repo)) {
    throw new AppError('unusable-file', `${tree.gitDir}/objects/info/alternates was changed`, {
      remedy: `write it again: echo ${join(repo.commonDir, 'objects')} > ${tree.gitDir}/objects/info/alternates`,
    })
  }
  await makePrivateDirectory(join(through, '..'))
  await bringObjects(context.git, tree, repo, objects, { through })
}
