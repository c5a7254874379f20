import { join, relative } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { type GateAnswer, type GateName, cannotTell, no, yes } from '../domain/removal/gates.ts'
import type { RepositoryWork, Uncommitted } from '../domain/removal/reason.ts'
import type { Unreachable } from '../domain/removal/unreachable.ts'
import type { Merged } from '../domain/merge-proof.ts'
import type { Notice } from '../domain/notice.ts'
import { shownPath } from '../domain/text/raw-path.ts'
import type { Tree } from '../domain/tree.ts'
import { liveness } from '../process/identity.ts'
import { processesInside, type ProcessesInside } from '../process/inside/processes-inside.ts'
import { mountsInside } from '../process/files/mounts.ts'
import { processTable } from '../process/table.ts'
import { selfAndAncestors } from '../process/tree.ts'
import { agentsInside } from './agents-inside.ts'
import type { IsolationContext } from './context.ts'
import { holdersOf } from './holders.ts'
import { isInside, managedRoot } from './paths.ts'
import { providerOf } from './provider-of.ts'
import type { Presence } from './provider.ts'
import type { RemoveOptions } from './remove-outcome.ts'

/** Files in an environment that removal would delete. Paths are raw. */
export type Contents = {
  /** Uncommitted work, one reason each. */
  readonly problems: readonly Uncommitted[]
  readonly worktrees: readonly { readonly path: string; readonly repository: string }[]
  readonly repositories: readonly { readonly path: string; readonly work: RepositoryWork | undefined }[]
}

/** How the environment's provider inspects it. Each method throws if it can't. */
export type Inspection<Look extends Contents> = {
  contents(tree: Tree): Promise<Look>
  unreachable(tree: Tree): Promise<readonly Unreachable[]>
  /** Copied files, such as a `.env`, that have changed since they were copied. */
  changedCopies(tree: Tree): Promise<readonly string[]>
}

export type Subject<Look extends Contents> = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly presence: Presence
  /** Called while the other gates run: only conversation holds depend on it. */
  readonly merged: () => Promise<Merged>
  readonly inspection: Inspection<Look>
  readonly options: RemoveOptions
  /** The processes in it, if somebody has looked (default: look). */
  readonly inside?: (() => Promise<ProcessesInside>) | undefined
}

export type Judgement<Look extends Contents> = {
  /** One `yes` per gate that passes, every reason of one that doesn't. With a mount inside, files aren't checked. */
  readonly answers: readonly GateAnswer[]
  readonly contents: Look | undefined
  /** Findings that don't block the removal but are shown to the user. */
  readonly notices: readonly Notice[]
}

/** Runs every gate and changes nothing. A check that throws is *cannot tell*, which counts as no. */
export const askGates = async <Look extends Contents>(
  context: IsolationContext,
  subject: Subject<Look>,
): Promise<Judgement<Look>> => {
  const { presence } = subject
  const tree = presence.state === 'present' ? presence.tree : undefined
  const notices: Notice[] = []
  // First and alone: any look at the files would descend into the mount.
  const mounts = await isUnmounted(tree === undefined ? [] : [tree.path, tree.gitDir])
  const [ours, use, others, files] = await Promise.all([
    ask('ours', () => isOurs(context, subject)),
    ask('not-in-use', () => usesOf(context, subject.environment, tree, notices)),
    ask('nobody-elses', () => heldBy(context, subject)),
    allPass(mounts) ? askAboutFiles(subject, tree) : { answers: [], contents: undefined },
  ])
  // While git inspects the tree it may run filters there, so check again whether a process is still inside.
  const users = allPass(use) ? use : await stillInUse(context, subject, tree)
  return { answers: [...ours, ...mounts, ...users, ...others, ...files.answers], contents: files.contents, notices }
}

