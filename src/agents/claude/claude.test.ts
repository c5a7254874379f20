import { randomUUID } from 'node:crypto'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeStage, type Stage, tell } from '../../../test/agents/stage.ts'
import { writeIn } from '../../../test/helpers/repo.ts'
import type { AgentRequest, AgentRules } from '../agent.ts'
import type { AgentAnswer, AgentQuestion } from '../question.ts'
import { claudeArguments, permissionsFor } from './arguments.ts'
import { type ClaudeAgentOptions, createClaudeAgent } from './claude.ts'
import { createClaudeControl } from './control.ts'
import { claudeMessage } from './message.ts'

/** Claude Code's control messages as a script; the real program is in test/agents/claude-asks.test.ts. */

let stage: Stage
beforeEach(() => {
  stage = makeStage()
})
afterEach(() => stage[Symbol.dispose]())

const write: AgentRules = { access: 'write', allowedTools: [], disallowedTools: [] }
const yes = async (): Promise<AgentAnswer> => ({ kind: 'allowed' })

/** As in the control protocol of @anthropic-ai/claude-agent-sdk 0.3.325 (sdk.d.ts: SDKControlPermissionRequest). */
const wish = (tool: string, input: object, id = 'r1'): Record<string, unknown> => ({
  type: 'control_request',
  request_id: id,
  request: { subtype: 'can_use_tool', tool_name: tool, input, tool_use_id: `toolu_${id}` },
})

type Asked = { rules?: AgentRules; ask?: NonNullable<AgentRequest['ask']>; signal?: AbortSignal }

const answerTo = async (event: Record<string, unknown>, { rules = write, ask = yes, signal }: Asked = {}) => {
  const asked: AgentQuestion[] = []
  const control = createClaudeControl({
    directory: stage.directory,
    rules,
    signal: signal ?? new AbortController().signal,
    ask: (question, withdrawn) => {
      asked.push(question)
      return ask(question, withdrawn)
    },
  })
  const sent = await new Promise<Record<string, unknown>>((resolve) => {
    control.onEvent(event, (response) => resolve(response as Record<string, unknown>))
  })
  const { response } = sent['response'] as { response?: { behavior: string; message?: string; updatedInput?: object } }
  return { response, sent, asked }
}

describe('a permission prompt', () => {
  test('is asked with exactly what would run, and allowed by nothing but an allow', async () => {
    const command = '# tidy\nrm -rf build'
    const { response, asked } = await answerTo(wish('Bash', { command }))
    expect(asked).toEqual([{ kind: 'permission', agent: 'claude', what: 'run a command', detail: command }])
    expect(response).toEqual({ behavior: 'allow', updatedInput: { command } })
    const others: readonly (AgentAnswer | undefined)[] = [
      { kind: 'denied' },
      { kind: 'answered', text: 'allowed' },
      undefined,
    ]
    for (const other of others) {
      const { response: no } = await answerTo(wish('Bash', { command }), { ask: async () => other })
      expect(no).toEqual({ behavior: 'deny', message: expect.any(String) })
    }
    const broken = await answerTo(wish('Bash', { command }), { ask: () => Promise.reject(new Error('no store')) })
    expect(broken.response).toMatchObject({ behavior: 'deny' })
  })

  test('that is pending when the run is stopped is never allowed', async () => {
    const stop = new AbortController()
    const ask = async (): Promise<AgentAnswer> => {
      stop.abort()
      return { kind: 'allowed' }
    }
    const { response } = await answerTo(wish('Bash', { command: 'x' }), { ask, signal: stop.signal })
    expect(response).toMatchObject({ behavior: 'deny' })
  })

  test('for an edit inside the worktree shows the change; one outside or in .git is denied without asking', async () => {
    const inside = join(stage.directory, 'src/login.ts')
    const { asked } = await answerTo(wish('Edit', { file_path: inside, old_string: 'a', new_string: 'b\nc' }))
    expect(asked).toEqual([{ kind: 'permission', agent: 'claude', what: 'edit src/login.ts', detail: '- a\n+ b\n+ c' }])
    symlinkSync(stage.repo.path, join(stage.directory, 'up'))
    const outside = ['/etc/passwd', '../x', '~/.bashrc', join(stage.directory, 'up/x'), join(stage.directory, '.git')]
    for (const file_path of outside) {
      const denied = await answerTo(wish('Write', { file_path, content: 'x' }))
      expect([file_path, denied.response?.behavior, denied.asked]).toEqual([file_path, 'deny', []])
    }
    expect((await answerTo(wish('Write', {}))).response).toMatchObject({ behavior: 'deny' })
  })

  test('is denied without asking in a read-only run, and for tools that a command does not allow', async () => {
    const inside = { file_path: join(stage.directory, 'x'), content: 'x' }
    const denied = [
      await answerTo(wish('Write', inside), { rules: { ...write, access: 'read' } }),
      await answerTo(wish('mcp__x__y', {}), { rules: { ...write, access: 'read' } }),
      await answerTo(wish('Bash', { command: 'touch x' }), { rules: { ...write, allowedTools: ['Bash(git log *)'] } }),
    ]
    expect(denied.map(({ response, asked }) => [response?.behavior, asked])).toEqual(denied.map(() => ['deny', []]))
    const allowed = await answerTo(wish('Write', inside), { rules: { ...write, allowedTools: ['Write'] } })
    expect(allowed.asked).toHaveLength(1)
  })

  test('that Claude Code takes back is not answered, and a request we do not know is refused', async () => {
    let withdrawn: AbortSignal | undefined
    const control = createClaudeControl({
      directory: stage.directory,
      rules: write,
      signal: new AbortController().signal,
      ask: async (_, signal) => {
        withdrawn = signal
        return new Promise((resolve) => signal?.addEventListener('abort', () => resolve(undefined)))
      },
    })
    const sent: object[] = []
    control.onEvent(wish('Bash', { command: 'x' }), (response) => sent.push(response))
    await expect.poll(() => withdrawn).toBeDefined()
    expect(control.isAsking()).toBe(true)
    control.onEvent({ type: 'control_cancel_request', request_id: 'r1' }, () => undefined)
    await expect.poll(() => control.isAsking()).toBe(false)
    expect(JSON.stringify(sent)).not.toContain('allow')
    const { sent: other } = await answerTo({ type: 'control_request', request_id: 'r2', request: { subtype: 'x' } })
    expect(other).toMatchObject({ response: { subtype: 'error', request_id: 'r2' } })
  })
})

