import type { BranchName, EnvironmentId, Sha } from './names.ts'
import type { StaleBase } from './merge-proof.ts'
import type { RelatedBy } from './related.ts'
import type { Remedy } from './remedy.ts'
import type { Fact } from './removal/reason.ts'
import type { LeftOut } from './removal/restore-point.ts'
import type { Doubt } from './trust.ts'
import type { Work } from './work.ts'

/**
 * Shown to the user with an answer: offline, diverged, setup not approved, … The only free text in it comes from
 * outside, such as git's own message; commands/views/notices.ts writes the sentences.
 */
export type Notice =
  | FetchNotice
  | BranchNotice
  | PlaceNotice
  | HeadNotice
  | ProvisionNotice
  | RemovalNotice
  | UpkeepNotice

/** Holds for every message, but a conversation is told only once: by this key. */
export const onceKey = (notice: Notice): string | undefined => {
  switch (notice.kind) {
    case 'two-worktrees':
      return `${notice.kind} ${notice.branch} ${notice.other}`
    case 'pushes-elsewhere':
      return `${notice.kind} ${notice.branch} ${notice.prBranch}`
    case 'link-not-followed':
    case 'untrusted-not-reused':
      return `${notice.kind} ${notice.branch}`
    default:
      return undefined
  }
}

type FetchNotice =
  /** Without `of`: the whole remote. */
  | {
      readonly kind: 'not-fetched'
      readonly of?: { readonly pullRequest: number } | { readonly branch: BranchName }
      readonly why: string
    }
  /** `blocker`: the tracking ref in its way. */
  | {
      readonly kind: 'tracking-ref-not-created'
      readonly remote: string
      readonly branch: BranchName
      readonly blocker: string | undefined
      readonly why: string
    }

type BranchNotice =
  | { readonly kind: 'base-ignored'; readonly branch: BranchName }
  | { readonly kind: 'remote-branch-continued'; readonly branch: BranchName; readonly remote: string }
  | {
      readonly kind: 'pr-branch-checked-out'
      readonly prBranch: BranchName
      readonly holder: string
      readonly branch: BranchName
    }
  | {
      readonly kind: 'branches-diverged'
      readonly branch: BranchName
      readonly local: Sha
      readonly remote: string
      readonly tracking: Sha
    }
  /** `seen`: the reflog shows the rename. Otherwise the old branch is gone and the new one is checked out. */
  | { readonly kind: 'branch-renamed'; readonly from: string; readonly to: string; readonly seen: boolean }
  | { readonly kind: 'restored-as'; readonly branch: BranchName; readonly name: BranchName; readonly why: NameTaken }
  /** Its work is found in another environment now: the one on `other`. */
  | { readonly kind: 'restored-apart'; readonly work: Work; readonly other: BranchName }
  | { readonly kind: 'own-branch-restored'; readonly branch: BranchName }
  | {
      readonly kind: 'own-branch-not-restored'
      readonly branch: BranchName
      readonly tip: Sha
      readonly why: { readonly kind: 'blocked'; readonly by: string } | Failed
    }
  /** `why`: why the repository can't have the clone's branch under its own name. */
  | {
      readonly kind: 'clone-branch-kept-as'
      readonly branch: BranchName
      readonly name: BranchName
      readonly why: NameTaken
    }
  /** For a missing clone whose work was restarted. `point`: the restore point that has them. */
  | { readonly kind: 'other-branches-saved'; readonly point: string }

export type NameTaken =
  | { readonly kind: 'moved'; readonly to: Sha }
  /** Undefined: unknown. */
  | { readonly kind: 'checked-out'; readonly holder?: string }
  | { readonly kind: 'other-commits' }
  /** Renamed in the clone to a branch of the repository, or to a name that means something else to git there. */
  | { readonly kind: 'not-its-own' | 'means-something-else' }
  /** The name is free; the user just has to know. Undefined: the old name is unknown. */
  | { readonly kind: 'renamed'; readonly from: string | undefined }
  | { readonly kind: 'blocked'; readonly by: string }

type PlaceNotice =
  | { readonly kind: 'reused'; readonly work: Work }
  /** A link that appeared after the environment was created. */
  | { readonly kind: 'link-recorded'; readonly work: Work }
  /** Both existed before it was known that they are one work. `other` is the linked one's. */
  | {
      readonly kind: 'two-worktrees'
      readonly work: Work
      readonly linked: Work
      readonly branch: BranchName
      readonly other: BranchName
    }
  /** `to`: where a push updates the pull request; undefined: in another repository, for all we know. */
  | {
      readonly kind: 'pushes-elsewhere'
      readonly prNumber: string
      readonly prBranch: string
      readonly branch: BranchName
      readonly to: { readonly remote: string | undefined } | undefined
    }
  | { readonly kind: 'adopted'; readonly path: string; readonly branch: BranchName }
  | { readonly kind: 'adopted-untrusted'; readonly branch: BranchName }
  /** Only an offer. */
  | { readonly kind: 'link-not-followed'; readonly work: Work; readonly branch: BranchName }
  | { readonly kind: 'untrusted-not-reused'; readonly work: Work; readonly branch: BranchName }
  | {
      readonly kind: 'related'
      readonly environmentId: EnvironmentId
      readonly branch: BranchName
      readonly by: RelatedBy
    }
  | {
      readonly kind: 'treated-as-fork'
      readonly branch: BranchName
      readonly prNumber: number | undefined
      readonly doubt: Doubt
    }
  /** `head`: the named one, which the worktree doesn't have; undefined if none was named. */
  | { readonly kind: 'run-untrusted'; readonly prNumber: string; readonly head: string | undefined }
  /** `why`: an untrusted run has worked in the worktree since, or another commit is checked out. */
  | {
      readonly kind: 'not-vouched-any-more'
      readonly branch: BranchName
      readonly why: 'untrusted-run' | 'other-commit'
    }
  | { readonly kind: 'room-made'; readonly branch: BranchName; readonly leftOut: readonly LeftOut[] }
  /** `handedOver`: it left the directories that Coppice manages. */
  | {
      readonly kind: 'worktree-moved'
      readonly branch: BranchName
      readonly path: string
      readonly handedOver: boolean
    }

