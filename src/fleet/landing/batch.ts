/*
 * One batch. In: the queued branches, oldest first. Out: those that passed are on the base branch, and the one that
 * failed, if any, is refused. `domain/fleet/landing-batch.ts` decides what is tested.
 */
import type { Codebase } from '../../domain/environment.ts'
import type { Landing, LandingBlock, LandingGate, LandingPush } from '../../domain/fleet/landing.ts'
import { type BatchVerdict, learn, nextStep, startSearch } from '../../domain/fleet/landing-batch.ts'
import type { Sha } from '../../domain/names.ts'
import { type LandingBase, landingBase, moveBase } from '../../isolation/codebases/landing/target.ts'
import type { FleetContext } from '../context.ts'
import { type GateResult, gatesDigest, runGates, unapprovedGates } from './gates.ts'
import { standingOf } from './pick.ts'
import { recordLanded, refuse } from './settle.ts'
import { type Member, stackUp } from './stack.ts'

export type BatchOutcome =
  | { readonly outcome: 'worked' }
  /** The base moved, or a member was withdrawn: start over. */
  | { readonly outcome: 'moved'; readonly base: string }
  | { readonly outcome: 'blocked'; readonly why: LandingBlock }

export const landBatch = async (
  context: FleetContext,
  codebase: Codebase,
  ready: readonly Landing[],
  signal?: AbortSignal,
): Promise<BatchOutcome> => {
  const [head] = ready
  const base = await landingBase(context.isolation, codebase, head?.baseBranch, { signal })
  if ('blocked' in base) return { outcome: 'blocked', why: base.blocked }
  const unapproved = await unapprovedGates(context, codebase, base.config)
  if (unapproved !== undefined) return { outcome: 'blocked', why: { kind: 'not-approved', commands: unapproved } }
  const some = ready
    .filter(({ baseBranch, mergeCommit }) => baseBranch === head?.baseBranch && mergeCommit === undefined)
    .slice(0, base.config.landingBatch)
  const { members, refused } = await stackUp(context, codebase, base, some, signal)
  for (const { landing, why } of refused) await refuse(context, landing, { why })
  if (members.length === 0) return { outcome: 'worked' }
  const testing = await startTesting(context, members)
  if (testing === undefined) return { outcome: 'worked' }
  return test(context, codebase, base, testing, signal)
}

/** Undefined if one was withdrawn meanwhile: the commits after it contain it. */
const startTesting = async (
  { isolation: { store, clock, failpoint } }: FleetContext,
  members: readonly Member[],
): Promise<readonly Member[] | undefined> => {
  const started: Member[] = []
  for (const { landing, commit } of members) {
    const attempts = landing.attempts + 1
    if (!(await store.landings.move(landing.id, 'queued', 'testing', clock(), { attempts }))) continue
    started.push({ landing: { ...landing, state: 'testing', attempts }, commit })
  }
  await failpoint('landing.testing')
  if (started.length === members.length) return started
  await requeue(store, started, clock())
  return undefined
}

const test = async (
  context: FleetContext,
  codebase: Codebase,
  base: LandingBase,
  members: readonly Member[],
  signal: AbortSignal | undefined,
): Promise<BatchOutcome> => {
  const { store, clock } = context.isolation
  const gates = gatesDigest(base.config)
  const { verdict, results } = await search(context, codebase, { base, members, gates, signal })
  if (verdict.kind === 'base-red') {
    await requeue(store, members, clock())
    const { command = '', log = '' } = results.get(base.sha)?.gate ?? {}
    return { outcome: 'blocked', why: { kind: 'base-red', base: base.target.branch, command, log } }
  }
  const passed = members.slice(0, verdict.green)
  const last = passed.at(-1)
  if (last !== undefined) {
    const gate = results.get(last.commit)?.gate
    const pushed = await push(context, codebase, { base, members: passed, to: last.commit, gate, gates }, signal)
    if (pushed.outcome !== 'worked') {
      await requeue(store, members, clock())
      return pushed
    }
  }
  const blamed = verdict.red === undefined ? undefined : members[verdict.red]
  const gate = blamed && results.get(blamed.commit)?.gate
  if (blamed !== undefined && gate !== undefined) {
    const { command, log } = gate
    await refuse(context, blamed.landing, { why: { kind: 'gate-failed', command, log }, gate })
  }
  await requeue(store, members.slice(verdict.green + (blamed === undefined ? 0 : 1)), clock())
  return { outcome: 'worked' }
}

