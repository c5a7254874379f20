import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { agentMark } from '../../src/process/run-mark.ts'
import { processesOfRuns } from '../../src/process/run-processes.ts'
import type { Script, Step } from '../helpers/model-servers/scripted.ts'
import { writeIn } from '../helpers/repo.ts'
import { until } from '../helpers/server-process.ts'
import {
  claudeProgram,
  codexProgram,
  type FleetProgram,
  makeProgramWorld,
  openTerminal,
  type ProgramWorld,
  textIn,
} from './fleet-world.ts'
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
      return { call: program.shell(`touch waiting; until [ -f '${go()}' ]; do sleep 0.1; done; echo WAITED`) }
    }
    if (file !== undefined && !whole.includes('END-OF-LONG')) return { call: program.read(file) }
    return { say: `FIRST-LINE\n\n${'A line.\n\n'.repeat(100)}HEARD-IT` }
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
      const { name, environment } = await world.start('Wait for me')
      await until('it waits', async () => (existsSync(join(environment.path, 'waiting')) ? true : undefined))
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
      // Also what has scrolled away.
      await until('peek shows it', async () => {
        const shown = await world.coppice('peek', name, '--lines', '600')
        return /FIRST-LINE(?:\s+A line\.){100}\s+HEARD-IT/.test(shown) ? true : undefined
      })
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
      const { whole, said } = world.request(before)
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

const inTurn =
  (...steps: Step[]): Script =>
  ({ results }) =>
    steps[results.length] ?? { say: 'HEARD-IT' }

const untilHeard = (world: ProgramWorld): Promise<string> =>
  until('it has answered', async () => {
    const shown = await world.coppice('peek', 'alder', '--lines', '200')
    return shown.includes('HEARD-IT') ? shown : undefined
  })

describe('claude, as its user has set it up', () => {
  const KEY_END = 'more-than-twenty-characters'.slice(-20)

  test('asks nothing about the repository, and the configuration stays as it was', async () => {
    const settings = JSON.stringify({ permissions: { ask: ['Bash(git push *)'] }, theme: 'light' })
    const answers = { approved: [], rejected: [KEY_END] }
    const user = (home: string): void => {
      writeIn(home, '.claude/settings.json', settings)
      writeIn(home, '.claude.json', JSON.stringify({ hasCompletedOnboarding: true, customApiKeyResponses: answers }))
    }
    const script = inTurn({
      call: claudeProgram.shell('git push --dry-run origin HEAD; env | grep -E "IS_DEMO|SANDBOXED"'),
    })
    await using world = await makeProgramWorld({ program: claudeProgram, kind: 'tmux', script, user })
    const [mcp, imported, hooked] = ['mcp', 'imported.md', 'hooked'].map((name) => world.box.path(name))
    writeFileSync(imported ?? '', 'the word heron\n')
    const start = [{ hooks: [{ type: 'command', command: `touch ${hooked}` }] }]
    const servers = { evil: { command: 'touch', args: [mcp] } }
    world.repo.write('.mcp.json', JSON.stringify({ mcpServers: servers }))
    world.repo.write('CLAUDE.md', `@${imported}\n`)
    world.repo.write('.claude/settings.json', JSON.stringify({ hooks: { SessionStart: start } }))
    world.repo.git('add', '-A')
    world.repo.git('commit', '-qm', 'settings')
    world.repo.git('push', '-q', 'origin', 'main')
    world.env['CLAUDE_CODE_OAUTH_TOKEN'] = 'made-up-token'
    await world.start('Fix the login button')
    await untilHeard(world)
    const { results, whole } = world.request(-1)
    expect(results[0]).toContain('Nobody is at this terminal')
    expect(whole).not.toContain('the word heron')
    // The repository's own hooks run, as in a conversation.
    expect([mcp, hooked].map((file) => existsSync(file ?? ''))).toEqual([false, true])
    // A key that its user has rejected isn't used.
    expect(world.model.headers.join('\n')).toContain('made-up-token')
    expect(world.model.headers.join('\n')).not.toContain('made-up-key')
    expect(readFileSync(join(world.box.home, '.claude', 'settings.json'), 'utf8')).toBe(settings)
    const configuration = JSON.parse(readFileSync(join(world.box.home, '.claude.json'), 'utf8')) as Configuration
    expect(configuration.customApiKeyResponses).toEqual(answers)
    const trusted = Object.values(configuration.projects ?? {}).filter((project) => project.hasTrustDialogAccepted)
    expect(trusted).toEqual([])
  })

  test('what reaches outside is denied without a question; its commands run without what starts it', async () => {
    const outside = '/var/tmp/coppice-outside-of-everything'
    const script = inTurn(
      { call: claudeProgram.write(outside, 'x') },
      { call: claudeProgram.shell('git config --global user.name Evil') },
      { call: { tool: 'AskUserQuestion', input: { questions: [] } } },
      { call: claudeProgram.read('/etc/hostname') },
      { call: claudeProgram.shell('env | grep -cE "^(IS_DEMO|CLAUDE_CODE_SANDBOXED)="') },
      { call: claudeProgram.shell('command -v coppice') },
    )
    await using world = await makeProgramWorld({ program: claudeProgram, kind: 'tmux', script })
    await world.start('Fix the login button')
    const shown = await untilHeard(world)
    expect(shown).not.toMatch(/Do you want|❯ 1\. Yes/)
    const { results } = world.request(-1)
    const nobody = expect.stringContaining('Nobody is at this terminal')
    const [write, config, question, read, variables, coppice] = results
    expect([write, read]).toEqual([nobody, nobody])
    expect(config).toContain('denied')
    expect(question).toMatch(/Nobody is at this terminal|error/i)
    expect(variables).toMatch(/(?:^|\s)0(?:\s|$)/)
    expect(coppice).toContain(join(world.home, 'fleet', 'bin', 'coppice'))
    expect(existsSync(outside)).toBe(false)
  })

  test('with agent.permissions ask, it works turn by turn: a question parks the item, and a message answers it', async () => {
    const script = inTurn({ call: claudeProgram.shell('touch allowed && echo ALLOWED') })
    const agent = ', permissions: ask'
    await using world = await makeProgramWorld({ program: claudeProgram, kind: 'tmux', script, agent })
    const { environment } = await world.start('Fix the login button')
    await until('the item is parked', async () => {
      const { state } = await world.json<{ state: string }>(world.repo.path, 'item', 'show', '1')
      return state === 'parked' ? true : undefined
    })
    expect(existsSync(join(environment.path, 'allowed'))).toBe(false)
    await world.coppice('nudge', 'alder', 'yes')
    await untilHeard(world)
    expect(existsSync(join(environment.path, 'allowed'))).toBe(true)
    expect(await world.json(world.repo.path, 'item', 'show', '1')).toMatchObject({ state: 'hooked' })
  })
})

