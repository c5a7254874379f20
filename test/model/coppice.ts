import type { GateName } from '../../src/domain/removal/gates.ts'
import type { IsolationHints } from '../../src/domain/hints.ts'
import { toEnvironmentId } from '../../src/domain/names.ts'
import type { Work } from '../../src/domain/work.ts'
import { type Command, type How, act, command, here, pick, present } from './command.ts'
import { expected } from './expected.ts'
import type { Outcome } from './operation.ts'
import { prBranch } from './real.ts'
import { type Standing, standingsOf } from './standings.ts'
import { type Environment, type Model, day, findByWork } from './state.ts'

/** What Coppice is asked to do, what it must answer, and what it may change. */

const name = (kind: string, { dieAt }: How): string => (dieAt === undefined ? kind : `kill ${kind}`)
const shownHow = ({ dieAt, dieAgainAt }: How): string =>
  dieAt === undefined
    ? ''
    : `, dies at failpoint ${dieAt}${dieAgainAt === undefined ? '' : ` and recovery at ${dieAgainAt}`}`

export type Wanted = { readonly work: Work; readonly hints: IsolationHints; readonly branch?: string }

export const issue = (number: number): Wanted => ({ work: { type: 'issue', id: String(number) }, hints: {} })
export const task = (id: string): Wanted => ({ work: { type: 'task', id }, hints: {} })
/** `create <branch>` with a branch that is there. */
export const topic = (number: number): Wanted => ({
  work: { type: 'task', id: `topic-${number}` },
  hints: {},
  branch: `topic-${number}`,
})
export const pullRequest = (number: number, fixes: readonly number[]): Wanted => ({
  work: { type: 'pr', id: String(number) },
  hints: { prBranch: prBranch(number), linkedIssues: fixes },
})

export const resolve = (wanted: Wanted, conversation: number | undefined, how: How = here): Command =>
  command(name('resolve', how), `${wanted.work.type} ${wanted.work.id}${shownHow(how)}`, async (model, real) => {
    const { work, hints } = wanted
    const speaker =
      conversation === undefined || how !== here ? undefined : pick(model.conversations.values(), conversation)
    const bound = speaker?.environment === undefined ? undefined : model.environments.get(speaker.environment)
    const found = whose(model, wanted, bound)
    const crowded = model.environments.size >= 5
    const outcome = await act(
      model,
      real,
      how,
      { kind: 'resolve', ...wanted, ...(speaker === undefined ? {} : { conversation: speaker.name }) },
      {
        create: true,
        adopt: true,
        // A missing one gives way to the new one; at the limit what is merged goes.
        remove: (one, standing) =>
          (one.away !== undefined && found === undefined) || (crowded && isMerged(standing) && mayGo(one, standing)),
      },
    )
    if (speaker !== undefined && bound !== undefined && bound.away !== undefined) speaker.environment = undefined
    if (outcome === undefined) return true
    if (outcome.id === undefined) {
      expected(found === undefined, `${work.type} ${work.id} has ${found?.branch} and got "${outcome.said}"`)
      expected(mayFail(model, wanted, outcome.said, crowded), `no environment: ${outcome.said} (${outcome.detail})`)
      return true
    }
    const got = model.environments.get(outcome.id)
    expected(got !== undefined, 'resolved to an environment that is not live')
    if (found !== undefined)
      expected(got.id === found.id, `G2: ${work.type} ${work.id} has ${found.branch} and got ${got.branch}`)
    else if (outcome.said === 'created') {
      const branches = [wanted.branch ?? hints.prBranch ?? `${work.type}-${work.id}`, `pr-${work.id}`]
      expected(branches.includes(got.branch), `${work.type} ${work.id} got branch ${got.branch}`)
    } else expected(outcome.said !== 'same-work', `${work.type} ${work.id} was found, and had nothing`)
    got.lastActivityAt = model.now
    return true
  })

/** Its conversation's, its own, or that of a work it is linked to, in this order; only one that is really there. */
const whose = (model: Model, { work, hints }: Wanted, bound: Environment | undefined): Environment | undefined => {
  const linked = (hints.linkedIssues ?? []).map((number) => findByWork(model, issue(number).work))
  return [bound, findByWork(model, work), ...linked].find((one) => one !== undefined && one.away === undefined)
}

