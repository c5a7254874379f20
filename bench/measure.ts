import { performance } from 'node:perf_hooks'

/** One side of a comparison. Only `run` is on the clock. */
export type Side = {
  readonly prepare?: (round: number) => Promise<void> | void
  readonly run: (round: number) => Promise<void> | void
  readonly after?: (round: number) => Promise<void> | void
}

export type Rounds = {
  readonly rounds: number
  /** Before every single measurement, off the clock. */
  readonly settle?: () => void
}

/**
 * Interleaved: ours, raw, raw, ours, ours, raw, … so that whatever the machine does meanwhile meets both, and neither
 * is always the one that finds the caches warm. One round before the first is thrown away.
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

/** One line of the table. */
export type Row = {
  readonly figure: string
  /** Of both columns; milliseconds unless said. */
  readonly unit?: string
  /** Empty: the figure is no measurement of time. */
  readonly ours: readonly number[]
  readonly raw: readonly number[] | undefined
  /** The ratio, or whatever else the figure is about. */
  readonly result: string
  readonly toReach: string | undefined
  /** undefined: for information, nothing was set. */
  readonly reached: boolean | undefined
}

/** A row that is reached when ours takes at most `atMost` times as long as raw. */
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
