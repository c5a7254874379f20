import { setTimeout as delay } from 'node:timers/promises'
import type { Codebase } from '../../domain/environment.ts'
import type { Item } from '../../domain/fleet/item.ts'
import { isOpenLanding, type Landing, type LandingBlock } from '../../domain/fleet/landing.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { sentence } from '../../domain/text/words.ts'
import type { FleetContext } from '../../fleet/context.ts'
import { land as queueWork, type LandOutcome, type LandRefusal } from '../../fleet/landing/land.ts'
import { type QueueOutcome, workQueue } from '../../fleet/landing/queue.ts'
import { watchPullRequests } from '../../fleet/landing/pull-requests.ts'
import { type Call, command, isSet, type Workplace } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { findTargetCodebase, resolveTargetForWrite } from '../target.ts'
import { explainBlock, explainLand, landingJson, landingLine, landingName } from '../views/landings.ts'
import { exitCodes } from '../views/failure.ts'
import { refusalLines, refusalObject } from '../views/fleet-refusals.ts'
import { remedySentence } from '../views/remedy.ts'
import { lastCommand, printable, type View } from '../views/view.ts'
import { changerOf, itemOf } from './scope.ts'

type Worked = { readonly codebase: Codebase; readonly outcome: QueueOutcome; readonly landings: readonly Landing[] }

type Result =
  | {
      readonly kind: 'refused'
      readonly codebase: string
      readonly item: number | undefined
      readonly why: LandRefusal
    }
  | {
      readonly kind: 'queued'
      readonly codebase: string
      readonly queued: Extract<LandOutcome, { outcome: 'queued' }>
      /** Nothing works the queue off now. */
      readonly hint: boolean
    }
  | {
      readonly kind: 'waited'
      readonly codebase: string
      readonly landing: Landing
      readonly blocked: LandingBlock | undefined
    }
  | { readonly kind: 'worked'; readonly all: readonly Worked[] }

const run = async (call: Call): Promise<Result> => {
  const { words, values } = call
  const [word] = words
  if (isSet(values, 'run')) {
    if (word !== undefined || isSet(values, 'wait')) throw usage('--run works off what is queued', 'usage: land --run')
    return runQueues(call)
  }
  if (word === undefined) throw usage('missing required argument: <item|branch>', 'usage: land <item|branch> [--wait]')
  const { fleet, codebase, item } = await subjectOf(call, word)
  const conversation = call.chat?.conversation.id
  const what = item === undefined ? { branch: word } : { item }
  const outcome = await queueWork(fleet, codebase, { what, by: changerOf(call, fleet), conversation })
  if (outcome.outcome === 'refused')
    return { kind: 'refused', codebase: codebase.name, item: item?.id, why: outcome.why }
  const hasServer = call.chat !== undefined || (await fleet.wakeServer())
  if (!isSet(values, 'wait')) return { kind: 'queued', codebase: codebase.name, queued: outcome, hint: !hasServer }
  return waitFor(call, fleet, { codebase, id: outcome.landing.id, hasServer })
}

