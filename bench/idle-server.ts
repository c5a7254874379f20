import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { furnish } from './furnished.ts'
import { ratioRow, type Row } from './measure.ts'
import { freePort, furnishedHome, type Served, startServed } from './served.ts'
import type { Bench, Stage } from './stage.ts'
import type { Watched } from './watched.ts'

const environments = 1_000
const rounds = 5

export const idleServer: Bench = {
  name: 'idle-server',
  title: 'an idle server with 1,000 environments',
  inside:
    '`coppice serve` of the built program with 1,000 active environments in one codebase, after the start and the first cleanup cycle, which has checked all of them. *Memory*: the resident memory of the process after a forced garbage collection, a second after that cycle, against the same server without environments, taking turns, each in its own process; the first start has one sample, listed separately, since that cycle asks about every branch, and the memory that V8 then reserves for young objects stays resident for a while. *Processes*: one of them is then left alone for a minute. Every process that it starts is counted inside it; from outside, its children and the page faults of the children it has waited for (which every started process causes) must be the same before and after.',
  measure: async (stage) => {
    using many = await furnishedHome(stage, (world) => furnish(stage, world, 1, environments + 1))
    using none = await furnishedHome(stage, async () => undefined)
    const ours: number[] = []
    const raw: number[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const order = round % 2 === 0 ? [ours, raw] : [raw, ours]
      for (const samples of order) {
        const served = await settled(stage, samples === ours ? many.root : none.root)
        samples.push((await ask(served)).residentMb)
        await served.stop()
      }
    }
    const [[first = 0, ...rest], [firstOfNone = 0, ...restOfNone]] = [ours, raw]
    return [
      await idleMinute(stage, many.root),
      memoryRow('memory of an idle server, 1,000 environments against none', rest, restOfNone, 1.5),
      memoryRow('the same, its first start, which asks git about every branch', [first], [firstOfNone]),
    ]
  },
}

const memoryRow = (figure: string, ours: readonly number[], raw: readonly number[], atMost?: number): Row => ({
  ...ratioRow(figure, { ours, raw }, atMost),
  unit: 'MB',
})

const idleMinute = async (stage: Stage, root: string): Promise<Row> => {
  const served = await settled(stage, root)
  const pid = served.child.pid ?? 0
  const [before, facesBefore] = [await ask(served), childrenOf(pid)]
  await delay(60_000)
  const [after, facesAfter] = [await ask(served), childrenOf(pid)]
  await served.stop()
  const started = after.processes - before.processes
  return {
    figure: 'processes that an idle server starts in a minute, 1,000 environments',
    ours: [],
    raw: undefined,
    result: `${started} (${before.processes} since its start)`,
    toReach: 'none',
    reached: started === 0 && facesBefore === facesAfter && before.processes > 0,
  }
}

/** The children it has, and the page faults of those it had: on Linux, nothing is started without changing one. */
const childrenOf = (pid: number): string => {
  if (process.platform !== 'linux') return 'unknown'
  const children = readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/children`))
  // After the name in brackets: state, ppid, pgrp, session, tty, tpgid, flags, minflt, cminflt.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return `${children.join(' ')} ${fields[8]}`
}

/** Started, and through with its first cycle. */
const settled = async (stage: Stage, root: string): Promise<Served> => {
  const watch = ['--expose-gc', '--import', new URL('watched.ts', import.meta.url).href]
  const served = await startServed(stage, root, { port: await freePort(), nodeArguments: watch })
  while (!(await served.get('/metrics')).includes('coppice_cleanup_removed_total')) await delay(100)
  await delay(1_000)
  return served
}

const ask = async ({ child }: Served): Promise<Watched> => {
  child.send('how much?')
  const [watched] = (await once(child, 'message')) as [Watched]
  return watched
}