type Configuration = {
  readonly customApiKeyResponses: object
  readonly projects?: Readonly<Record<string, { readonly hasTrustDialogAccepted: boolean }>>
}

describe('codex, as its user has set it up', () => {
  const hooks = (file: string): string => {
    const start = [{ hooks: [{ type: 'command', command: `touch ${file}` }] }]
    return JSON.stringify({ hooks: { SessionStart: start } })
  }

  test('hooks that nobody has approved are off, without a question, and the configuration stays as it was', async () => {
    const script = inTurn()
    await using world = await makeProgramWorld({ program: codexProgram, kind: 'tmux', script })
    const [own, repository] = ['own', 'repository'].map((name) => world.box.path(name))
    writeIn(world.box.home, '.codex/hooks.json', hooks(own ?? ''))
    world.repo.write('.codex/hooks.json', hooks(repository ?? ''))
    world.repo.git('add', '-A')
    world.repo.git('commit', '-qm', 'hooks')
    world.repo.git('push', '-q', 'origin', 'main')
    const configuration = join(world.box.home, '.codex', 'config.toml')
    const before = readFileSync(configuration, 'utf8')
    await world.start('Fix the login button')
    await untilHeard(world)
    expect([own, repository].map((file) => existsSync(file ?? ''))).toEqual([false, false])
    const after = readFileSync(configuration, 'utf8')
    expect(after.startsWith(before.trimEnd())).toBe(true)
    expect(after).not.toMatch(/trust|hooks|sandbox|approval/)
  })

  test('its commands are confined: no network, no writing elsewhere; the session does what they ask for, and nothing else', async () => {
    const script = inTurn(
      { call: codexProgram.shell('touch "$COPPICE_HOME/evil"; touch ../evil; echo DONE') },
      { call: codexProgram.shell('coppice prime --json') },
      { call: codexProgram.shell('coppice done --mode no-such-formula') },
      {
        call: codexProgram.shell(
          String.raw`echo '{"command":"serve"}' >"$COPPICE_REQUESTS/0-1"; echo 0-1 >"$COPPICE_REQUESTS/bell"; until [ -e "$COPPICE_REQUESTS/../answers/0-1" ]; do sleep 0.1; done; cat "$COPPICE_REQUESTS/../answers/0-1"`,
        ),
      },
      { call: codexProgram.shell('echo x >"$COPPICE_REQUESTS/../answers/evil"; echo DONE') },
    )
    await using world = await makeProgramWorld({ program: codexProgram, kind: 'tmux', script })
    await world.start('Fix the login button')
    await untilHeard(world)
    const { results } = world.request(-1)
    expect(results[0]).toMatch(/Read-only file system|denied|not permitted/i)
    expect(results[1]).toContain('Fix the login button')
    expect(results[2]).toContain('unknown formula')
    expect(results[3]).toContain('{}')
    const evil = [join(world.home, 'evil'), world.sessionFile('alder', 'answers/evil')]
    expect(evil.map((file) => existsSync(file))).toEqual([false, false])
  })

  test('nobody is logged in, and the key is in the environment: it works turn by turn', async () => {
    await using world = await makeProgramWorld({ program: codexProgram, kind: 'tmux', script: inTurn() })
    writeIn(world.box.home, '.codex/config.toml', `openai_base_url = "${world.model.url}/v1"\n`)
    await world.start('Fix the login button')
    const shown = await untilHeard(world)
    expect(shown).toContain('> You are alder')
    expect(shown).not.toContain('Sign in')
  })
})