/** A number is an item, anything else a branch. */
const subjectOf = async (
  call: Call,
  word: string,
): Promise<{ readonly fleet: FleetContext; readonly codebase: Codebase; readonly item: Item | undefined }> => {
  if (/^(?:#|item-)?\d{1,9}$/.test(word)) {
    const workplace = await call.open()
    const item = await itemOf(call, workplace)
    const codebase = await workplace.context.store.codebases.get(item.codebaseId)
    if (codebase !== undefined) return { fleet: await workplace.fleet(), codebase, item }
  }
  const target = await resolveTargetForWrite(call)
  return { fleet: await target.fleet(), codebase: target.codebase, item: undefined }
}

/** Without a server, this process works the queue off itself. */
const waitFor = async (
  { signal }: Call,
  fleet: FleetContext,
  { codebase, id, hasServer }: { readonly codebase: Codebase; readonly id: number; readonly hasServer: boolean },
): Promise<Result> => {
  const { store } = fleet.isolation
  const since = fleet.isolation.clock()
  for (;;) {
    const worked = hasServer ? undefined : await workQueue(fleet, codebase, signal)
    const landing = await store.landings.get(id)
    if (landing === undefined || !isOpenLanding(landing)) {
      if (landing !== undefined) return { kind: 'waited', codebase: codebase.name, landing, blocked: undefined }
      throw usage(`landing ${id} is gone`, 'run it again')
    }
    const { blocked } = await store.landings.queue(codebase.id)
    // One from before may have passed.
    const why =
      worked?.outcome === 'blocked' ? worked.why : blocked !== undefined && blocked.at >= since ? blocked : undefined
    if (why !== undefined) return { kind: 'waited', codebase: codebase.name, landing, blocked: why }
    signal.throwIfAborted()
    await delay(200, undefined, { signal })
  }
}

/** Agents that are just finishing get this long. */
const FINISHING_MS = 60_000

const runQueues = async (call: Call): Promise<Result> => {
  const workplace = await call.open()
  const fleet = await workplace.fleet()
  const all: Worked[] = []
  for (const codebase of await codebasesOf(call, workplace)) {
    const { store } = fleet.isolation
    await watchPullRequests(fleet, codebase, call.signal)
    const before = await store.landings.pending(codebase.id)
    if (before.length === 0) continue
    const until = performance.now() + FINISHING_MS
    let outcome = await workQueue(fleet, codebase, call.signal)
    while (outcome.outcome === 'done' && outcome.left && performance.now() < until) {
      await delay(200, undefined, { signal: call.signal })
      outcome = await workQueue(fleet, codebase, call.signal)
    }
    const landings = await Promise.all(before.map(({ id }) => store.landings.get(id)))
    all.push({ codebase, outcome, landings: landings.filter((one) => one !== undefined) })
  }
  return { kind: 'worked', all }
}

const codebasesOf = async (call: Call, workplace: Workplace): Promise<readonly Codebase[]> => {
  const one = await findTargetCodebase(call, workplace)
  const { store, host } = workplace.context
  return one === undefined ? store.codebases.list(host) : [one]
}

const blockedLines = (why: LandingBlock, codebase: string, view: View): string[] => {
  const { what, todo } = explainBlock(why, codebase)
  return [printable(sentence(what)), ...todo.map((one) => `  ${printable(remedySentence(one, view))}`)]
}

const outcomeLines = ({ codebase, outcome, landings }: Worked, view: View): string[] => {
  const lines = landings.map((landing) => landingLine(landing, view))
  switch (outcome.outcome) {
    case 'done':
      return lines
    case 'blocked':
      return [...lines, ...blockedLines(outcome.why, codebase.name, view)]
    case 'busy':
      return [`Process ${outcome.holder?.process.pid ?? ''} is working off the queue of ${codebase.name}.`]
    case 'fleet-down':
      return [`The fleet is down. ${remedySentence(remedy`start it: ${coppice('fleet up')}`, view)}`]
  }
}

const toText = (result: Result, view: View): string => {
  switch (result.kind) {
    case 'refused': {
      const { item, why, codebase } = result
      return refusalLines(
        `Can't land ${item === undefined ? 'it' : `item ${item}`}`,
        [explainLand(why, item, codebase)],
        view,
      )
    }
    case 'queued': {
      const { landing, before, already, unapproved } = result.queued
      const behind = before === 0 ? '' : `, after ${before} other${before === 1 ? '' : 's'}`
      const trust = unapproved && ({ kind: 'not-approved', commands: unapproved } as const)
      return [
        `${already ? 'Already queued' : view.paint('green', 'Queued')}: ${landingName(landing, view)} as landing ${landing.id}${behind}`,
        ...(trust === undefined ? [] : blockedLines(trust, result.codebase, view)),
        ...(result.hint
          ? [`No server is running. To land it now: ${lastCommand(view.commandText('land --run'), view)}`]
          : []),
      ].join('\n')
    }
    case 'waited': {
      const { landing, blocked, codebase } = result
      return [landingLine(landing, view), ...(blocked === undefined ? [] : blockedLines(blocked, codebase, view))].join(
        '\n',
      )
    }
    case 'worked':
      return result.all.length === 0
        ? 'Nothing is queued.'
        : result.all.flatMap((worked) => outcomeLines(worked, view)).join('\n')
  }
}

const isBlocked = ({ outcome }: Worked): boolean => outcome.outcome !== 'done'

const exitCode = (result: Result): number => {
  switch (result.kind) {
    case 'refused':
      return exitCodes.refused
    case 'queued':
      return exitCodes.done
    case 'waited':
      if (result.blocked !== undefined) return exitCodes.refused
      return result.landing.state === 'landed' ? exitCodes.done : exitCodes.failed
    case 'worked':
      if (result.all.some(isBlocked)) return exitCodes.refused
      return result.all.some(({ landings }) => landings.some(({ state }) => state === 'refused'))
        ? exitCodes.failed
        : exitCodes.done
  }
}

const toJson = (result: Result): unknown => {
  switch (result.kind) {
    case 'refused': {
      const { item, why, codebase } = result
      return refusalObject("can't land", [{ ...explainLand(why, item, codebase), kind: why.kind }])
    }
    case 'queued':
      return landingJson(result.queued.landing, result.codebase)
    case 'waited':
      return result.blocked === undefined
        ? landingJson(result.landing, result.codebase)
        : refusalObject("can't land", [{ ...explainBlock(result.blocked, result.codebase), kind: result.blocked.kind }])
    case 'worked':
      return result.all.flatMap(({ codebase, landings }) => landings.map((one) => landingJson(one, codebase.name)))
  }
}

export const land = command<Result>({ run, toText, toJson, exitCode })
