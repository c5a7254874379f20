import { realpathSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeStage, type Stage } from '../../../test/agents/stage.ts'
import type { InteractiveRequest } from '../agent.ts'
import { codexInTerminal } from './terminal.ts'

/** Codex's app server by the shape of its answers, as a script; the real one is in test/agents/fleet-sessions.test.ts. */

let stage: Stage
beforeEach(() => {
  stage = makeStage()
})
afterEach(() => stage[Symbol.dispose]())

type Answers = Partial<Record<'start' | 'account' | 'hooks' | 'threads', object | undefined>>

const usual = (): Required<Answers> => ({
  start: { result: { userAgent: 'coppice/0.166.0 (Debian 12.0.0; x86_64)' } },
  account: { result: { account: { type: 'apiKey' }, requiresOpenaiAuth: true } },
  hooks: { result: { data: [{ cwd: stage.directory, hooks: [] }] } },
  threads: { result: { data: [] } },
})

const request = (change: Partial<InteractiveRequest> = {}): InteractiveRequest => ({
  directory: realpathSync(stage.directory),
  prompt: 'You are alder, an agent of the pool workers. Your item is 1.',
  sessionId: '1',
  since: 1_000_000,
  resume: false,
  outside: { readable: [], writable: ['/the/requests'] },
  files: stage.box.root,
  ...change,
})

/** The command line, or undefined, if the app server answers so. */
const started = async (answers: Answers = {}, change: Partial<InteractiveRequest> = {}) => {
  const command = stage.box.path('codex.sh')
  const given = { ...usual(), ...answers }
  const lines = [given.start, given.account, given.hooks, given.threads].map((answer, id) =>
    answer === undefined ? '' : `echo '${JSON.stringify({ id, ...answer })}'`,
  )
  const events = ['echo \'{"method":"configWarning","params":{}}\'', 'echo not JSON']
  writeFileSync(command, `#!/bin/sh\n${[...events, ...lines].join('\n')}\ncat >/dev/null\n`, { mode: 0o755 })
  const own = stage.box.env
  return codexInTerminal(request(change), {
    command,
    installed: { command, own, granted: {}, clock: Date.now },
    sandbox: 'workspace-write',
    config: [],
  })
}

const METHOD_UNKNOWN = { error: { code: -32600, message: 'unknown method' } }

test('it is trusted here, in its sandbox, which may write to what its session needs; nobody is asked', async () => {
  const { command = [], escapeOnInterrupt } = (await started()) ?? {}
  const settings = command.filter((_word, i) => command[i - 1] === '-c')
  expect(settings).toEqual(
    expect.arrayContaining([
      'sandbox_mode="workspace-write"',
      'approval_policy="never"',
      'allow_login_shell=false',
      `projects={"${stage.directory}"={trust_level="trusted"}}`,
      'check_for_update_on_startup=false',
      'notice.hide_rate_limit_model_nudge=true',
      'tui.alternate_screen="never"',
    ]),
  )
  expect(settings.find((setting) => setting.includes('writable_roots'))).toContain('"/the/requests"]')
  expect(command.slice(-2)).toEqual(['--', request().prompt])
  expect(escapeOnInterrupt).toBe(true)
})

test.each([
  ['0.166.0', true],
  ['0.156.0', true],
  ['0.155.9', false],
])('version %s stays out of the shared server by an option: %s', async (version, expected) => {
  const { command } = (await started({ start: { result: { userAgent: `coppice/${version} (x)` } } })) ?? {
    command: [''],
  }
  expect(command.some((word) => word === '--no-daemon')).toBe(expected)
})

test.each([
  ['nobody is logged in', { result: { account: null, requiresOpenaiAuth: true } }],
  ['it says nothing of it', METHOD_UNKNOWN],
  ['it says something else', { result: { account: null } }],
])('it has no terminal of its own if %s', async (_what, account) => {
  expect(await started({ account })).toBeUndefined()
})

test('it has one if its model needs no login, and without a program it has none', async () => {
  expect(await started({ account: { result: { account: null, requiresOpenaiAuth: false } } })).toBeDefined()
  const command = '/no/such/program'
  const installed = { command, own: stage.box.env, granted: {}, clock: Date.now }
  expect(
    await codexInTerminal(request(), { command, installed, sandbox: 'workspace-write', config: [] }),
  ).toBeUndefined()
})

test('hooks that nobody has approved are off, and the others are as they were', async () => {
  const hooks = ['trusted', 'untrusted', 'modified', 'managed'].map((trustStatus) => ({
    key: `/a "dir"/${trustStatus}`,
    currentHash: `sha256:${trustStatus}`,
    trustStatus,
  }))
  const { command = [] } = (await started({ hooks: { result: { data: [{ hooks }] } } })) ?? {}
  expect(command.filter((word) => word.startsWith('hooks.'))).toEqual([
    String.raw`hooks.state={"/a \"dir\"/untrusted"={enabled=false, trusted_hash="sha256:untrusted"}, "/a \"dir\"/modified"={enabled=false, trusted_hash="sha256:modified"}}`,
  ])
  const older = (await started({ hooks: METHOD_UNKNOWN })) ?? { command: [] }
  expect(older.command.filter((word) => word.startsWith('hooks.'))).toEqual([])
})

test("it continues the agent's own thread: here, since the agent exists, begun with its beacon", async () => {
  const cwd = realpathSync(stage.directory)
  const preview = 'You are alder, an agent of the pool workers. Your item is 7.'
  const own = { id: 'own', cwd, createdAt: 2_000, preview }
  const others = [
    { ...own, id: 'of-a-person', createdAt: 9_000, preview: 'what is this?' },
    { ...own, id: 'elsewhere', createdAt: 9_000, cwd: '/elsewhere' },
    { ...own, id: 'of-an-earlier-agent', createdAt: 900 },
    { ...own, id: '--last', createdAt: 9_000 },
    { ...own, id: 'earlier', createdAt: 1_500 },
  ]
  const threads = { result: { data: [...others, own] } }
  const resumed = (await started({ threads }, { resume: true })) ?? { command: [] }
  expect(resumed.command.slice(1, 4)).toEqual(['--no-daemon', 'resume', 'own'])
  expect((await started({ threads }, { resume: false }))?.command).not.toContain('resume')
  const none = { result: { data: others.slice(0, 4) } }
  expect((await started({ threads: none }, { resume: true }))?.command).not.toContain('resume')
  expect((await started({ threads: METHOD_UNKNOWN }, { resume: true }))?.command).not.toContain('resume')
})
