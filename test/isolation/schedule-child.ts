import { once } from 'node:events'
import { join } from 'node:path'
import { createSchedule } from '../../src/cleanup/schedule.ts'
import { createGit } from '../../src/git/door.ts'
import { createWorktreeProvider } from '../../src/isolation/worktree/provider.ts'
import type { Sandbox } from '../helpers/repo.ts'
import { makeContext } from '../helpers/world.ts'

/**
 * A second process with a schedule in a prepared world. `hold` stays in its cycle until it is given a line; `start` begins
 * and then has nothing else to do, so that only a timer could keep it alive.
 */
export type ScheduleOrder = { readonly root: string; readonly task: 'hold' | 'start' }

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const reopen = (root: string): Sandbox => {
  const env: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'LC_ALL']) env[name] = process.env[name] ?? ''
  const never = (): never => {
    throw new Error('the child only works in the world it was given')
  }
  return {
    root,
    home: join(root, 'home'),
    env,
    git: (options) => createGit({ env, home: join(root, 'state'), now: Date.now, ...options }),
    path: (...parts) => join(root, ...parts),
    raw: never,
    repo: never,
    bare: never,
    [Symbol.dispose]: never,
  }
}

const { root, task } = JSON.parse(process.argv[2] ?? '') as ScheduleOrder
const context = await makeContext(reopen(root), {})
const schedule = createSchedule({
  context,
  provider: async () => createWorktreeProvider(context),
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