const mayFail = (model: Model, { work, hints, branch }: Wanted, said: string, crowded: boolean): boolean => {
  const wanted = branch ?? hints.prBranch ?? `${work.type}-${work.id}`
  const names = [wanted, `pr-${work.id}`]
  const elsewhere = [...model.environments.values(), ...model.strangers.values()].some(
    (one) => names.includes(one.branch) || (one.snapshot.branch !== undefined && names.includes(one.snapshot.branch)),
  )
  switch (said) {
    case 'limit':
      return crowded
    case 'branch-in-use':
    case 'not-adoptable':
      return elsewhere
    case 'path-taken':
      return model.leftovers.size > 0 || [...model.environments.values()].some(({ away }) => away !== undefined)
    default:
      return false
  }
}

/** Automation may take it: ours, there, nothing refuses. */
const mayGo = ({ owned, away }: Environment, standing: Standing | undefined): boolean =>
  owned && away === undefined && standing?.automatic.some((gates) => gates.size === 0) === true

const isMerged = (standing: Standing | undefined): boolean =>
  standing?.merged === 'yes' || standing?.merged === 'unknown'

export const remove = (nth: number, force: boolean, how: How = here): Command =>
  command(name('remove', how), `${nth}${force ? ', force' : ''}${shownHow(how)}`, async (model, real) => {
    const environment = pick(model.environments.values(), nth)
    if (environment === undefined) return false
    const standings = standingsOf(model, real)
    const possible = standings.get(environment.id)?.[force ? 'forced' : 'command'] ?? []
    const operation = { kind: 'remove', id: environment.id, force, trigger: 'command' } as const
    const mine = (one: Environment): boolean => one === environment
    const allowed = {
      release: mine,
      remove: (one: Environment) => mine(one) && possible.some((gates) => gates.size === 0),
    }
    const outcome = await act(model, real, how, operation, allowed, standings)
    if (outcome !== undefined) checkAnswer(environment, outcome, possible)
    return true
  })

/** Adopted: let go of. Else refused by exactly the gates that must, or removed. */
const checkAnswer = ({ owned, branch }: Environment, outcome: Outcome, possible: readonly Set<GateName>[]): void => {
  if (!owned) {
    expected(outcome.said === 'released', `the adopted ${branch} was answered with ${outcome.said}`)
    return
  }
  const should = possible.map((gates) => [...gates].sort().join(' '))
  const is = [...new Set(outcome.gates)].sort().join(' ')
  expected(
    should.includes(is),
    `${branch}: gates [${is}] refused (${outcome.detail}), expected [${should.join('] or [')}]`,
  )
  expected(outcome.said === (is === '' ? 'removed' : 'refused'), `${branch}: ${outcome.said}`)
}

export const restore = (nth: number, how: How = here): Command =>
  command(name('restore', how), `${nth}${shownHow(how)}`, async (model, real) => {
    const [id, point] = pick(model.points, nth) ?? []
    if (id === undefined || point === undefined) return false
    const taken = findByWork(model, point.environment.work) !== undefined
    const crowded = model.environments.size >= 5
    const pathsTaken = model.leftovers.size > 0
    const outcome = await act(model, real, how, { kind: 'restore', point: id }, { restore: point })
    if (outcome === undefined || outcome.said === 'restored') return true
    expected(taken || crowded || pathsTaken, `not restored: ${outcome.said} (${outcome.detail})`)
    expected(
      ['restore-failed', 'path-taken'].includes(outcome.said),
      `not restored: ${outcome.said} (${outcome.detail})`,
    )
    return true
  })

/** Days pass, then a cycle of cleanup. What must go goes, what must stay stays, what has had its time expires. */
export const sweep = (days: number, how: How = here): Command =>
  command(name('sweep', how), `${days} days${shownHow(how)}`, async (model, real) => {
    // The server looks every day meanwhile. Time that nobody watched would not count for a restore point.
    const { store, host } = real.world.context
    for (let left = days; left > 0; left -= 1) {
      model.now += day
      await store.restorePoints.watch(host, model.now)
    }
    const standings = standingsOf(model, real)
    const isStale = ({ lastActivityAt }: Environment): boolean => model.now - lastActivityAt >= 14 * day
    const must = present(model).filter((one) => {
      const standing = standings.get(one.id)
      const due = standing?.merged === 'yes' || isStale(one)
      return one.owned && due && standing?.automatic.every((gates) => gates.size === 0) === true
    })
    const allowed = {
      expire: how === here ? ('all' as const) : ('perhaps' as const),
      remove: (one: Environment, standing: Standing | undefined) =>
        mayGo(one, standing) && (isMerged(standing) || isStale(one)),
    }
    const outcome = await act(model, real, how, { kind: 'sweep' }, allowed, standings)
    if (outcome === undefined) return true
    for (const one of must)
      expected(!model.environments.has(one.id), `the sweep left ${one.branch} (${standings.get(one.id)?.merged})`)
    return true
  })