type Search = {
  readonly base: LandingBase
  readonly members: readonly Member[]
  readonly gates: string
  readonly signal: AbortSignal | undefined
}

const search = async (
  context: FleetContext,
  codebase: Codebase,
  { base, members, gates, signal }: Search,
): Promise<{ readonly verdict: BatchVerdict; readonly results: ReadonlyMap<Sha, GateResult> }> => {
  const { green } = await context.isolation.store.landings.queue(codebase.id)
  const isKnown = green?.commit === base.sha && green.gates === gates
  const results = new Map<Sha, GateResult>()
  let found = startSearch(members.length, isKnown ? true : undefined)
  for (let step = nextStep(found); ; step = nextStep(found)) {
    if (step.kind !== 'test') return { verdict: step, results }
    const member = members[step.size - 1]
    const commit = member?.commit ?? base.sha
    const landing = member?.landing ?? members[0]?.landing ?? { id: 0 }
    const result =
      isKnown && commit === base.sha
        ? { passed: true, gate: undefined }
        : await runGates(context, codebase, {
            commit,
            base: { branch: base.target.branch, sha: base.sha },
            config: base.config,
            landing,
            signal,
          })
    results.set(commit, result)
    found = learn(found, step.size, result.passed)
  }
}

type Pushing = {
  readonly base: LandingBase
  readonly members: readonly Member[]
  readonly to: Sha
  readonly gate: LandingGate | undefined
  readonly gates: string
}

/** The intent first: after a crash the next process asks the remote whether it was pushed. */
const push = async (
  context: FleetContext,
  codebase: Codebase,
  { base, members, to, gate, gates }: Pushing,
  signal: AbortSignal | undefined,
): Promise<BatchOutcome> => {
  const { isolation } = context
  const { store, failpoint } = isolation
  const { target, sha: from } = base
  const intent: LandingPush = {
    base: target.branch,
    from,
    to,
    members: members.map(({ landing, commit }) => ({ id: landing.id, landedSha: commit })),
    gate,
    gates,
  }
  const isRecorded = await store.transaction(async (inside) => {
    for (const { landing } of members) {
      if ((await inside.landings.get(landing.id))?.state !== 'testing') return false
      if ((await standingOf(inside, landing)) !== 'ready') return false
    }
    await inside.landings.updateQueue(codebase.id, { push: intent })
    return true
  })
  if (!isRecorded) return { outcome: 'moved', base: target.branch }
  await failpoint('landing.push-intent')
  // Nothing to push: the base has all of it already.
  const moved =
    from === to
      ? ({ outcome: 'landed' } as const)
      : await moveBase(isolation, codebase, target, { from, to }, { signal })
  await failpoint('landing.pushed')
  if ('blocked' in moved) {
    // It may have arrived all the same: the next round asks.
    if (moved.blocked.kind !== 'offline') await store.landings.updateQueue(codebase.id, { push: undefined })
    return { outcome: 'blocked', why: moved.blocked }
  }
  if (moved.outcome === 'moved') {
    await store.landings.updateQueue(codebase.id, { push: undefined })
    return { outcome: 'moved', base: target.branch }
  }
  await confirmPush(context, codebase, intent)
  return { outcome: 'worked' }
}

/** The base branch has it. */
export const confirmPush = async (context: FleetContext, codebase: Codebase, intent: LandingPush): Promise<void> => {
  const { store, failpoint } = context.isolation
  await store.transaction(async (inside) => {
    await recordLanded(context, inside, intent)
    const green = { commit: intent.to, gates: intent.gates }
    await inside.landings.updateQueue(codebase.id, { push: undefined, green })
  })
  await failpoint('landing.landed')
}

/** Back into the queue, unless they were withdrawn or are being pushed. */
export const requeue = async (
  store: FleetContext['isolation']['store'],
  members: readonly { readonly landing: Pick<Landing, 'id' | 'codebaseId'> }[],
  at: number,
): Promise<void> => {
  for (const { landing } of members) {
    const { push } = await store.landings.queue(landing.codebaseId)
    if (push?.members.some(({ id }) => id === landing.id) === true) continue
    await store.landings.move(landing.id, 'testing', 'queued', at)
  }
}
