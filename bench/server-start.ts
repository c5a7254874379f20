import { furnish } from './furnished.ts'
import { interleaved, ratioRow, type Side } from './measure.ts'
import { freePort, furnishedHome, type Served, startServed } from './served.ts'
import type { Bench, Stage } from './stage.ts'

const environments = 1_000

export const serverStart: Bench = {
  name: 'server-start',
  title: 'start of the server with 1,000 environments to reconcile',
  inside:
    'Ours: `coppice serve` of the built program, from the start of the process until `/healthz` reports that messages are accepted, with 1,000 active environments in one codebase: the store, the home’s lock, unfinished operations, leases and locks of dead processes, presence of every directory with git’s record and its token, spares, restore points and trash, messages that a crash interrupted. Against: the same with none. The environments have branch, record, directory, token and row, but no files. Each start follows a clean shutdown.',
  measure: async (stage) => {
    using many = await furnishedHome(stage, (world) => furnish(stage, world, 1, environments + 1))
    using none = await furnishedHome(stage, async () => undefined)
    const { ours, raw } = await interleaved(
      { ours: started(stage, many.root), raw: started(stage, none.root) },
      { rounds: 9 },
    )
    return [ratioRow('start until `/healthz` answers, 1,000 environments against none', { ours, raw }, 3)]
  },
}

const started = (stage: Stage, root: string): Side => {
  let port = 0
  let served: Served | undefined
  return {
    prepare: async () => {
      port = await freePort()
    },
    run: async () => {
      served = await startServed(stage, root, { port })
    },
    after: async () => served?.stop(),
  }
}
