import { populate } from './populate.ts'
import { interleaved, ratioRow, type Side } from './measure.ts'
import { freePort, createPopulatedHome, type ServerProcess, startServerProcess } from './server-process.ts'
import type { Bench, Stage } from './stage.ts'

const environments = 1_000

export const serverStart: Bench = {
  name: 'server-start',
  title: 'server start with 1,000 environments to reconcile',
  description:
    'Coppice: `coppice serve` of the built program, from process start until `/healthz` reports that messages are accepted, with 1,000 active environments in one codebase: the store, the lock of the data directory, unfinished operations, leases and locks of dead processes, every directory with git’s record and its token, spares, restore points and trash, and interrupted messages. Baseline: the same without environments. The environments have branch, record, directory, token and row, but no files. Each start follows a clean stop.',
  measure: async (stage) => {
    using many = await createPopulatedHome(stage, (world) => populate(stage, world, 1, environments + 1))
    using none = await createPopulatedHome(stage, async () => undefined)
    const { ours, raw } = await interleaved(
      { ours: startSide(stage, many.root), raw: startSide(stage, none.root) },
      { rounds: 9 },
    )
    return [ratioRow('server start until `/healthz` is OK, 1,000 environments against none', { ours, raw }, 3)]
  },
}

const startSide = (stage: Stage, root: string): Side => {
  let port = 0
  let served: ServerProcess | undefined
  return {
    prepare: async () => {
      port = await freePort()
    },
    run: async () => {
      served = await startServerProcess(stage, root, { port })
    },
    after: async () => served?.stop(),
  }
}
