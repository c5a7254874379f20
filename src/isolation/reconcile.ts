import { basename } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, toAppError } from '../domain/errors.ts'
import { readRestoreData } from '../domain/journal-data.ts'
import type { Notice } from '../domain/notice.ts'
import { liveness } from '../process/identity.ts'
import type { JournalEntry } from '../store/store.ts'
import { clearScratchTrees } from './codebases/landing/scratch-tree.ts'
import { followLink, keepRecognisable } from './codebases/recognise.ts'
import type { IsolationContext, Provider } from './context.ts'
import type { Presence, SettledEntry } from './provider.ts'
import { isAbandoned } from './abandon.ts'
import { dropDeadLeases } from './lease.ts'
import { locked } from './lock/locked.ts'
import { followMoves, type Moved } from './moved.ts'
import { prepareRoot } from './paths.ts'
import { assertRepository } from './codebases/repository-place.ts'
import { allProviders, presenceOf, providerOf } from './provider-of.ts'
import { restorePointsOf } from './restore-points.ts'
import { emptyTrash } from './trash/trash.ts'

export type Reconciled = {
  /** Half-done operations that were finished or undone. */
  readonly settled: readonly Notice[]
  /** Left alone, and why: unknown never counts as dead. */
  readonly left: readonly Notice[]
  readonly missing: readonly IsolatedEnvironment[]
  readonly returned: readonly IsolatedEnvironment[]
  /** Somebody moved these; their new paths are recorded. */
  readonly moved: readonly Moved[]
}

/**
 * Makes the records, git's worktree list and the directories agree again. Idempotent. Leaves alone what a living
 * process is doing.
 */
export const reconcile = async (context: IsolationContext, known: Codebase): Promise<Reconciled> => {
  assertRepository(known)
  const codebase = await followLink(context, known)
  await keepRecognisable(context, codebase)
  const interrupted = await recoverInterrupted(context, codebase)
  await dropDeadLeases(context, codebase)
  // With thousands of environments, looking at each of them twice would take half of a server's start.
  const looked = new Map<string, Looked>()
  const moved = await followMoves(context, codebase, (environment, { state }) =>
    looked.set(environment.id, { path: environment.path, state }),
  )
  const seen = await recordPresence(context, codebase, looked)
  for (const provider of await allProviders(context)) await provider.tidy(context, codebase)
  await clearScratchTrees(context)
  await restorePointsOf(context, codebase)
  const root = await prepareRoot(context.worktreesBase, codebase.name, context.host)
  await emptyTrash(context, root)
  return { ...interrupted, ...seen, moved }
}

/** The cheap part, before every command that changes something: one query if nothing was interrupted. */
export const recoverInterrupted = async (
  context: IsolationContext,
  codebase: Codebase,
): Promise<Pick<Reconciled, 'settled' | 'left'>> => {
  const settled: Notice[] = []
  const left: Notice[] = []
  for (const entry of await context.store.journal.open(context.host, codebase.id)) {
    const state = isAbandoned(entry) ? 'dead' : liveness(entry.holder)
    if (state === 'alive') continue
    if (state === 'cannot-tell') {
      const why = { kind: 'unknown-holder', pid: entry.holder.pid } as const
      left.push({ kind: 'left-alone', operation: entry.kind, why })
      continue
    }
    const end = await locked(context, codebase, `settling an interrupted ${entry.kind}`, () =>
      settle(context, codebase, entry.id),
    )
    const what = { operation: entry.kind, name: nameOf(entry) }
    if (end.outcome === 'left') left.push({ kind: 'left-alone', ...what, why: end.why })
    else {
      const recovered = { ...what, ...(await whereWorkIs(context, entry, end)) }
      settled.push({ kind: 'recovered', ...recovered })
      // The caller may fail before it can report this.
      context.log.warn('recovered from an interrupted operation', recovered)
    }
  }
  return { settled, left }
}

/** Undoing a creation may have saved somebody's work; says where it is. */
const whereWorkIs = async (
  { store }: Pick<IsolationContext, 'store'>,
  { id, kind, data }: JournalEntry,
  { outcome }: SettledEntry,
): Promise<Pick<Recovered, 'saved' | 'notSaved' | 'leftAt'>> => {
  const point = kind === 'remove' ? undefined : await store.restorePoints.get(id)
  return {
    ...(point !== undefined && { saved: id, notSaved: point.contents.leftOut }),
    ...(outcome === 'left-to-user' && { leftAt: String(data['path']) }),
  }
}

