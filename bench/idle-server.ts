import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { populate } from './populate.ts'
import { ratioRow, type Row } from './measure.ts'
import { freePort, createPopulatedHome, type ServerProcess, startServerProcess } from './server-process.ts'
import type { Bench, Stage } from './stage.ts'
import type { ProbeResult } from './process-probe.ts'

const environments = 1_000
const rounds = 5

export const idleServer: Bench = {
  name: 'idle-server',
  title: 'an idle server with 1,000 environments',
  description:
    '`coppice serve` of the built program with 1,000 active environments in one codebase, after the start and the first cleanup cycle, which has checked all of them. *Memory*: resident memory after a forced garbage collection, one second after that cycle, against the same server without environments, alternating, each in its own process. The first start is one separate sample: its cycle asks about every branch, and the memory that V8 reserves for young objects stays resident for a while. *Processes*: one server is then left idle for a minute. Every process it starts is counted inside it; from outside, its children and the page faults of the children it has waited for (which starting a process always changes) must be the same before and after.',
  measure: async (stage) => {
    using many = await createPopulatedHome(stage, (world) => populate(stage, world, 1, environments + 1))
    using none = await createPopulatedHome(stage, async () => undefined)
    const ours: number[] = []
    const raw: number[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const order = round % 2 === 0 ? [ours, raw] : [raw, ours]
      for (const samples of order) {
        const served = await startSettled(stage, samples === ours ? many.root : none.root)
        samples.push((await probe(served)).residentMb)
        await served.stop()
      }
    }
    const [[first = 0, ...rest], [firstOfNone = 0, ...restOfNone]] = [ours, raw]
    return [
      await idleMinute(stage, many.root),
      memoryRow('memory of an idle server, 1,000 environments against none', rest, restOfNone, 1.5),
      memoryRow('the same, first start (asks git about every branch)', [first], [firstOfNone]),
    ]
  },
}

const memoryRow = (figure: string, ours: readonly number[], raw: readonly number[], atMost?: number): Row => ({
  ...ratioRow(figure, { ours, raw }, atMost),
  unit: 'MB',
})

const idleMinute = async (stage: Stage, root: string): Promise<Row> => {
  const served = await startSettled(stage, root)
  const pid = served.child.pid ?? 0
  const [before, childrenBefore] = [await probe(served), childrenOf(pid)]
  await delay(60_000)
  const [after, childrenAfter] = [await probe(served), childrenOf(pid)]
  await served.stop()
  const started = after.processes - before.processes
  return {
    figure: 'processes started by an idle server in a minute, 1,000 environments',
    ours: [],
    raw: undefined,
    result: `${started} (${before.processes} since its start)`,
    toReach: 'none',
    reached: started === 0 && childrenBefore === childrenAfter && before.processes > 0,
  }
}

/** Current children, and page faults of past ones: on Linux, starting any process changes one of them. */
const childrenOf = (pid: number): string => {
  if (process.platform !== 'linux') return 'unknown'
  const children = readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/children`))
  // Fields after the name: state, ppid, pgrp, session, tty, tpgid, flags, minflt, cminflt.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return `${children.join(' ')} ${fields[8]}`
}

/** Started, and done with its first cycle. */
const startSettled = async (stage: Stage, root: string): Promise<ServerProcess> => {
  const watch = ['--expose-gc', '--import', new URL('process-probe.ts', import.meta.url).href]
  const served = await startServerProcess(stage, root, { port: await freePort(), nodeArguments: watch })
  while (!(await served.get('/metrics')).includes('coppice_cleanup_removed_total')) await delay(100)
  await delay(1_000)
  return served
}

const probe = async ({ child }: ServerProcess): Promise<ProbeResult> => {
  child.send('probe')
  const [watched] = (await once(child, 'message')) as [ProbeResult]
  return watched
}
