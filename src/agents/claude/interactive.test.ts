import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeSandbox, type Sandbox, writeIn } from '../../../test/helpers/repo.ts'
import type { ClaudePermissionMode } from '../../domain/config/agents.ts'
import type { InteractiveRequest } from '../agent.ts'
import { createClaudeAgent } from './claude.ts'
import { type ClaudeTerminal, claudeInTerminal } from './interactive.ts'

/** What it is started with; the real program is in test/agents/fleet-sessions.test.ts. */

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())

const SESSION = '2b1d8e0a-6f0e-4f4e-9d8a-3f1c6f1f0a11'
const KEY = 'sk-ant-api03-abcdefghijklmnopqrstuvwxyz'

const started = async (change: Partial<InteractiveRequest> = {}, terminal: Partial<ClaudeTerminal> = {}) => {
  const request: InteractiveRequest = {
    directory: box.root,
    prompt: '--print nothing',
    sessionId: SESSION,
    since: 0,
    resume: false,
    outside: { readable: [box.path('messages')], writable: [] },
    files: box.root,
    ...change,
  }
  const { command, variables } = await claudeInTerminal(request, {
    command: 'claude',
    permissionMode: 'acceptEdits',
    permissions: 'allow',
    granted: {},
    ownEnvironment: { HOME: box.home },
    ...terminal,
  })
  const after = (option: string): string[] => {
    const rest = command.slice(command.indexOf(option) + 1)
    return rest.slice(
      0,
      rest.findIndex((word) => word.startsWith('--')),
    )
  }
  const settings = JSON.parse(after('--settings')[0] ?? '{}') as Record<string, unknown>
  return { command, variables, after, settings }
}

test('it may run commands and edit here, and read its messages; what reaches outside is denied by list', async () => {
  const { command, after } = await started()
  expect(after('--permission-mode')).toEqual(['acceptEdits'])
  expect(after('--allowedTools')).toEqual(['Bash', `Read(/${box.path('messages')}/**)`])
  expect(after('--disallowedTools')).toEqual(
    expect.arrayContaining(['WebFetch', 'Bash(git worktree *)', `Edit(/${box.path('messages')}/**)`]),
  )
  // Not an option, whatever it is.
  expect(command.slice(-2)).toEqual(['--', '--print nothing'])
})

test('whatever else it would ask is denied by a command without a quote that could end it', async () => {
  const { settings } = await started()
  const hooks = settings['hooks'] as { PermissionRequest: { hooks: { command: string }[] }[] }
  const [given = ''] = hooks.PermissionRequest.flatMap((entry) => entry.hooks.map(({ command }) => command))
  const [, json = ''] = /^printf '%s' '([^']*)'$/.exec(given) ?? []
  expect(JSON.parse(json)).toMatchObject({ hookSpecificOutput: { decision: { behavior: 'deny' } } })
})

test('its commands get neither of the variables that let it start', async () => {
  const { variables } = await started()
  expect(variables).toMatchObject({ IS_DEMO: '1', CLAUDE_CODE_SANDBOXED: '1' })
  const file = variables['CLAUDE_ENV_FILE'] ?? ''
  expect(readFileSync(file, 'utf8')).toBe('unset IS_DEMO CLAUDE_CODE_SANDBOXED\n')
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test.each([
  ['was never asked about', undefined, true],
  ['was approved', { approved: [KEY.slice(-20)], rejected: [] }, false],
  ['was rejected', { approved: [], rejected: [KEY.slice(-20)] }, false],
  ['is another than those', { approved: ['x'], rejected: ['y'] }, true],
] as const)('a key that its user %s', async (_what, customApiKeyResponses, isPassed) => {
  writeIn(box.home, '.claude.json', JSON.stringify({ customApiKeyResponses }))
  const { settings, command } = await started({}, { granted: { ANTHROPIC_API_KEY: KEY } })
  expect('apiKeyHelper' in settings).toBe(isPassed)
  expect(command.join(' ')).not.toContain(KEY)
})

test('the user’s answers about a key are in the directory that CLAUDE_CONFIG_DIR names', async () => {
  const ownEnvironment = { HOME: box.home, CLAUDE_CONFIG_DIR: join(box.home, 'other') }
  const given = { granted: { ANTHROPIC_API_KEY: KEY }, ownEnvironment }
  writeIn(box.home, '.claude.json', JSON.stringify({ customApiKeyResponses: { approved: [KEY.slice(-20)] } }))
  expect((await started({}, given)).settings).toHaveProperty('apiKeyHelper')
  writeIn(box.home, 'other/.claude.json', JSON.stringify({ customApiKeyResponses: { rejected: [KEY.slice(-20)] } }))
  expect((await started({}, given)).settings).not.toHaveProperty('apiKeyHelper')
})

test('without a key, or with a configuration that makes no sense', async () => {
  expect((await started()).settings).not.toHaveProperty('apiKeyHelper')
  writeIn(box.home, '.claude.json', '{ "customApi')
  expect((await started({}, { granted: { ANTHROPIC_API_KEY: KEY } })).settings).toHaveProperty('apiKeyHelper')
})

test('its session is begun with an ID, and found by it', async () => {
  expect((await started({ resume: true })).after('--session-id')).toEqual([SESSION])
  writeIn(box.home, `.claude/projects/-some-where/${SESSION}.jsonl`, '{"type":"user"}\n')
  expect((await started({ resume: true })).after('--resume')).toEqual([SESSION])
  // A new one can't have the same ID.
  const { command } = await started({ resume: false })
  expect(command.filter((word) => word === '--resume' || word === '--session-id')).toEqual([])
  const elsewhere = { HOME: box.home, CLAUDE_CONFIG_DIR: join(box.home, 'other') }
  expect((await started({ resume: true }, { ownEnvironment: elsewhere })).command).toContain('--session-id')
})

test('a session that ended before its first message is neither continued nor begun again', async () => {
  const empty = (id: string): void => writeIn(box.home, `.claude/projects/-some-where/${id}.jsonl`, '{"type":"mode"}\n')
  empty(SESSION)
  const [other = ''] = (await started({ resume: true })).after('--session-id')
  expect(other).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(other).not.toBe(SESSION)
  empty(other)
  const [third = ''] = (await started({ resume: true })).after('--session-id')
  expect([SESSION, other]).not.toContain(third)
  writeIn(
    box.home,
    `.claude/projects/-some-where/${third}.jsonl`,
    '{"type":"mode"}\n{"parentUuid":null,"type":"user"}\n',
  )
  expect((await started({ resume: true })).after('--resume')).toEqual([third])
})

test.each([
  ['allow', 'acceptEdits', true],
  ['deny', 'dontAsk', true],
  ['ask', 'acceptEdits', false],
  ['allow', 'plan', false],
] as const)('with permissions %s and the mode %s, it has a terminal of its own: %s', (permissions, mode, expected) => {
  const permissionMode: ClaudePermissionMode = mode
  const agent = createClaudeAgent({
    command: 'claude',
    permissionMode,
    permissions,
    silenceMs: 1,
    clock: Date.now,
    ids: () => '1',
    ownEnvironment: {},
  })
  expect(agent.interactive !== undefined).toBe(expected)
})
