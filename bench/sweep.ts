import { runScheduledCleanup } from '../src/cleanup/sweep.ts'
import { populate } from './populate.ts'
import { interleaved, median, type Row } from './measure.ts'
import type { Bench, World } from './stage.ts'

export const sweep: Bench = {
  name: 'sweep',
  title: 'sweep over 300 environments where nothing changed',
  description:
    '`runScheduledCleanup` of one codebase, after a sweep that has seen everything: journal and leases, presence of every directory, base and settings, all branches, merge answers, orphans, expired restore points, and the report. Half of the branches have one commit that isn’t on main, half have none. Measured with 100 and 300 environments; counts git processes where they are started. Git has no equivalent.',
  measure: async (stage) => {
    await using world = await stage.world(3_000)
    await populate(stage, world, 1, 101)
    const hundred = await measureSweeps(world)
    await populate(stage, world, 101, 301)
    const threeHundred = await measureSweeps(world)
    const row = (environments: number, { starts, ms }: SweepSamples): Row => ({
      figure: `sweep over ${environments} environments where nothing changed`,
      ours: ms,
      raw: undefined,
      result: `git started ${starts.join(' or ')} times, ${median(ms).toFixed(0)} ms`,
      toReach: environments === 100 ? undefined : 'same number of starts as with 100',
      reached: environments === 100 ? undefined : starts.join() === hundred.starts.join(),
    })
    return [row(100, hundred), row(300, threeHundred)]
  },
}

/** `starts`: the distinct counts of git processes. */
type SweepSamples = { readonly starts: readonly number[]; readonly ms: readonly number[] }

const measureSweeps = async ({ context, provider, codebase }: World): Promise<SweepSamples> => {
  const starts = new Set<number>()
  let before = 0
  const run = async (): Promise<void> => {
    const { removed, errors, missing } = await runScheduledCleanup(context, provider, codebase)
    if (removed.length + errors.length + missing.length > 0) throw new Error('a sweep changed something')
  }
  await run()
  const { ours } = await interleaved(
    {
      ours: {
        prepare: () => {
          before = context.git.spawned()
        },
        run,
        after: () => void starts.add(context.git.spawned() - before),
      },
    },
    { rounds: 9 },
  )
  return { starts: [...starts].sort((a, b) => a - b), ms: ours }
}
