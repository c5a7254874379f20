import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { accept } from './accept.ts'
import { agentOverhead } from './agent-overhead.ts'
import { agentStart } from './agent-start.ts'
import { cliStart } from './cli-start.ts'
import { createWithSpare } from './create-with-spare.ts'
import { createWithoutSpare } from './create-without-spare.ts'
import { idleServer } from './idle-server.ts'
import { landings } from './landing.ts'
import { list } from './list.ts'
import { load, describeMachine } from './machine.ts'
import { parallelCreations } from './parallel-creations.ts'
import { remove } from './remove.ts'
import { report, table } from './report.ts'
import { resolve } from './resolve.ts'
import { saveResult, readResults } from './results.ts'
import { serverStart } from './server-start.ts'
import { makeStage } from './stage.ts'
import { slings } from './sling.ts'
import { sweep } from './sweep.ts'

const all = [
  createWithoutSpare,
  createWithSpare,
  remove,
  resolve,
  list,
  parallelCreations,
  sweep,
  cliStart,
  accept,
  agentStart,
  agentOverhead,
  idleServer,
  serverStart,
  slings,
  landings,
]

const wanted = process.argv.slice(2)
const unknown = wanted.filter((word) => !all.some(({ name }) => name.includes(word)))
if (unknown.length > 0) {
  console.error(`unknown benchmark: ${unknown.join(', ')}. Available: ${all.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}
const chosen = wanted.length === 0 ? all : all.filter(({ name }) => wanted.some((word) => name.includes(word)))

const failed: string[] = []
{
  using stage = makeStage((line) => console.error(line))
  for (const bench of chosen) {
    console.error(bench.title)
    const loadBefore = load()
    try {
      const rows = await bench.measure(stage)
      // Saved at once, so an interrupted run keeps its results.
      saveResult(bench.name, { rows, machine: describeMachine(loadBefore) })
      console.log(table(rows))
    } catch (error) {
      // One failure must not cost the others.
      console.error(`  failed: ${error instanceof Error ? error.message : String(error)}`)
      failed.push(bench.name)
    }
  }
}

const kept = readResults()
writeFileSync(
  fileURLToPath(new URL('../docs/performance.md', import.meta.url)),
  report(all.map((bench) => ({ bench, result: kept[bench.name] }))),
)
console.log('\nWrote docs/performance.md')
if (failed.length > 0) process.exitCode = 1