describe('a question with choices', () => {
  const one = (question: string, multiSelect = false): object => ({
    question,
    header: 'x',
    multiSelect,
    options: [{ label: 'A', description: 'first' }, { label: 'B' }],
  })

  test('is asked one after the other, also in a read-only run, and answered by text', async () => {
    const ask = async (question: AgentQuestion): Promise<AgentAnswer> => ({
      kind: 'answered',
      text: question.kind === 'choice' && question.several ? 'A, B' : 'B',
    })
    const input = { questions: [one('First?'), one('Second?', true)] }
    const rules = { ...write, access: 'read' } as const
    const { response, asked } = await answerTo(wish('AskUserQuestion', input), { ask, rules })
    expect(asked[0]).toEqual({
      kind: 'choice',
      agent: 'claude',
      question: 'First?',
      choices: [{ label: 'A', description: 'first' }, { label: 'B' }],
      several: false,
    })
    const answers = { 'First?': 'B', 'Second?': 'A, B' }
    expect(response).toEqual({ behavior: 'allow', updatedInput: { ...input, answers } })
  })

  test('that is declined, not answered or not there is a denial, and no other is asked', async () => {
    const input = { questions: [one('First?'), one('Second?')] }
    for (const answer of [{ kind: 'denied' }, { kind: 'allowed' }, undefined] as const) {
      const { response, asked } = await answerTo(wish('AskUserQuestion', input), { ask: async () => answer })
      expect([response?.behavior, asked.length]).toEqual(['deny', 1])
    }
    expect((await answerTo(wish('AskUserQuestion', {}))).response).toMatchObject({ behavior: 'deny' })
  })
})

describe('the command line', () => {
  const call = { mode: 'acceptEdits', permissions: 'allow', asks: true, session: undefined } as const

  test('with asking, nothing runs in a mode that would answer for the user', () => {
    const strict = permissionsFor(write, { ...call, permissions: 'ask' })
    expect([strict.mode, strict.allowed]).toEqual(['default', []])
    expect(permissionsFor(write, { ...call, mode: 'bypassPermissions', permissions: 'ask' }).mode).toBe('default')
    expect(permissionsFor(write, { ...call, mode: 'plan', permissions: 'ask' }).mode).toBe('plan')
    expect(permissionsFor(write, call)).toMatchObject({ mode: 'acceptEdits', allowed: ['Bash'] })
    const read = permissionsFor({ ...write, access: 'read' }, call)
    expect(read.mode).toBe('default')
    expect(read.denied).toEqual(expect.arrayContaining(['Edit', 'Write', 'NotebookEdit', 'Bash', 'ExitPlanMode']))
  })

  test.each([
    { what: 'nobody to ask', change: {}, ask: undefined, asks: false },
    { what: 'agent.permissions deny', change: { permissions: 'deny' as const }, ask: yes, asks: false },
    { what: 'the mode dontAsk', change: { permissionMode: 'dontAsk' as const }, ask: yes, asks: false },
    { what: 'somebody to ask', change: {}, ask: yes, asks: true },
  ])('$what: asks is $asks', async ({ change, ask, asks }) => {
    await scripted([], change, ask === undefined ? {} : { ask })
    expect(readFileSync(stage.box.path('args'), 'utf8').includes('--permission-prompt-tool\nstdio')).toBe(asks)
  })

  test('attachments can be read and not edited; images and PDFs are part of the message, others are paths', async () => {
    const files = stage.box.path('files')
    const attached = (name: string, mediaType: string, bytes = 6, longestSide = 2_000) => {
      writeIn(files, name, 'pixels')
      return { path: join(files, name), name, mediaType, bytes, longestSide }
    }
    const attachments = [
      attached('a.png', 'image/png'),
      attached('b.pdf', 'application/pdf'),
      attached('c.log', 'text/plain'),
      attached('d.svg', 'image/svg+xml'),
      attached('huge.png', 'image/png', 50_000_000),
      // Of two this large, one fits into a request.
      attached('large.pdf', 'application/pdf', 10_000_000),
      attached('as-large.pdf', 'application/pdf', 10_000_000),
      // Would end a session that has more than 20 images.
      attached('wide.png', 'image/png', 6, 2_001),
      // Would count as the user's own words.
      { ...attached('theirs.png', 'image/png'), fromOthers: true as const },
      { ...attached('theirs.pdf', 'application/pdf'), fromOthers: true as const },
    ]
    const request = { rules: write, untrusted: false, attachments, prompt: 'look', context: undefined }
    const args = claudeArguments(request, call)
    expect(args).toEqual(expect.arrayContaining([`Read(/${files}/**)`, `Edit(/${files}/**)`]))
    expect(args.indexOf(`Edit(/${files}/**)`)).toBeGreaterThan(args.indexOf('--disallowedTools'))
    expect(args.indexOf(`Read(/${files}/**)`)).toBeLessThan(args.indexOf('--disallowedTools'))
    const { message } = (await claudeMessage(request as unknown as AgentRequest, 'mark')) as {
      message: { content: { type: string; text?: string; source?: object }[] }
    }
    expect(message.content.map(({ type }) => type)).toEqual(['text', 'image', 'document', 'document', 'text'])
    const data = Buffer.from('pixels').toString('base64')
    expect(message.content[1]?.source).toEqual({ type: 'base64', media_type: 'image/png', data })
    for (const { path } of attachments) expect(message.content[0]?.text).toContain(path)
    expect(message.content[4]?.text).toBe('look')
  })
})

