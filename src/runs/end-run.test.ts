import { existsSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { identifySync, liveness } from '../process/identity.ts'
import { runMarkId } from '../process/run-mark.ts'
import { runProgram } from '../process/spawn.ts'
import { createEndRun } from './end-run.ts'

let world: World
beforeEach(async () => {
  world = await makeWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

/** What an attempt of a message left: no parent, no session, no environment of the run. */
const leftBy = async (message: string, attempt: number): Promise<ProcessIdentity> => {
  const file = world.box.path(`pid-${attempt}`)
  await runProgram({
    shell: `env -i PATH="$PATH" setsid sh -c 'sleep 300 & echo $! > ${file}.new; mv ${file}.new ${file}' > /dev/null 2>&1`,
    cwd: '/',
    env: world.box.env,
    clock: Date.now,
    outputLimitBytes: 1_000,
    mark: { id: runMarkId(world.context.home, message, attempt), cgroup: undefined },
  })
  while (!existsSync(file)) await new Promise(setImmediate)
  const identity = identifySync(Number(readFileSync(file, 'utf8')))
  if (identity === undefined) throw new Error('it could not be identified')
  return identity
}

test('what an earlier run left is ended, a later run of the same message is not', async () => {
  const endRun = createEndRun(world.context)
  const left = [await leftBy('message-1', 1), await leftBy('message-1', 2), await leftBy('message-2', 1)]
  try {
    expect(await endRun({ id: 'message-1', child: undefined, attempts: 1 })).toBe(true)
    expect(left.map(liveness)).toEqual(['dead', 'alive', 'alive'])
    expect(await endRun({ id: 'message-1', child: undefined, attempts: 2 })).toBe(true)
    expect(left.map(liveness)).toEqual(['dead', 'dead', 'alive'])
  } finally {
    for (const one of left) if (liveness(one) === 'alive') process.kill(one.pid, 'SIGKILL')
  }
})
