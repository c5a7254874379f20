import type { Doubt } from '../../domain/trust.ts'

/** Why something is treated as a fork. */
export const describeDoubt = (doubt: Doubt): string => {
  switch (doubt.kind) {
    case 'follows-ref':
      return `branch ${doubt.branch} follows ${doubt.ref}`
    case 'follows-elsewhere':
      return `branch ${doubt.branch} follows another repository`
    case 'pushes-elsewhere':
      return `branch ${doubt.branch} pushes to another repository`
    case 'remote-silent':
      return `${commitsAre(doubt)} unknown here, and ${doubt.remote} could not be asked`
    case 'foreign-commits':
      return `${commitsAre(doubt)} neither on a branch of the remote nor committed in a trusted worktree here`
    case 'no-remote':
      return `${doubt.codebase} has no remote that could say where it comes from`
    case 'origin-unknown':
      return `couldn't ask where it comes from: ${doubt.message}`
    case 'no-such-branch':
      return `${doubt.remote} has no branch ${doubt.branch}`
    case 'no-head':
      return `${doubt.remote} has no head for it`
    case 'not-a-tip': {
      const { head, remote, branch } = doubt
      const tip = branch === undefined ? `a branch on ${remote}` : `${remote}/${branch}`
      return `its head ${short(head)} is not the tip of ${tip}`
    }
    case 'several-branches':
      return `several branches on ${doubt.remote} are at ${short(doubt.head)}: name the right one with --pr-branch`
  }
}

const commitsAre = ({ commits, first }: { readonly commits: number; readonly first: string }): string =>
  commits === 1 ? `commit ${short(first)} is` : `${commits} commits are`

const short = (sha: string): string => sha.slice(0, 7)