type Recovered = Extract<Notice, { kind: 'recovered' }>

const nameOf = ({ data, environmentId, id }: JournalEntry): string =>
  typeof data['path'] === 'string' ? basename(data['path']) : (environmentId ?? id)

const settle = async (context: IsolationContext, codebase: Codebase, id: string): Promise<SettledEntry> => {
  // Read again under the lock: another process may have settled it.
  const entry = await context.store.journal.get(id)
  if (entry === undefined) return { outcome: 'settled' }
  try {
    return await (await settlerOf(context, entry)).recover(context, codebase, entry)
  } catch (error) {
    // One failure must not stop the others.
    const { message, remedy } = toAppError(error)
    return { outcome: 'left', why: { kind: 'failed', message, ...(remedy !== undefined && { remedy }) } }
  }
}

/** The provider of the entry's environment. Spares have none; the provider that keeps spares recovers them. */
const settlerOf = async (
  context: Pick<IsolationContext, 'store' | 'providers'>,
  { environmentId, kind }: JournalEntry,
): Promise<Provider> => {
  if (environmentId === undefined) {
    const keeper = (await allProviders(context)).find(({ can }) => can.keepSpares)
    if (kind === 'spare' && keeper !== undefined) return keeper
    throw new AppError('unexpected', `nobody knows whose ${kind} it was`)
  }
  const environment = await context.store.environments.get(environmentId)
  if (environment === undefined) throw new AppError('unexpected', `its environment ${environmentId} is not recorded`)
  return providerOf(context, environment)
}

type Looked = { readonly path: string; readonly state: Presence['state'] }

/** If the directory vanished, the row becomes missing; if it is back, active. Doesn't touch git's record. */
const recordPresence = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
  looked: ReadonlyMap<string, Looked>,
): Promise<Pick<Reconciled, 'missing' | 'returned'>> => {
  const missing: IsolatedEnvironment[] = []
  const returned: IsolatedEnvironment[] = []
  const open = new Set((await context.store.journal.open(context.host, codebase.id)).map((one) => one.environmentId))
  for (const environment of await context.store.environments.live(codebase.id)) {
    // Never judge another host's rows: a path is only meaningful on one host.
    if (environment.host !== context.host) continue
    const before = looked.get(environment.id)
    const { state } = before?.path === environment.path ? before : await presenceOf(context, codebase, environment)
    if (environment.status === 'active' && state === 'missing') {
      if (await context.store.environments.transition(environment.id, 'active', 'missing')) missing.push(environment)
    }
    // No operation refers to it, so nothing would finish it.
    if (environment.status === 'removing' && !open.has(environment.id)) {
      if (state === 'present') await context.store.environments.transition(environment.id, 'removing', 'active')
      if (state === 'missing') await context.store.environments.transition(environment.id, 'removing', 'missing')
    }
    if (environment.status === 'missing' && state === 'present') {
      if (await context.store.environments.transition(environment.id, 'missing', 'active')) returned.push(environment)
    }
  }
  return { missing, returned }
}

/**
 * Deletes the codebase's expired restore points. Skips one that a restore is reading outside of the lock, or that an
 * interrupted removal or restore will need.
 */
export const expireRestorePoints = async (context: IsolationContext, codebase: Codebase): Promise<number> => {
  let gone = 0
  for (const point of await context.store.restorePoints.expired(context.host, context.clock())) {
    if (point.codebaseId !== codebase.id) continue
    await locked(context, codebase, 'expiring a restore point', async () => {
      const open = await context.store.journal.open(context.host)
      const isWanted = (entry: JournalEntry): boolean =>
        entry.id === point.id || (entry.kind === 'restore' && mayRead(entry, point.id))
      if (open.some(isWanted)) return
      await (await providerOf(context, point.contents.environment)).discardPoint(context, codebase, point.id)
      gone += 1
    })
  }
  return gone
}

/** Also if the entry is unreadable: it may need any point. */
const mayRead = (entry: JournalEntry, pointId: string): boolean => {
  try {
    return readRestoreData(entry).pointId === pointId
  } catch {
    return true
  }
}