test('a prompt on stdout is answered on stdin, which closes with the result', async () => {
  const prompt = JSON.stringify(wish('Bash', { command: 'npm test' }))
  const asked: AgentQuestion[] = []
  const told = await scripted(
    [`echo '${prompt}'`, `IFS= read -r answer; printf '%s' "$answer" > '${stage.box.path('answer')}'`],
    {},
    {
      ask: async (question) => {
        asked.push(question)
        return { kind: 'allowed' }
      },
    },
  )
  expect(told).toMatchObject({ outcome: 'done', text: 'fine' })
  expect(asked).toHaveLength(1)
  expect(JSON.parse(readFileSync(stage.box.path('answer'), 'utf8'))).toEqual({
    type: 'control_response',
    response: {
      subtype: 'success',
      request_id: 'r1',
      response: { behavior: 'allow', updatedInput: { command: 'npm test' } },
    },
  })
})

test('an agent that waits for an answer is not silent, however long it takes', async () => {
  const prompt = JSON.stringify(wish('Bash', { command: 'npm test' }))
  const told = await scripted(
    [`echo '${prompt}'`, 'IFS= read -r answer'],
    { silenceMs: 300 },
    { ask: () => new Promise((resolve) => setTimeout(() => resolve({ kind: 'denied' }), 1_000)) },
  )
  expect(told).toMatchObject({ outcome: 'done' })
})

test.each([
  [
    'before it has done anything: the session is given up and the message sent in a new one',
    '',
    ['session-lost'],
    'fine',
  ],
  [
    'after it has done something: the run fails, since it would do that again',
    `echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I try."}]}}'`,
    [],
    'I try.',
  ],
])('the model rejects an image of the session %s', async (_when, before, lost, text) => {
  const rejected = { type: 'result', subtype: 'success', is_error: true, api_error_status: 400, result: 'bad image' }
  const ends = [before, `echo '${JSON.stringify(rejected)}'`, 'exit 1'].join('; ').replace(/^; /, '')
  const resumes = `if grep -qx -e --resume '${stage.box.path('args')}'; then ${ends}; fi`
  const told = await scripted([resumes], {}, { session: 'a-session' })
  expect(told.text).toBe(text)
  expect(told.events.filter(({ type }) => type === 'session-lost').map(({ type }) => type)).toEqual(lost)
})

/** A `claude` that reads its message, does this, and ends when its stdin does. */
const scripted = (
  lines: readonly string[],
  change: Partial<ClaudeAgentOptions>,
  request: Partial<AgentRequest>,
): ReturnType<typeof tell> => {
  const command = stage.box.path('claude.sh')
  const script = [
    `printf '%s\\n' "$@" > '${stage.box.path('args')}'`,
    'IFS= read -r message',
    ...lines,
    `echo '{"type":"result","subtype":"success","is_error":false,"result":"fine"}'`,
    'cat > /dev/null',
  ]
  writeFileSync(command, `#!/bin/sh\n${script.join('\n')}\n`, { mode: 0o755 })
  const agent = createClaudeAgent({
    command,
    permissionMode: 'acceptEdits',
    permissions: 'allow',
    silenceMs: 60_000,
    clock: Date.now,
    ids: randomUUID,
    ownEnvironment: stage.box.env,
    ...change,
  })
  return tell(agent, stage, request)
}
