import { join } from 'node:path'
import { count, interleaved, ratioRow, type Row } from './measure.ts'
import type { Bench, Stage } from './stage.ts'

export const createWithoutSpare: Bench = {
  name: 'create-without-spare',
  title: 'create without a spare',
  description:
    'Coppice: `resolveIsolation` for a new issue, from the call to the active environment, in a warm process: all six steps of the resolver, base and settings from the base commit, journal, `git worktree add`, record, activation, and the search for commits that mention the issue. No remote, no spares. Baseline: `git worktree add --no-track -b issue-N <path> main` in the same repository. Both sides keep their trees, so both see the same growing number of worktrees.',
  measure: async (stage) => [...(await rowsFor(stage, 3_000)), ...(await rowsFor(stage, 30_000))],
}

const rowsFor = async (stage: Stage, files: number): Promise<Row[]> => {
  await using world = await stage.world(files, { spares: 0 })
  const samples = await interleaved(
    {
      ours: { run: async (round) => void (await world.create(round + 1)) },
      raw: {
        run: async (round) => {
          const path = join(world.root, 'raw', `raw-${round}`)
          await world.byHand('worktree', 'add', '--no-track', '-b', `raw-${round}`, path, 'main')
        },
      },
    },
    { rounds: 5, settle: stage.settle },
  )
  return [ratioRow(`create without a spare, ${count(files)} files`, samples, 1.3)]
}
