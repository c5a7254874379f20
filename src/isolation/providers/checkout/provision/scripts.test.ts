import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../../../test/helpers/provisioned.ts'
import { identifySync, liveness } from '../../../../process/identity.ts'
import { killRun } from '../../../../process/kill.ts'
import { scriptMark } from '../../../../process/run-mark.ts'
import type { Program } from '../../../../domain/program.ts'
import type { ProcessIdentity } from '../../../../domain/process-identity.ts'
import { leasePorts } from '../../../ports.ts'
import { runSetup, runTeardown } from './scripts.ts'
import { untilSleeps } from '../../../../../test/helpers/shell.ts'
import { said } from '../../../../../test/helpers/words.ts'

const approving = { context: { approve: () => Promise.resolve(true) } }

describe('setup', () => {
  it('runs in the tree with the allowed environment, its ports and what it is about', async () => {
    await using made = await makeDressed(approving)
    await leasePorts(made.context, made.environment, ['PORT'])
    const setup = ['env > variables; pwd > where', 'echo "$PORT" > port']
    expect(await runSetup(made.context, made.provisioning({ setup }))).toEqual({ ran: true, notices: [] })
    const variables = readFileSync(join(made.tree.path, 'variables'), 'utf8').split('\n')
    expect(variables).toContain(`COPPICE_DIR=${made.tree.path}`)
    expect(variables).toContain('COPPICE_CODEBASE=project')
    expect(variables).toContain('COPPICE_BRANCH=issue-42')
    expect(variables).toContain('COPPICE_WORK=task-issue-42')
    expect(variables).toContain(`HOME=${made.box.home}`)
    expect(variables.filter((line) => line.startsWith('VITEST'))).toEqual([])
    expect(readFileSync(join(made.tree.path, 'where'), 'utf8').trim()).toBe(made.tree.path)
    expect(readFileSync(join(made.tree.path, 'port'), 'utf8').trim()).toMatch(/^(?:2\d{4}|3[01]\d{3})$/)
    expect(made.progress).toContain('running setup: echo "$PORT" > port')
  })

  it('is started as the provider of its environment starts programs', async () => {
    await using made = await makeDressed(approving)
    const { provider } = made.environment
    const own = await made.context.providers.get(provider)!()
    const launch = (_environment: unknown, program: Program): Program => ({
      ...program,
      env: { ...program.env, LAUNCHED: 'inside' },
    })
    const inside = { ...own, launch }
    const context = { ...made.context, providers: new Map([[provider, () => Promise.resolve(inside)]]) }
    await runSetup(context, made.provisioning({ setup: ['echo "$LAUNCHED" > setup'] }))
    await runTeardown(context, made.provisioning({ teardown: ['echo "$LAUNCHED" > teardown'] }))
    for (const name of ['setup', 'teardown']) expect(readFileSync(join(made.tree.path, name), 'utf8')).toBe('inside\n')
  })

  it('keeps all output for its owner alone, and shows the last 40 lines when it fails', async () => {
    await using made = await makeDressed(approving)
    const setup = [
      'echo before',
      'i=1; while [ $i -le 60 ]; do echo "line $i"; i=$((i+1)); done; exit 3',
      'touch never',
    ]
    const failed: unknown = await runSetup(made.context, made.provisioning({ setup })).catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'setup-failed', message: expect.stringContaining('exit code 3') })
    const { message } = failed as Error
    expect(message).toContain('\nline 21\n')
    expect(message).toContain('\nline 60')
    expect(message).not.toContain('line 20\n')
    const log = join(made.context.home, 'logs/setup', `${made.environment.id}.log`)
    expect(readFileSync(log, 'utf8')).toMatch(/^\$ echo before\nbefore\n[^]*line 1\n[^]*line 60\n$/)
    expect(statSync(log).mode & 0o777).toBe(0o600)
    expect(existsSync(join(made.tree.path, 'never'))).toBe(false)
  })

  it('does not run without approval, and the notice says how to give it', async () => {
    await using made = await makeDressed()
    const { notices } = await runSetup(made.context, made.provisioning({ setup: ['touch ran'] }))
    expect(said(notices)).toEqual([expect.stringContaining('coppice codebase trust project')])
    expect(existsSync(join(made.tree.path, 'ran'))).toBe(false)
  })

  it('does not run in the tree of a fork', async () => {
    await using made = await makeDressed(approving)
    const environment = { ...made.environment, trust: 'unproven' } as const
    const { notices } = await runSetup(made.context, made.provisioning({ setup: ['touch ran'] }, { environment }))
    expect(said(notices)).toEqual([expect.stringContaining('fork')])
    expect(existsSync(join(made.tree.path, 'ran'))).toBe(false)
  })

  /** Leaves a process that has lost its environment, session and parent, and goes on when it has written its pid. */
  const daemon =
    'env -i PATH="$PATH" setsid sh -c \'sh -c "echo \\$\\$ > daemon; exec sleep 600" &\' </dev/null >/dev/null 2>&1; ' +
    `while [ ! -s daemon ]; do sleep 0.01; done; ${untilSleeps('$(cat daemon)')}; `
  const daemonIn = (path: string): number => Number(readFileSync(join(path, 'daemon'), 'utf8'))
  const isAlive = (pid: number): boolean => {
    const identity = identifySync(pid)
    return identity !== undefined && liveness(identity) !== 'dead'
  }

  it.each([
    ['fails', 'exit 1', { code: 'setup-failed' }],
    ['takes too long', 'sleep 600 & wait', { code: 'setup-failed', message: expect.stringContaining('too long') }],
    ['is called off', 'touch ready; sleep 600', { code: 'cancelled' }],
  ])('that %s is ended with all that it started, wherever that has gone', async (_how, then, failure) => {
    await using made = await makeDressed(approving)
    let started: ProcessIdentity | undefined
    const stop = new AbortController()
    const ready = join(made.tree.path, 'ready')
    const running = runSetup(made.context, {
      ...made.provisioning({ setup: [`${daemon}${then}`] }),
      // Long enough for the daemon to be there on a busy machine.
      ...(then.endsWith('wait') && { timeoutMs: 3_000 }),
      signal: stop.signal,
      onSpawn: (identity) => (started = identity),
    })
    running.catch(() => undefined)
    while (failure.code === 'cancelled' && !existsSync(ready)) await delay(10)
    if (failure.code === 'cancelled') stop.abort()
    await expect(running).rejects.toMatchObject(failure)
    expect([started && liveness(started), isAlive(daemonIn(made.tree.path))]).toEqual(['dead', false])
  })

  it('that ends well names what it left running, and leaves it alone', async () => {
    await using made = await makeDressed(approving)
    const { notices } = await runSetup(made.context, made.provisioning({ setup: [daemon] }))
    const left = daemonIn(made.tree.path)
    expect([said(notices), isAlive(left)]).toEqual([[`setup left 1 process running: sleep (${left})`], true])
    await killRun([scriptMark(made.context.home, made.environment.id, 'setup')], { graceMs: 100, clock: Date.now })
    expect(isAlive(left)).toBe(false)
  })

  it('that leaves a server running is not held up by it, nor broken by what it prints later', async () => {
    await using made = await makeDressed(approving)
    const setup = ['(sleep 0.7; echo late; touch late) & echo started']
    await runSetup(made.context, made.provisioning({ setup }))
    await expect.poll(() => existsSync(join(made.tree.path, 'late'))).toBe(true)
    const log = readFileSync(join(made.context.home, 'logs/setup', `${made.environment.id}.log`), 'utf8')
    expect(log).toContain('started')
    expect(log).not.toContain('late\n')
  })
})

describe('teardown', () => {
  it('runs like setup, and its failure is not called a failed setup', async () => {
    await using made = await makeDressed(approving)
    expect(await runTeardown(made.context, made.provisioning({ teardown: ['touch gone'] }))).toMatchObject({
      ran: true,
      notices: [],
    })
    expect(existsSync(join(made.tree.path, 'gone'))).toBe(true)
    const failing = runTeardown(made.context, made.provisioning({ teardown: ['exit 1'] }))
    await expect(failing).rejects.toMatchObject({ code: 'program-failed' })
  })
})
