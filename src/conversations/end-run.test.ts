import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { identifySync, liveness } from '../process/identity.ts'
import { createLogger } from '../process/log.ts'
import { createEndRun, messageVariable } from './end-run.ts'

const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

test('what an earlier run left is ended, a later run of the same message is not', async () => {
  const id = `message-${process.pid}`
  const ofRun = async (attempt: number) => {
    const variables = { [messageVariable]: id, COPPICE_ATTEMPT: String(attempt) }
    const child = spawn('sleep', ['300'], { env: { ...process.env, ...variables }, detached: true })
    await once(child, 'spawn')
    const identity = identifySync(child.pid ?? 0)
    if (identity === undefined) throw new Error('it could not be identified')
    return { child, identity }
  }
  const [first, second] = [await ofRun(1), await ofRun(2)]
  try {
    expect(await createEndRun({ clock: Date.now, log })({ id, child: undefined, attempts: 1 })).toBe(true)
    expect([liveness(first.identity), liveness(second.identity)]).toEqual(['dead', 'alive'])
    expect(await createEndRun({ clock: Date.now, log })({ id, child: undefined, attempts: 2 })).toBe(true)
    expect(liveness(second.identity)).toBe('dead')
  } finally {
    for (const { child } of [first, second]) child.kill('SIGKILL')
  }
})
