import type * as fc from 'fast-check'
import { type Allowed, absorb } from './absorb.ts'
import { checkWorld } from './check.ts'
import type { Operation, Outcome } from './operation.ts'
import { perform } from './operation.ts'
import { type Real, countOne } from './real.ts'
import { type Standing, standingsOf } from './standings.ts'
import type { Environment, Model } from './state.ts'

export type Command = fc.AsyncCommand<Model, Real>

/** Answers false when there was nothing it could be done to. */
type Run = (model: Model, real: Real) => Promise<boolean>

export const command = (kind: string, shown: string, run: Run): Command => ({
  check: () => true,
  toString: () => `${kind}(${shown})`,
  run: async (model, real) => {
    // More than a shared fetch stays fresh, so that every command sees what was pushed before it.
    model.now += 61_000
    try {
      if (!(await run(model, real))) return
      await checkWorld(model, real)
    } catch (error) {
      throw new Error(`after ${kind}(${shown}): ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      })
    }
    countOne(real.counts.commands, kind)
  },
})

/** The nth of those it can be done to; the number is the generator's. */
export const pick = <T>(from: Iterable<T>, nth: number): T | undefined => {
  const all = [...from]
  return all[nth % Math.max(1, all.length)]
}

export const present = (model: Model): Environment[] =>
  [...model.environments.values()].filter(({ away }) => away === undefined)

/** Here and now, or in a process that dies on the way. After a death there is recovery, twice. */
export type How = { readonly dieAt: number | undefined; readonly dieAgainAt: number | undefined }
export const here: How = { dieAt: undefined, dieAgainAt: undefined }

/** Undefined when the process died: then either all of it or none of it has happened. */
export const act = async (
  model: Model,
  real: Real,
  how: How,
  operation: Operation,
  allowed: Omit<Allowed, 'standings'>,
  standings: ReadonlyMap<string, Standing> = standingsOf(model, real),
): Promise<Outcome | undefined> => {
  let outcome: Outcome | undefined
  if (how.dieAt === undefined) outcome = await perform(real.context, operation)
  else await die(real, how, operation)
  await absorb(model, real, { ...allowed, standings })
  return outcome
}

const die = async (real: Real, { dieAt = 1, dieAgainAt }: How, operation: Operation): Promise<void> => {
  const where = await real.kill(operation, dieAt)
  countOne(real.counts.kills, where ?? 'came through')
  if (where !== undefined && dieAgainAt !== undefined) {
    const again = await real.kill({ kind: 'reconcile' }, dieAgainAt)
    if (again !== undefined) countOne(real.counts.kills, again)
  }
  await perform(real.context, { kind: 'reconcile' })
  const second = await perform(real.context, { kind: 'reconcile' })
  if (second.said !== 'nothing') throw new Error(`G9: the second recovery ${second.said} ${second.detail}`)
}
