import { once } from 'node:events'
import { createSchedule } from '../../src/cleanup/schedule.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { reopen } from '../helpers/reopen.ts'
import { makeContext } from '../helpers/world.ts'

/**
 * A second process with a schedule in a prepared world. `hold` stays in its cycle until it is given a line; `start` begins
 * and then has nothing else to do, so that only a timer could keep it alive.
 */
export type ScheduleOrder = { readonly root: string; readonly task: 'hold' | 'start' }

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const { root, task } = JSON.parse(process.argv[2] ?? '') as ScheduleOrder
const context = await makeContext(reopen(root), {})
const schedule = createSchedule({
  context,
  environments: async () => createEnvironments(context),
  intervalHours: 6,
  onReport: async () => {
    if (task !== 'hold') return
    say('holding')
    await once(process.stdin, 'data')
    process.stdin.destroy()
  },
  keepSpares: () => undefined,
})
if (task === 'start') schedule.start()
const { outcome } = await schedule.runNow()
await context.store.close()
say(outcome)