type HeadNotice =
  | { readonly kind: 'reviewing'; readonly commit: Sha; readonly prBranch: string | undefined }
  | {
      readonly kind: 'head-followed'
      readonly prNumber: number
      readonly how: 'fast-forwarded' | 'rewritten'
      readonly from: Sha
      readonly to: Sha
    }
  | {
      readonly kind: 'head-not-followed'
      readonly prNumber: number
      readonly head: Sha
      readonly at: Sha
      readonly why: HeadNotFollowed
    }

export type HeadNotFollowed =
  | { readonly kind: 'own-commits' | 'diverged' | 'committed-meanwhile' | 'unknown-pull-request' }
  | { readonly kind: 'in-the-way'; readonly paths: readonly string[] }
  /** Another branch or none is checked out. */
  | { readonly kind: 'other-branch'; readonly branch: string | undefined }
  | { readonly kind: 'not-on-branch'; readonly remote: string; readonly branch: string }
  | { readonly kind: 'not-vouched'; readonly commit: Sha; readonly branch: BranchName }
  /** It was made for another work, which the pull request shares. */
  | { readonly kind: 'shared'; readonly work: Work }
  /** A person's: Coppice doesn't move it. */
  | { readonly kind: 'adopted' }
  | { readonly kind: 'facts'; readonly facts: readonly Fact[] }
  | Failed

type ProvisionNotice =
  | { readonly kind: 'not-copied'; readonly path: string; readonly why: NotCopied }
  | {
      readonly kind: 'not-linked'
      readonly path: string
      readonly why: { readonly kind: 'tracked' | 'exists' } | NotReal
    }
  | { readonly kind: 'submodule-not-fetched'; readonly path: string; readonly why: SubmoduleNotFetched }
  | { readonly kind: 'no-issue-store'; readonly path: string; readonly at: string }
  | { readonly kind: 'other-issue-store'; readonly path: string; readonly store: string }
  | { readonly kind: 'scripts-not-for-forks'; readonly codebase: string }
  | { readonly kind: 'scripts-not-approved'; readonly codebase: string }
  /** Without processes: it keeps forking, so none can be named. */
  | { readonly kind: 'left-running'; readonly script: Script; readonly processes: readonly NamedProcess[] }

export type Script = 'setup' | 'teardown'
export type NamedProcess = { readonly pid: number; readonly command: string }

/** Its path leads through something other than a real directory. */
type NotReal = { readonly kind: 'not-real'; readonly at: string }

export type NotCopied =
  | {
      readonly kind: 'name-not-utf8' | 'no-file' | 'leads-out' | 'unreadable' | 'not-regular' | 'gone'
    }
  | { readonly kind: 'unreadable-directory'; readonly source: string }
  | NotReal

export type SubmoduleNotFetched =
  | {
      readonly kind:
        | 'has-files'
        | 'something-else'
        | 'repository-there'
        | 'not-in-base'
        | 'other-address'
        | 'not-plain-https'
    }
  | { readonly kind: 'needs-credentials'; readonly message: string }

type RemovalNotice =
  | { readonly kind: 'processes-not-inspected'; readonly processes: readonly NamedProcess[] }
  | { readonly kind: 'teardown-failed'; readonly message: string }
  | { readonly kind: 'path-exists-again'; readonly path: string }
  | { readonly kind: 'record-still-there'; readonly record: string }
  | { readonly kind: 'not-restored'; readonly left: LeftOut }

/** What cleanup and recovery did. */
type UpkeepNotice =
  /** `saved`: the restore point that has its work. `leftAt`: what couldn't be saved is still there. */
  | {
      readonly kind: 'recovered'
      readonly operation: string
      readonly name: string
      readonly saved?: string
      readonly notSaved?: readonly LeftOut[]
      readonly leftAt?: string
    }
  | { readonly kind: 'left-alone'; readonly operation: string; readonly name?: string; readonly why: LeftAlone }
  | { readonly kind: 'not-recovered'; readonly codebase: string; readonly message: string }
  | { readonly kind: 'restore-points-not-expired'; readonly message: string }
  /** The code host didn't say what it merged. `forge`: its name, if it was asked at all. */
  | { readonly kind: 'forge-silent'; readonly forge?: string; readonly message: string }
  /** `branches`: those that looked merged on the base as it was. `message`: git's message about the fetch. */
  | {
      readonly kind: 'nothing-removed-as-merged'
      readonly why: StaleBase
      readonly message: string | undefined
      readonly branches: readonly BranchName[]
    }

/** Why an interrupted operation stays as it is for now. */
export type LeftAlone =
  /** Its process may still be alive. */
  | { readonly kind: 'unknown-holder'; readonly pid: number }
  | { readonly kind: 'git-running' | 'setup-running' | 'changed-meanwhile' }
  | { readonly kind: 'facts'; readonly facts: readonly Fact[] }
  /** Something else is where its files belong. */
  | { readonly kind: 'in-trash'; readonly trash: string; readonly path: string }
  | (Failed & { readonly remedy?: Remedy })

export type Failed = { readonly kind: 'failed'; readonly message: string }

/** What `onceKey` is for a notice: that a conversation was told which environment it works in. */
export const placeKey = (id: EnvironmentId): string => `place:${id}`