/** The same gates, but only until one refuses: git looks at the files last, and only if nothing else holds it. */
export const firstRefusals = async <Look extends Contents>(
  context: IsolationContext,
  subject: Subject<Look>,
): Promise<Judgement<Look>> => {
  const { presence, environment, inside } = subject
  const tree = presence.state === 'present' ? presence.tree : undefined
  const stages: readonly (() => Promise<GateAnswer[]>)[] = [
    () => ask('ours', () => isOurs(context, subject)),
    () => ask('nobody-elses', () => heldBy(context, subject)),
    () => isUnmounted(tree === undefined ? [] : [tree.path, tree.gitDir]),
    () => ask('not-in-use', () => usesOf(context, environment, tree, [], inside)),
  ]
  for (const stage of stages) {
    const answers = await stage()
    if (!allPass(answers)) return { answers, contents: undefined, notices: [] }
  }
  return { ...(await askAboutFiles(subject, tree)), notices: [] }
}

const heldBy = async (context: IsolationContext, subject: Subject<Contents>): Promise<GateAnswer[]> =>
  (await holdersOf(context, subject)).map((fact) => no('nobody-elses', fact))

const askAboutFiles = async <Look extends Contents>(
  { environment, presence, inspection }: Subject<Look>,
  tree: Tree | undefined,
): Promise<Pick<Judgement<Look>, 'answers' | 'contents'>> => {
  const look = tree && inspection.contents(tree)
  look?.catch(() => undefined)
  const answers = await Promise.all([
    ask('nothing-uncommitted', async () => (look === undefined ? notLooked(presence) : uncommittedIn(await look))),
    ask('nothing-unreachable', async () =>
      tree === undefined ? [] : (await inspection.unreachable(tree)).map((fact) => no('nothing-unreachable', fact)),
    ),
    ask('no-worktree-inside', async () => (look === undefined ? [] : worktreesIn(environment, await look))),
    ask('no-repository-inside', async () => (look === undefined ? [] : repositoriesIn(environment, await look))),
    ask('no-kept-files', async () =>
      tree === undefined
        ? []
        : (await inspection.changedCopies(tree)).map((path) => no('no-kept-files', { kind: 'kept-file', path })),
    ),
  ])
  return { answers: answers.flat(), contents: await look?.catch(() => undefined) }
}

export const reasonsIn = (environment: IsolatedEnvironment, contents: Contents): GateAnswer[] => [
  ...uncommittedIn(contents),
  ...worktreesIn(environment, contents),
  ...repositoriesIn(environment, contents),
]

const uncommittedIn = ({ problems }: Contents): GateAnswer[] => problems.map((fact) => no('nothing-uncommitted', fact))

const worktreesIn = ({ path }: IsolatedEnvironment, { worktrees }: Contents): GateAnswer[] =>
  worktrees.map((inner) => {
    const name = shownPath(inner.path)
    const { repository } = inner
    return no('no-worktree-inside', { kind: 'worktree-inside', path: join(path, name), name, repository })
  })

const repositoriesIn = ({ path }: IsolatedEnvironment, { repositories }: Contents): GateAnswer[] =>
  repositories.flatMap(({ path: raw, work }) => {
    if (work === undefined) return []
    const name = shownPath(raw)
    return [no('no-repository-inside', { kind: 'repository-inside', path: join(path, name), name, work })]
  })

/** Nothing is mounted on or below these directories: deleting them would delete what is mounted there. */
export const isUnmounted = (directories: readonly string[]): Promise<GateAnswer[]> =>
  ask('no-mount', async () =>
    (await mountsInside(directories)).map(({ path, what }) =>
      no('no-mount', { kind: 'mount', path, name: nameIn(directories, path), what }),
    ),
  )

const nameIn = (directories: readonly string[], path: string): string => {
  const directory = directories.find((one) => isInside(one, path))
  return directory === undefined ? path : relative(directory, path) || path
}

export const allPass = (answers: readonly GateAnswer[]): boolean => answers.every(({ answer }) => answer === 'yes')

/** Checked again after the directory was moved away. */
export const stillInUse = async (
  context: IsolationContext,
  { environment }: { readonly environment: Used },
  tree: Tree | undefined,
): Promise<GateAnswer[]> => ask('not-in-use', () => usesOf(context, environment, tree))

