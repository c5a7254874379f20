import { performance } from 'node:perf_hooks'
import { toWork } from '../src/domain/work.ts'
import { resolveIsolation } from '../src/isolation/resolve/resolve.ts'
import { populate } from './populate.ts'
import { median } from './measure.ts'
import type { Bench } from './stage.ts'

const environments = 1_000
const calls = 2_000

export const resolve: Bench = {
  name: 'resolve',
  title: 'resolve an existing environment among 1,000',
  description: `\`resolveIsolation\` for an issue that has an environment, ${calls.toLocaleString('en-US')} calls over ${environments.toLocaleString('en-US')} environments in mixed order, in a warm process: the lookup in the store and the check of the directory, git's record and its token. The environments have branch, record, directory, token and row, but no files, which resolving doesn't look at. Processes are counted where git is started. Git has no equivalent.`,
  measure: async (stage) => {
    await using world = await stage.world(3_000)
    const { context, codebase, provider } = world
    await populate(stage, world, 1, environments + 1)
    const ask = async (call: number): Promise<number> => {
      // 7 and 1,000 are coprime, so every environment has its turn.
      const work = toWork('issue', String(((call * 7) % environments) + 1))
      const began = performance.now()
      const resolution = await resolveIsolation(context, provider, { codebase, work, hints: {}, createdBy: 'bench' })
      const took = performance.now() - began
      if (resolution.outcome !== 'resolved' || resolution.how !== 'same-work')
        throw new Error('the environment was not found')
      return took
    }
    for (let call = 0; call < 100; call += 1) await ask(call)
    const before = context.git.spawned()
    const ours: number[] = []
    for (let call = 0; call < calls; call += 1) ours.push(await ask(call))
    const started = context.git.spawned() - before
    return [
      {
        figure: 'resolve an existing environment among 1,000',
        ours,
        raw: undefined,
        result: `${started} processes, ${median(ours).toFixed(2)} ms`,
        toReach: 'no process, under 1 ms',
        reached: started === 0 && median(ours) < 1,
      },
    ]
  },
}
