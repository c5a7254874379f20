import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { toAppError } from '../domain/errors.ts'
import { maxLineBytes } from '../domain/git-link.ts'
import type { IsolationHints } from '../domain/hints.ts'
import { type Sha, isSha, toBranchName } from '../domain/names.ts'
import { shownPath, toRaw } from '../domain/raw-path.ts'
import { isTrusted } from '../domain/trust.ts'
import type { Work } from '../domain/work.ts'
import { fastForward, moveTo } from '../git/checkout.ts'
import type { Tree } from '../git/door.ts'
import { isAncestor } from '../git/history.ts'
import { readTree } from '../git/objects.ts'
import { resolveCommit } from '../git/refs.ts'
import { readUntrustedText } from '../process/read-untrusted.ts'
import { checkoutSettings } from './checkout-settings.ts'
import type { IsolationContext } from './context.ts'
import { readDirt } from './dirt.ts'
import { usesOf } from './gates.ts'
import { locked } from './locked.ts'
import { presenceOf } from './presence.ts'
import { baseAndConfig } from './base-and-config.ts'
import { repoOf } from './repo-of.ts'
import { fetchBranch, fetchPullRequestHead } from './worktree/fetch-pull-request.ts'

export type Followed = {
  readonly notices: string[]
  /** The tree has the head that was named, or none was. */
  readonly current: boolean
}

/**
 * PR heads move. A clean tree that is behind is fast-forwarded, a review without commits of its own moves to the new
 * SHA, and the user is told; anything else is left, and both SHAs are named. A trusted tree, which has our files and ran
 * our setup, moves only to what is on its branch of our remote. An unmoved head starts no program.
 */
export const followPullRequest = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  work: Work,
  { prSha }: IsolationHints,
): Promise<Followed> => {
  // A stacked PR shares the tree of the one below it; its head is not that one's.
  const ofThisTree = (work.type === 'pr' || work.type === 'review') && Number(work.id) === environment.prNumber
  if (!ofThisTree || prSha === undefined || !isSha(prSha) || !environment.owned) return unmoved
  const presence = await presenceOf(codebase, environment)
  if (presence.state !== 'present' || (await headByFiles(presence.tree, environment)) === prSha) return unmoved
  return locked(context, codebase, `following PR #${work.id}`, () =>
    follow(context, codebase, environment, presence.tree, prSha),
  )
}

const unmoved: Followed = { notices: [], current: true }

const follow = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
  target: Sha,
): Promise<Followed> => {
  const here = await resolveCommit(context.git, tree, 'HEAD')
  if (here === undefined || here === target) return unmoved
  const number = environment.prNumber ?? 0
  const left = (why: string): Followed => ({
    notices: [`PR #${number} is at \`${short(target)}\`, this tree stays at \`${short(here)}\`: ${why}`],
    current: false,
  })
  const moved = (how: string): Followed => ({
    notices: [`PR #${number} ${how} from \`${short(here)}\` to \`${short(target)}\``],
    current: true,
  })
  try {
    const refused = await bring(context, codebase, environment, target)
    if (refused !== undefined) return left(refused)
    const use = await usesOf(context, environment, tree)
    if (use.length > 0) return left(use.map(({ detail }) => detail).join(', '))
    const { config } = await baseAndConfig(context, codebase)
    const dirt = await readDirt(context, codebase, environment, tree, config)
    if (dirt.headBranch !== environment.branch) return left(`it is on ${dirt.headBranch ?? 'no branch'}`)
    if (dirt.problems.length > 0) return left(dirt.problems.map((problem) => problem.detail).join(', '))
    const settings = checkoutSettings(environment.trust)
    if (await isAncestor(context.git, tree, here, target)) {
      await fastForward(context.git, tree, target, { settings })
      return moved('moved: fast-forwarded')
    }
    if (await isAncestor(context.git, tree, target, here)) {
      return { ...left('it has commits that the PR does not have'), current: true }
    }
    if (!isUntouchedReview(environment, here)) return left('the two have diverged')
    // `reset --keep` protects changed files, but not ignored ones that the new commit tracks.
    const tracked = new Set((await readTree(context.git, tree, target)).map(({ bytes }) => toRaw(bytes)))
    const covered = dirt.ignored.filter((path) => [...tracked].some((name) => name === path || name.startsWith(path)))
    if (covered.length > 0) return left(`it would overwrite ignored files: ${covered.map(shownPath).join(', ')}`)
    await moveTo(context.git, tree, target, { settings })
  } catch (error) {
    return left(toAppError(error).message)
  }
  await context.store.environments.update(environment.id, { startSha: target })
  return moved('was rewritten: moved')
}

/** Fetches the commit. Answers why this tree may not have it. */
const bring = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  target: Sha,
): Promise<string | undefined> => {
  const { trust, prNumber, prBranch } = environment
  const remote = codebase.remote ?? 'origin'
  if (prNumber === undefined) return "this worktree's pull request isn't known"
  if (trust === 'own' && prBranch !== undefined) {
    const { sha: tip } = await fetchBranch(context, codebase, remote, {
      number: prNumber,
      branch: toBranchName(prBranch),
    })
    const isThere = tip !== undefined && (await resolveCommit(context.git, repoOf(codebase), target)) !== undefined
    const isOn = isThere && (await isAncestor(context.git, repoOf(codebase), target, tip))
    return isOn ? undefined : `that commit is not on ${remote}/${prBranch}`
  }
  await fetchPullRequestHead(context, codebase, remote, prNumber, target)
  return isTrusted(trust)
    ? `nobody has vouched for that commit. Look at it, then move there yourself: git merge --ff-only ${short(target)}`
    : undefined
}

/** A review tree that stands exactly where we put it has no commits of its own. */
const isUntouchedReview = ({ branch, prNumber, startSha }: IsolatedEnvironment, here: Sha): boolean =>
  branch === `pr-${prNumber}-review` && startSha === here

/** Where HEAD stands according to the loose ref; undefined (ask git) when it is packed or HEAD is elsewhere. */
const headByFiles = async (tree: Tree, environment: IsolatedEnvironment): Promise<string | undefined> => {
  try {
    const head = (await readUntrustedText(join(tree.gitDir, 'HEAD'), { maxBytes: maxLineBytes }))?.trim()
    if (head !== `ref: refs/heads/${environment.branch}`) return undefined
    return (
      await readUntrustedText(join(tree.commonDir, 'refs/heads', environment.branch), { maxBytes: maxLineBytes })
    )?.trim()
  } catch {
    return undefined
  }
}

const short = (sha: string): string => sha.slice(0, 7)
