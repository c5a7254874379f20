import type { Codebase } from '../../domain/environment.ts'
import { toAppError } from '../../domain/errors.ts'
import type { IsolationHints } from '../../domain/hints.ts'
import { branchNameProblem, type Sha } from '../../domain/names.ts'
import type { Doubt } from '../../domain/trust.ts'
import { type Work, toWork } from '../../domain/work.ts'
import { askRemoteRefs } from '../../git/remote-refs.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { IsolationContext } from '../context.ts'
import { repoOf } from './repo-of.ts'

export type DeterminedOrigin = {
  /** `isForkPR` is now known, or undefined if there is no evidence either way, which isn't trusted either. */
  readonly hints: IsolationHints
  /** Why it isn't treated as our own although nobody said that it is a fork's. */
  readonly doubt: Doubt | undefined
}

/**
 * Where a pull request comes from. The forge's answer counts. Without one we ask the remote, every time, since heads
 * move and branches go: it is ours only if its head is the tip of a branch of this very remote.
 */
export const determineOrigin = async (
  context: IsolationContext,
  codebase: Codebase,
  work: Work,
  hints: IsolationHints,
  signal?: AbortSignal,
): Promise<DeterminedOrigin> => {
  if (work.type === 'review') return { hints: { ...hints, isForkPR: true }, doubt: undefined }
  if (work.type !== 'pr' || hints.isForkPR === true) return { hints, doubt: undefined }
  // The forge knows whose it is, but not always its branch.
  if (hints.isForkPR === false && hints.prBranch !== undefined) return { hints, doubt: undefined }
  const { remote } = codebase
  if (remote === undefined) return unknown(hints, { kind: 'no-remote', codebase: codebase.name })
  const { id: number } = toWork('pr', work.id)
  const head = `refs/pull/${number}/head`
  let refs: ReadonlyMap<string, Sha>
  try {
    refs = await askRemoteRefs(context.git, repoOf(codebase), remote, { only: ['refs/heads/*', head], signal })
  } catch (error) {
    return unknown(hints, { kind: 'origin-unknown', message: toAppError(error).message })
  }
  const base = await baseAndConfig(context, codebase)
  return judge(hints, refs, { remote, head, baseBranch: base.base.branch })
}

type Asked = { readonly remote: string; readonly head: string; readonly baseBranch: string | undefined }

const judge = (
  hints: IsolationHints,
  refs: ReadonlyMap<string, Sha>,
  { remote, head, baseBranch }: Asked,
): DeterminedOrigin => {
  const at = refs.get(head)
  if (hints.prBranch !== undefined) {
    const tip = branchNameProblem(hints.prBranch) === undefined ? refs.get(`refs/heads/${hints.prBranch}`) : undefined
    // A remote without pull request refs can't contradict the name.
    if (tip !== undefined && (at === undefined || at === tip)) return asOwn(hints, hints.prBranch, tip)
    if (at === undefined) return unknown(hints, { kind: 'no-such-branch', remote, branch: hints.prBranch })
    return asFork(hints, { kind: 'not-a-tip', head: at, remote, branch: hints.prBranch })
  }
  if (at === undefined) return unknown(hints, { kind: 'no-head', remote })
  // Base's own tip proves nothing: every fork has it.
  const branches = [...refs]
    .filter(([name, sha]) => name.startsWith('refs/heads/') && sha === at && name !== `refs/heads/${baseBranch}`)
    .map(([name]) => name.slice('refs/heads/'.length))
  const [branch, another] = branches
  if (branch === undefined) return asFork(hints, { kind: 'not-a-tip', head: at, remote })
  if (another === undefined) return asOwn(hints, branch, at)
  return asFork(hints, { kind: 'several-branches', head: at, remote })
}

/** Keep a commit that the caller named only if it is the branch's tip. */
const asOwn = ({ prSha, ...hints }: IsolationHints, prBranch: string, tip: Sha): DeterminedOrigin => ({
  hints: { ...hints, prBranch, isForkPR: false, ...(prSha === tip && { prSha }) },
  doubt: undefined,
})

const unknown = ({ isForkPR: _claimed, ...hints }: IsolationHints, doubt: Doubt): DeterminedOrigin => ({ hints, doubt })

const asFork = (hints: IsolationHints, doubt: Doubt): DeterminedOrigin => ({
  hints: { ...hints, isForkPR: true },
  doubt,
})
