import type { ProcessIdentity } from '../domain/process-identity.ts'
import { commandLineOf, describeGitProcesses, type GitProcess, gitProcessesUsing } from '../process/git-processes.ts'
import { liveness } from '../process/identity.ts'
import { continueStopped, killRun, killTree } from '../process/kill.ts'
import { scriptMark } from '../process/run-mark.ts'
import type { JournalEntry } from '../store/store.ts'
import type { IsolationContext } from './context.ts'

/** How long a git process that outlived us may run before we kill it. A checkout of 30,000 files takes 1 s. */
const patienceMs = 10_000

/** Steps in which git may have been started without the journal knowing its pid yet. */
const startsGit: ReadonlySet<string> = new Set([
  'adding',
  'taking',
  'provisioning',
  'finishing',
  'forgetting',
  'cloning',
])

/**
 * Git's children outlive us: a `git worktree add` keeps writing after our lock is released. Waits for the recorded
 * child and kills it by its identity if it doesn't exit. Returns a message about what is still running; undefined if
 * everything has exited.
 */
export const endLeftoverGit = async (
  context: Pick<IsolationContext, 'clock' | 'secrets' | 'progress'>,
  repoPath: string,
  entry: JournalEntry,
): Promise<string | undefined> => {
  const { child } = entry
  // Killed after starting git but before recording its pid: any git in this repository may be it.
  if (child === undefined) return startsGit.has(entry.step) ? waitForOtherGits(context, repoPath) : undefined
  const until = context.clock() + patienceMs
  let state = liveness(child)
  while (state === 'alive' && context.clock() < until) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    state = liveness(child)
  }
  if (state === 'alive') {
    context.progress('ending a git process that an interrupted operation left behind')
    // On SIGTERM `git worktree add` would delete the directory, perhaps with somebody's work, and so would the
    // `git clone` of a submodule. SIGKILL leaves locks; undoing the creation removes them.
    const isCreation = entry.kind === 'create' || entry.kind === 'restore' || entry.kind === 'spare'
    const killed = await killTree(child, { graceMs: isCreation ? 0 : 5000, clock: context.clock })
    if (killed.outcome !== 'dead')
      return stillRunning(context, [{ identity: child, commandLine: commandLineOf(child) }])
  } else if (state !== 'dead') return `cannot tell whether git process ${child.pid} is still running`
  // A step may start several, and the next one may not be recorded yet.
  return startsGit.has(entry.step) ? waitForOtherGits(context, repoPath) : undefined
}

/** Describes our git processes that use the repository; undefined if there are none. */
export const gitsStillUsing = async (
  context: Pick<IsolationContext, 'secrets'>,
  repoPath: string,
): Promise<string | undefined> => {
  const using = await gitProcessesUsing(repoPath, { ofOthers: false })
  return using.length === 0 ? undefined : stillRunning(context, using)
}

const stillRunning = (
  { secrets }: Pick<IsolationContext, 'secrets'>,
  gits: readonly Pick<GitProcess, 'identity' | 'commandLine'>[],
): string =>
  describeGitProcesses(
    gits.map(({ identity, commandLine }) => ({ identity, commandLine: secrets.redact(commandLine) })),
  )

const waitForOtherGits = async (
  context: Pick<IsolationContext, 'clock' | 'secrets'>,
  repoPath: string,
): Promise<string | undefined> => {
  const until = context.clock() + patienceMs
  let using = await gitProcessesUsing(repoPath, { ofOthers: false })
  while (using.length > 0 && context.clock() < until) {
    // One that we stopped in order to kill it, just before we crashed, would stay stopped.
    await continueStopped(using.filter(isOrphan).map(({ identity }) => identity))
    await new Promise((resolve) => setTimeout(resolve, 50))
    using = await gitProcessesUsing(repoPath, { ofOthers: false })
  }
  return using.length === 0 ? undefined : stillRunning(context, using)
}

/** Started by a Coppice process that is dead. */
const isOrphan = ({ startedBy }: GitProcess): boolean => startedBy !== undefined && liveness(startedBy) === 'dead'

/**
 * Kills what an interrupted setup or teardown started. Returns whether all of it has exited. Teardown runs before the
 * removal takes its next step.
 */
export const endScripts = async (
  { home, clock }: Pick<IsolationContext, 'home' | 'clock'>,
  { environmentId, kind, step }: JournalEntry,
): Promise<boolean> => {
  const script = kind === 'create' ? 'setup' : kind === 'remove' && step === 'intent' ? 'teardown' : undefined
  if (environmentId === undefined || script === undefined) return true
  return (await killRun([scriptMark(home, environmentId, script)], { graceMs: 5000, clock })).outcome !== 'survivors'
}

/** Runs a git command and records its child in the journal, with `data`, while it runs. */
export const withChild = async <T>(
  context: Pick<IsolationContext, 'store'>,
  entryId: string,
  data: Record<string, unknown>,
  work: (onSpawn: (child: ProcessIdentity) => void) => Promise<T>,
): Promise<T> => {
  let recorded = Promise.resolve()
  try {
    return await work((child) => {
      const before = recorded
      recorded = before.then(() => context.store.journal.advance(entryId, { child, data }))
      // Awaited below; without this a failure would be unhandled while git still runs.
      recorded.catch(() => undefined)
    })
  } finally {
    await recorded
  }
}
