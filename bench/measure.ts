import { performance } from 'node:perf_hooks'

/** One side of a comparison. Only `run` is timed. */
export type Side = {
  readonly prepare?: (round: number) => Promise<void> | void
  readonly run: (round: number) => Promise<void> | void
  readonly after?: (round: number) => Promise<void> | void
}

export type Rounds = {
  readonly rounds: number
  /** Called before each measurement, untimed. */
  readonly settle?: () => void
}

/**
 * Interleaved: ours, raw, raw, ours, ours, raw, … so other load on the machine affects both, and warm caches don't
 * always favour the same side. Discards one round at the start.
 */
export const interleaved = async <Name extends string>(
  sides: Readonly<Record<Name, Side>>,
  { rounds, settle }: Rounds,
): Promise<Record<Name, number[]>> => {
  const names = Object.keys(sides) as Name[]
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
  for (let round = 0; round <= rounds; round += 1) {
    const order = round % 2 === 0 ? names : names.toReversed()
    for (const name of order) {
      const took = await once(sides[name], round, settle)
      if (round > 0) samples[name].push(took)
    }
  }
  return samples
}

const once = async ({ prepare, run, after }: Side, round: number, settle: Rounds['settle']): Promise<number> => {
  await prepare?.(round)
  settle?.()
  const began = performance.now()
  await run(round)
  const took = performance.now() - began
  await after?.(round)
  return took
}

export const median = (samples: readonly number[]): number => {
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper
}

/** One row of the table. */
export type Row = {
  readonly figure: string
  /** Of both columns (default: milliseconds). */
  readonly unit?: string
  /** Empty if the figure isn't a time. */
  readonly ours: readonly number[]
  readonly raw: readonly number[] | undefined
  /** The ratio, or whatever else is measured. */
  readonly result: string
  readonly toReach: string | undefined
  /** undefined: informational, without a target. */
  readonly reached: boolean | undefined
}

/** A row whose target is that ours takes at most `atMost` times as long as raw. */
export const ratioRow = (
  figure: string,
  { ours, raw }: { readonly ours: readonly number[]; readonly raw: readonly number[] },
  atMost?: number,
): Row => {
  const ratio = median(ours) / median(raw)
  return {
    figure,
    ours,
    raw,
    result: `${ratio.toFixed(2)}×`,
    toReach: atMost === undefined ? undefined : `≤ ${atMost}×`,
    reached: atMost === undefined ? undefined : ratio <= atMost,
  }
}

export const count = (number: number): string => number.toLocaleString('en-US')
