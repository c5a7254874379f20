import { join } from 'node:path'
import { keepSpares } from '../src/isolation/providers/worktree/spare.ts'
import { count, interleaved, ratioRow, type Row } from './measure.ts'
import type { Bench, Stage } from './stage.ts'

export const createWithSpare: Bench = {
  name: 'create-with-spare',
  title: 'create with a warm spare',
  description:
    'The same two sides as without a spare. One spare is prepared before each of our runs, untimed; preparing the next one is untimed, too, since users don’t wait for it (it happens in the background).',
  measure: async (stage) => [...(await rowsFor(stage, 30_000, 0.1)), ...(await rowsFor(stage, 3_000, 0.4))],
}

const rowsFor = async (stage: Stage, files: number, atMost: number): Promise<Row[]> => {
  await using world = await stage.world(files, { spares: 1 })
  const { context, codebase } = world
  const spares = async (): Promise<number> => (await context.store.spares.list(codebase.id)).length
  const samples = await interleaved(
    {
      ours: {
        prepare: async () => {
          await keepSpares(context, codebase)
          if ((await spares()) !== 1) throw new Error('no spare was prepared')
        },
        run: async (round) => void (await world.create(round + 1)),
        after: async () => {
          if ((await spares()) !== 0) throw new Error('the spare was not used')
        },
      },
      raw: {
        run: async (round) => {
          const path = join(world.root, 'raw', `raw-${round}`)
          await world.byHand('worktree', 'add', '--no-track', '-b', `raw-${round}`, path, 'main')
        },
      },
    },
    { rounds: 5, settle: stage.settle },
  )
  return [ratioRow(`create with a warm spare, ${count(files)} files`, samples, atMost)]
}
