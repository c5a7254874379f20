import { runScheduledCleanup } from '../src/cleanup/sweep.ts'
import { furnish } from './furnished.ts'
import { interleaved, median, type Row } from './measure.ts'
import type { Bench, World } from './stage.ts'

export const sweep: Bench = {
  name: 'sweep',
  title: 'sweep over 300 environments where nothing changed',
  inside:
    '`runScheduledCleanup` of one codebase, after one sweep that has checked everything: journal and leases, presence of every directory, base and settings, all branches, merge answers, orphans, expired restore points, the report. Half of the branches have one commit of their own that is not on main, half have none. Measured with 100 and with 300 environments; git processes are counted where they are started. Git has no counterpart.',
  measure: async (stage) => {
    await using world = await stage.world(3_000)
    await furnish(stage, world, 1, 101)
    const hundred = await swept(world)
    await furnish(stage, world, 101, 301)
    const threeHundred = await swept(world)
    const row = (environments: number, { starts, ms }: Swept): Row => ({
      figure: `sweep over ${environments} environments where nothing changed`,
      ours: ms,
      raw: undefined,
      result: `git started ${starts.join(' or ')} times, ${median(ms).toFixed(0)} ms`,
      toReach: environments === 100 ? undefined : 'as many starts as with 100',
      reached: environments === 100 ? undefined : starts.join() === hundred.starts.join(),
    })
    return [row(100, hundred), row(300, threeHundred)]
  },
}

/** `starts`: the different numbers of git processes that were seen. */
type Swept = { readonly starts: readonly number[]; readonly ms: readonly number[] }

const swept = async ({ context, provider, codebase }: World): Promise<Swept> => {
  const starts = new Set<number>()
  let before = 0
  const run = async (): Promise<void> => {
    const { removed, errors, missing } = await runScheduledCleanup(context, provider, codebase)
    if (removed.length + errors.length + missing.length > 0) throw new Error('something changed in a sweep')
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
