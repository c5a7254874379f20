/*
 * Brings a branch onto another commit without a checkout. In: two commits and a strategy. Out: a new commit, or the
 * paths in conflict. No ref moves; git deletes unused commits by itself.
 */
import type { Codebase } from '../../../domain/environment.ts'
import type { LandingStrategy } from '../../../domain/fleet/landing.ts'
import type { Sha } from '../../../domain/names.ts'
import type { CallOptions, Git, Repo } from '../../../git/door.ts'
import { mergeTrees } from '../../../git/merge-trees.ts'
import { commitTree, type Signature, writeTree } from '../../../git/objects.ts'
import { type OwnCommit, ownCommits } from '../../../git/own-commits.ts'
import { treesOf } from '../../../git/trees.ts'
import { userIdentity } from '../../../git/user-identity.ts'
import type { IsolationContext } from '../../context.ts'
import { repoOf } from '../repo-of.ts'
import { mergeMessage, squashMessage } from './messages.ts'

export type BringOnto = {
  readonly onto: Sha
  readonly tip: Sha
  readonly branch: string
  readonly strategy: LandingStrategy
  /** Of the new commit, if it isn't just the branch's only one. */
  readonly title: string | undefined
}

export type Brought =
  | { readonly outcome: 'brought'; readonly commit: Sha }
  /** It has all of the branch already. */
  | { readonly outcome: 'nothing' }
  | { readonly outcome: 'conflict'; readonly paths: readonly string[] }

/** More are brought as one commit. */
const MOST_COMMITS = 1_000

export const bringOnto = async (
  { git, clock }: Pick<IsolationContext, 'git' | 'clock'>,
  codebase: Codebase,
  { onto, tip, branch, strategy, title }: BringOnto,
  options: CallOptions = {},
): Promise<Brought> => {
  const repo = repoOf(codebase)
  const own = await ownCommits(git, repo, { from: onto, to: tip, limit: MOST_COMMITS }, options)
  if (own?.length === 0) return { outcome: 'nothing' }
  const [merged] = await mergeTrees(git, repo, [{ into: onto, tip }], options)
  if (merged?.clean !== true) return { outcome: 'conflict', paths: merged?.paths ?? [] }
  if (merged.tree === (await treesOf(git, repo, [onto], options)).get(onto)) return { outcome: 'nothing' }
  const by: Signature = { ...((await userIdentity(git, repo)) ?? ourselves), at: clock() }
  const { tree } = merged
  // A merge among its commits may hold the resolution of a conflict, which a replay would have to make again.
  const canReplay = own !== undefined && own.every(({ parents }) => parents.length <= 1)
  if (strategy === 'rebase' && canReplay) return replay({ git, repo, by, options }, onto, own)
  if (strategy === 'merge') {
    const message = mergeMessage(branch, title)
    return {
      outcome: 'brought',
      commit: await commitTree(git, repo, { tree, parents: [onto, tip], message, by }, options),
    }
  }
  const [only] = own ?? []
  if (own?.length === 1 && isOn(only, onto)) return { outcome: 'brought', commit: tip }
  const { message, author } = squashMessage(own ?? [], { branch, title })
  const squashed = { tree, parents: [onto], message, by, ...(author !== undefined && { author }) }
  return { outcome: 'brought', commit: await commitTree(git, repo, squashed, options) }
}

const ourselves = { name: 'Coppice', email: 'coppice@localhost' }

type Replay = { readonly git: Git; readonly repo: Repo; readonly by: Signature; readonly options: CallOptions }

const isOn = (commit: OwnCommit | undefined, parent: Sha): boolean =>
  commit !== undefined && commit.parents.length === 1 && commit.parents[0] === parent

/** Each commit again on top of the last one, without those that change nothing any more. */
const replay = async (way: Replay, onto: Sha, own: readonly OwnCommit[]): Promise<Brought> => {
  const { git, repo, by, options } = way
  let tip = onto
  for (const commit of own) {
    if (isOn(commit, tip)) {
      tip = commit.sha
      continue
    }
    const [parent] = commit.parents
    const before = parent === undefined ? await writeTree(git, repo, [], options) : await treeOf(way, parent)
    const there = await treeOf(way, tip)
    const picked = await pick(way, { before, there, after: commit.tree })
    if (!picked.clean) return { outcome: 'conflict', paths: picked.paths }
    const { tree } = picked
    // One that was empty from the beginning says something.
    if (tree === there && commit.tree !== before) continue
    const { message, author } = commit
    tip = await commitTree(git, repo, { tree, parents: [tip], message: `${message}\n`, by, author }, options)
  }
  return { outcome: 'brought', commit: tip }
}

const treeOf = async ({ git, repo, options }: Replay, commit: Sha): Promise<Sha> =>
  (await treesOf(git, repo, [commit], options)).get(commit) ?? commit

/** Git 2.39 takes no merge base for `merge-tree`, so the three trees get commits with the history that says it. */
const pick = async (
  { git, repo, by, options }: Replay,
  { before, there, after }: { readonly before: Sha; readonly there: Sha; readonly after: Sha },
) => {
  const commit = (tree: Sha, parents: readonly Sha[]): Promise<Sha> =>
    commitTree(git, repo, { tree, parents, message: 'replay\n', by }, options)
  const base = await commit(before, [])
  const [into, tip] = [await commit(there, [base]), await commit(after, [base])]
  const [merged] = await mergeTrees(git, repo, [{ into, tip }], options)
  return merged ?? ({ clean: false, paths: [] } as const)
}
