import { existsSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { agentMark } from '../../src/process/run-mark.ts'
import { processesOfRuns } from '../../src/process/run-processes.ts'
import type { Script, Step } from '../helpers/model-servers/scripted.ts'
import { until } from '../helpers/server-process.ts'
import { claudeProgram, codexProgram, type FleetProgram, makeProgramWorld, openTerminal, textIn } from './fleet-world.ts'
import { INSTALL_TIMEOUT_MS, programs } from './stage.ts'

/** The real programs as agents of the fleet, against models that follow a script. */

const usual = process.env['TMPDIR']
beforeAll(() => void programs(), INSTALL_TIMEOUT_MS)
beforeEach(() => {
  // Codex's sandbox has a /dev of its own, without /dev/shm, and may write to /tmp.
  process.env['TMPDIR'] = '/var/tmp'
})
afterAll(() => {
  process.env['TMPDIR'] = usual
})

/** Where the agent works, as its beacon says. */
const placeIn = (said: string): string => / in (\/\S+), on the branch/.exec(said)?.[1] ?? ''

/** What a diligent agent does with its item. */
const diligent =
  (program: FleetProgram): Script =>
  ({ said, results }) => {
    const place = placeIn(said.at(-1) ?? '')
    const steps: Step[] = [
      { call: program.shell('coppice prime') },
      { call: program.write(`${place}/login.ts`, 'export const login = 1') },
      { call: program.shell('git add -A && git commit -qm "Fix the login" && git log --oneline -1') },
      { say: 'I am done with it.', call: program.shell('coppice done') },
    ]
    return steps[results.length] ?? { say: 'There is nothing more to do.' }
  }


/** Says what it was told, at once; while it is told to wait, it waits in a command until the file is there. */
const waiting =
  (program: FleetProgram, go: () => string): Script =>
  ({ said, results, whole }) => {
    const last = said.at(-1) ?? ''
    const file = /Read (\/\S+\.txt)/.exec(last)?.[1] ?? /Read (\/\S+\.txt)/.exec(whole)?.[1]
    const isOrder = last.includes('You are alder')
    if (isOrder && results.length === 0) {
      return { call: program.shell(`until [ -f '${go()}' ]; do sleep 0.1; done; echo WAITED`) }
    }
    if (file !== undefined && !whole.includes('END-OF-LONG')) return { call: program.read(file) }
    return { say: 'HEARD-IT' }
  }

describe.each([claudeProgram, codexProgram])('$name', (program) => {
  describe.each(['tmux', 'process'] as const)('in %s', (kind) => {
    test('starts without a question, does its item and is gone', async () => {
      await using world = await makeProgramWorld({ program, kind, script: diligent(program) })
      const agent = await world.start('Fix the login button')
      const last = await world.asked('I am done with it.')
      const beacon = `You are alder, an agent of the pool workers. You work on project in ${agent.environment.path}`
      expect(last.said.join('\n')).toContain(beacon)
      expect(last.said.join('\n')).toContain('Your item is 1: Fix the login button.')
      expect(last.results[0]).toContain('Fix the login button')
      expect(last.results[0]).toContain('coppice done')
      expect(last.results[2]).toContain('Fix the login')
      await world.expectGone(agent)
      const pushed = world.box.raw(world.repo.origin, 'log', '-1', '--format=%s', agent.environment.branch)
      expect(pushed).toBe('Fix the login')
      expect(await world.json(world.repo.path, 'item', 'show', '1')).toMatchObject({ state: 'closed' })
      expect(world.repo.git('status', '--porcelain')).toBe('')
    })

    test('messages reach it while it works: short, of several lines, and long; peek shows what it does', async () => {
      let go = ''
      await using world = await makeProgramWorld({ program, kind, script: waiting(program, () => go) })
      go = world.box.path('go')
      const { name } = await world.start('Wait for me')
      await world.asked('You are alder')
      await until('it waits', async () => ((await world.coppice('peek', name)).includes(go) ? true : undefined))
      const long = `${Array.from({ length: 200 }, (_, i) => `${i} ${'x'.repeat(96)}`).join('\n')}\nEND-OF-LONG`
      await world.coppice('nudge', name, 'short words with @README')
      await world.coppice('nudge', name, 'first line\n\nthird line\nfourth line')
      await world.coppice('nudge', name, '/exit')
      await world.coppice('nudge', name, long)
      writeFileSync(go, '')
      const { whole } = await world.asked('END-OF-LONG')
      const heard = ['short words with @README', 'first line\n\nthird line\nfourth line', 'Message: /exit']
      for (const text of heard) expect(whole).toContain(JSON.stringify(text).slice(1, -1))
      expect(long.length).toBeGreaterThan(20_000)
      await until('peek shows it', async () =>
        (await world.coppice('peek', name, '--lines', '200')).includes('HEARD-IT') ? true : undefined,
      )
      expect((await world.agents())[0]).toMatchObject({ name, state: 'working' })
    })

    test.each(['resume', 'fresh'] as const)('down keeps its work and up continues: wake %s', async (wake) => {
      const script: Script = ({ said }) => ({ say: `HEARD-${said.filter((text) => text.includes('You are')).length}` })
      await using world = await makeProgramWorld({ program, kind, wake, script })
      const agent = await world.start('Fix the login button')
      await until('it has answered', async () =>
        (await world.coppice('peek', 'alder')).includes('HEARD-1') ? true : undefined,
      )
      await world.coppice('fleet', 'down')
      expect((await processesOfRuns([agentMark(world.home, agent.spawn)])).rows).toEqual([])
      expect(existsSync(agent.environment.path)).toBe(true)
      const before = world.model.asked.length
      await world.coppice('fleet', 'up')
      await until('the model is asked again', async () => (world.model.asked.length > before ? true : undefined))
      const { whole, said } = world.model.asked[before] ?? expect.unreachable()
      expect(said.at(-1)).toContain('You are alder, an agent of the pool workers.')
      expect(whole.includes('HEARD-1')).toBe(wake === 'resume')
      expect((await world.agents())[0]).toMatchObject({ name: 'alder', state: 'working', item: 1 })
    })

    test('killed, it leaves a record of its end', async () => {
      await using world = await makeProgramWorld({ program, kind, script: () => ({ say: 'HEARD-IT' }) })
      const { name } = await world.start('Fix the login button')
      await world.asked('You are alder')
      process.kill(Number(textIn(world.sessionFile(name, 'started'))), 'SIGKILL')
      const ended = await until('its end is recorded', async () => textIn(world.sessionFile(name, 'ended')))
      expect(ended).toBe('137')
      expect((await world.json<{ needsYou: object[] }>(world.repo.path, 'fleet', 'status')).needsYou).toEqual([
        expect.objectContaining({ kind: 'no-session', agent: name }),
      ])
    })
  })

  test('the Ctrl-C of somebody who is attached does not end it', async () => {
    await using world = await makeProgramWorld({ program, kind: 'tmux', script: () => ({ say: 'HEARD-IT' }) })
    const { name } = await world.start('Fix the login button')
    await until('it has answered', async () =>
      (await world.coppice('peek', name)).includes('HEARD-IT') ? true : undefined,
    )
    await using terminal = await openTerminal(world, 'attach', name)
    await until('it is shown', async () => (terminal.screen().includes('HEARD-IT') ? true : undefined))
    terminal.press('C-c')
    terminal.type('typed by a person')
    await until('it is shown', async () => (terminal.screen().includes('typed by a person') ? true : undefined))
    terminal.press('Enter')
    await world.asked('typed by a person')
    expect(textIn(world.sessionFile(name, 'ended'))).toBeUndefined()
  })

  test('with a server, which pushes and settles what it finishes', async () => {
    await using world = await makeProgramWorld({ program, kind: 'tmux', script: diligent(program) })
    const server = await world.serve()
    const agent = await world.start('Fix the login button')
    await world.expectGone(agent)
    expect(await world.json(world.repo.path, 'item', 'show', '1')).toMatchObject({ state: 'closed' })
    expect(world.box.raw(world.repo.origin, 'rev-parse', agent.environment.branch)).toMatch(/^[0-9a-f]{40}$/)
    await server.stop()
  })
})