const ask = async (gate: GateName, question: () => Promise<GateAnswer[]>): Promise<GateAnswer[]> => {
  try {
    const reasons = await question()
    return reasons.length > 0 ? reasons : [yes(gate)]
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return [cannotTell(gate, { kind: 'unknown', why })]
  }
}

/** We created this very instance, inside a root of ours. */
const isOurs = async (
  context: Pick<IsolationContext, 'host'>,
  { environment, presence }: Pick<Subject<Contents>, 'environment' | 'presence'>,
): Promise<GateAnswer[]> => {
  if (environment.host !== context.host) return [no('ours', { kind: 'other-host' })]
  if (!environment.owned) return [no('ours', { kind: 'adopted' })]
  switch (presence.state) {
    case 'not-ours':
    case 'moved':
      return [no('ours', { kind: 'another-worktree', why: presence.detail })]
    case 'cannot-tell':
      throw new Error(presence.detail)
    case 'missing':
      return []
    case 'present':
      return (await managedRoot(environment.path, context.host)) === undefined
        ? [no('ours', { kind: 'outside-root', path: environment.path })]
        : []
  }
}

/** Spares also have an id and a provider. */
export type Used = Pick<IsolatedEnvironment, 'id' | 'provider'> & Partial<Pick<IsolatedEnvironment, 'work'>>

/** No lease, no process inside, not locked by another tool. */
export const usesOf = async (
  context: IsolationContext,
  environment: Used,
  tree: Tree | undefined,
  notices: Notice[] = [],
  scan?: () => Promise<ProcessesInside>,
): Promise<GateAnswer[]> => {
  const reasons: GateAnswer[] = []
  for (const lease of await context.store.leases.ofEnvironments([environment.id])) {
    const state = lease.host === context.host ? liveness(lease.holder) : 'cannot-tell'
    const { purpose, holder } = lease
    if (state === 'alive') reasons.push(no('not-in-use', { kind: 'lease', purpose, pid: holder.pid }))
    if (state === 'cannot-tell') reasons.push(cannotTell('not-in-use', { kind: 'unknown-lease', purpose }))
  }
  reasons.push(...(await agentsInside(context, environment)))
  if (tree === undefined) return reasons
  const lock = await (await providerOf(context, environment)).lockReason(tree)
  if (lock !== undefined && !lock.startsWith('coppice: ')) {
    reasons.push(no('not-in-use', { kind: 'lock', reason: lock }))
  }
  const { inside: found, unreadable } = await (scan ?? scanOf(context, tree))()
  const inside = found.filter(({ dir }) => dir === tree.path)
  // The shell that called us, and its ancestors, are the user.
  const you = inside.length === 0 ? undefined : selfAndAncestors(await processTable(), context.self.pid)
  // Files that we opened for these checks aren't use; having our working directory there is.
  const users = inside.filter(({ pid, how }) => pid !== context.self.pid || how === 'cwd' || how === 'root')
  if (users.some(({ pid }) => you?.has(pid))) reasons.push(no('not-in-use', { kind: 'you' }))
  for (const { pid, command } of users) {
    if (you?.has(pid) === true) continue
    reasons.push(no('not-in-use', { kind: 'process', pid, command }))
  }
  if (unreadable.length > 0) {
    const processes = unreadable.map(({ pid, command }) => ({ pid, command }))
    notices.push({ kind: 'processes-not-inspected', processes })
  }
  return reasons
}

const scanOf =
  ({ git }: Pick<IsolationContext, 'git'>, { path }: Tree) =>
  (): Promise<ProcessesInside> =>
    processesInside([path], { except: git.running })

const notLooked = (presence: Presence): GateAnswer[] =>
  presence.state === 'missing'
    ? [no('nothing-uncommitted', { kind: 'directory-gone' })]
    : [cannotTell('nothing-uncommitted', { kind: 'unknown-files' })]