export const bind = (nth: number, conversation: number, persistent: boolean): Command =>
  command('bind', `${conversation} to ${nth}${persistent ? ', persistent' : ''}`, async (model, real) => {
    const environment = pick(model.environments.values(), nth)
    if (environment === undefined) return false
    const named = `${persistent ? 'chat' : 'thread'}-${conversation}`
    const row = await real.context.store.conversations.ensure({
      id: named,
      platform: 'model',
      conversationId: named,
      codebaseId: real.world.codebase.id,
      environmentId: undefined,
      persistent,
      agent: undefined,
      lastActivityAt: model.now,
      closedAt: undefined,
      createdAt: model.now,
    })
    await real.context.store.conversations.update(row.id, {
      environmentId: toEnvironmentId(environment.id),
      lastActivityAt: model.now,
      closedAt: undefined,
    })
    environment.persistent ||= persistent
    model.conversations.set(named, {
      name: named,
      persistent,
      environment: environment.id,
      lastActivityAt: model.now,
      closed: false,
    })
    return true
  })

export const close = (nth: number, how: How = here): Command =>
  command(name('close', how), `${nth}${shownHow(how)}`, async (model, real) => {
    const conversation = pick(model.conversations.values(), nth)
    if (conversation === undefined) return false
    const bound = conversation.environment
    const environment = bound === undefined ? undefined : model.environments.get(bound)
    conversation.environment = undefined
    const shared = [...model.conversations.values()].some((one) => one.environment === bound)
    const standings = standingsOf(model, real)
    const standing = bound === undefined ? undefined : standings.get(bound)
    const mine = (one: Environment): boolean => one === environment && !shared
    const allowed = { release: mine, remove: (one: Environment) => mine(one) && mayGo(one, standing) }
    const outcome = await act(model, real, how, { kind: 'close', conversation: conversation.name }, allowed, standings)
    if (outcome === undefined) {
      const row = await real.context.store.conversations.find('model', conversation.name)
      if (row?.environmentId !== undefined) conversation.environment = bound
      conversation.closed = row?.closedAt !== undefined
      return true
    }
    conversation.closed = true
    if (environment === undefined || outcome.said === 'nothing') return true
    if (shared)
      expected(outcome.said === 'kept', `${environment.branch} is shared, and closing answered ${outcome.said}`)
    else checkAnswer(environment, outcome, standing?.automatic ?? [])
    return true
  })

export const adopt = (nth: number, how: How = here): Command =>
  command(name('adopt', how), `${nth}${shownHow(how)}`, async (model, real) => {
    const path = pick(model.strangers.keys(), nth)
    if (path === undefined) return false
    const outcome = await act(model, real, how, { kind: 'adopt', path }, { adopt: true })
    if (outcome === undefined || outcome.said === 'adopted') return true
    // On no branch, or a missing environment of the same branch or work still stands for it.
    const stranger = model.strangers.get(path)
    const branch = stranger?.branch
    const detached = stranger?.snapshot.branch === undefined
    const clash =
      detached ||
      [...model.environments.values()].some(
        (one) => one.branch === branch || [one.work, ...one.aliases].some(({ type, id }) => `${type}-${id}` === branch),
      )
    expected(clash && outcome.said === 'not-adoptable', `not adopted: ${outcome.said} (${outcome.detail})`)
    return true
  })

export const spare = (how: How = here): Command =>
  command(name('spare', how), shownHow(how).slice(2), async (model, real) => {
    await act(model, real, how, { kind: 'spare' }, {})
    return true
  })

export const reconcileTwice = (): Command =>
  command('reconcile', 'twice', async (model, real) => {
    await act(model, real, here, { kind: 'reconcile' }, {})
    for (const row of await real.context.store.environments.live(real.world.codebase.id)) {
      const away = model.environments.get(row.id)?.away !== undefined
      expected(row.status === (away ? 'missing' : 'active'), `G3: ${row.branch} is ${row.status} after recovery`)
    }
    const again = await act(model, real, here, { kind: 'reconcile' }, {})
    expected(again?.said === 'nothing', `G9: the second recovery settled ${again?.detail}`)
    return true
  })
