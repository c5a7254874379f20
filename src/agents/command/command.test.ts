import { randomUUID } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { identifySync, liveness, selfIdentity } from '../../process/identity.ts'
import { spawnDetached } from '../../process/spawn.ts'
import type { AgentEvent, AgentRequest, AgentResult } from '../agent.ts'
import { createCommandAgent } from './command.ts'
import { createSecrets } from '../../process/redaction/redact.ts'

let root = ''
let directory = ''
let contextDirectory = ''
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'coppice-command-')))
  directory = join(root, 'environment')
  contextDirectory = join(root, 'contexts')
  mkdirSync(directory)
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const PATH = process.env['PATH'] ?? ''

const run = async (
  command: string,
  overrides: Partial<AgentRequest> = {},
): Promise<AgentResult & { events: AgentEvent[] }> => {
  const events: AgentEvent[] = []
  const agent = createCommandAgent({
    command,
    clock: Date.now,
    ids: randomUUID,
    self: selfIdentity(),
    contextDirectory,
  })
  const result = await agent.run({
    directory,
    prompt: 'hello',
    context: undefined,
    session: undefined,
    rules: { access: 'write', allowedTools: [], disallowedTools: [] },
    untrusted: false,
    environment: { PATH },
    mark: { id: randomUUID(), cgroup: undefined },
    signal: new AbortController().signal,
    secrets: createSecrets(),
    emit: (event) => events.push(event),
    onStart: async () => {},
    ...overrides,
  })
  return { ...result, events }
}

test('standard input is exactly the message, whatever is in it', async () => {
  for (const prompt of ['', 'no newline', '$(id) `id` \' " \\ \n-n\n', 'grüße €😀', 'x'.repeat(300_000)]) {
    await run('cat > got', { prompt })
    expect(readFileSync(join(directory, 'got'), 'utf8')).toBe(prompt)
  }
})

test('the environment is the given one and the variables that tell about the run, and nothing else', async () => {
  const rules = { access: 'read', allowedTools: ['Read', 'Bash(git log:*)'], disallowedTools: ['Edit, Write'] } as const
  await run('env -0 > ../env', { environment: { PATH, PORT: '4000' }, rules, session: 'session-1' })
  const lines = readFileSync(join(root, 'env'), 'utf8').split('\0').filter(Boolean)
  // a shell says itself where it is
  const variables = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const { PWD: _pwd, OLDPWD: _old, SHLVL: _level, _: _last, ...told } = variables
  expect(told).toEqual({
    PATH,
    PORT: '4000',
    COPPICE_RUN: expect.stringMatching(/./),
    COPPICE_SESSION: 'session-1',
    COPPICE_CONTEXT: expect.stringMatching(/context\.md$/),
    COPPICE_ACCESS: 'read',
    COPPICE_ALLOWED_TOOLS: 'Read\nBash(git log:*)',
    COPPICE_DISALLOWED_TOOLS: 'Edit, Write',
  })
  await run('env > ../env')
  expect(readFileSync(join(root, 'env'), 'utf8')).not.toMatch(/TOOLS/)
})

test('the context is a file for our eyes only, outside the environment, and gone afterwards', async () => {
  const command =
    'cat "$COPPICE_CONTEXT"; echo "$COPPICE_CONTEXT" > ../name; ls -l "$COPPICE_CONTEXT" | cut -c1-10 > ../mode'
  const { text } = await run(command, { context: 'earlier: "fix it"\n' })
  const file = readFileSync(join(root, 'name'), 'utf8').trim()
  expect(text).toBe('earlier: "fix it"\n')
  expect(readFileSync(join(root, 'mode'), 'utf8').trim()).toBe('-rw-------')
  expect(dirname(dirname(file))).toBe(contextDirectory)
  expect(statSync(contextDirectory).mode & 0o777).toBe(0o700)
  expect(readdirSync(contextDirectory)).toEqual([])
  expect(readdirSync(directory)).toEqual([])
  // without any context there is still a file to read
  expect(await run('cat "$COPPICE_CONTEXT" && echo read')).toMatchObject({ outcome: 'done', text: 'read\n' })
})

test('what a killed process left of its contexts goes with the next run; a living one keeps its own', async () => {
  const other = await spawnDetached({ command: 'sleep', args: ['600'], cwd: '/', env: { PATH } })
  const name = (pid: number, startTime: string) => `${pid}.${Buffer.from(startTime).toString('hex')}.AbCdEf`
  const living = name(other.pid, other.startTime)
  mkdirSync(join(contextDirectory, name(other.pid, 'another start')), { recursive: true })
  mkdirSync(join(contextDirectory, living))
  mkdirSync(join(contextDirectory, 'not ours'))
  try {
    await run('true')
    expect(readdirSync(contextDirectory).sort()).toEqual([living, 'not ours'].sort())
  } finally {
    process.kill(other.pid, 'SIGKILL')
  }
  while (liveness(other) !== 'dead') await new Promise(setImmediate)
  await run('true')
  expect(readdirSync(contextDirectory)).toEqual(['not ours'])
})

test('a script can keep state under its session', async () => {
  const command = 'echo "$(cat)" >> "../state-$COPPICE_SESSION"; cat "../state-$COPPICE_SESSION"'
  const first = await run(command, { prompt: 'one' })
  const [said] = first.events
  const session = said?.type === 'session' ? said.id : undefined
  const second = await run(command, { prompt: 'two', session })
  expect(second.text).toBe('one\ntwo\n')
  expect((await run(command, { prompt: 'three' })).text).toBe('three\n')
})

test('a character that comes in two pieces is one', async () => {
  const events: AgentEvent[] = []
  // The rest comes when the first piece has been read.
  const command = String.raw`printf 'a\342'; while [ ! -e ../read ]; do sleep 0.01; done; printf '\202'; printf '\254b'`
  const emit = (event: AgentEvent): void => {
    events.push(event)
    if (event.type === 'text') writeFileSync(join(root, 'read'), '')
  }
  const { text } = await run(command, { emit })
  expect(text).toBe('a€b')
  expect(events.filter(({ type }) => type === 'text').length).toBeGreaterThan(1)
})

test('the problem names exit code or signal and the last words on standard error', async () => {
  const failed = await run('seq 1 1000 >&2; echo "API key expired." >&2; echo partly; exit 7')
  expect(failed).toMatchObject({
    outcome: 'failed',
    text: 'partly\n',
    problem: "The agent's command exited with code 7: 999 · 1000 · API key expired.",
  })
  expect(failed.remedy).toContain(directory)
  expect((await run('kill -9 $$')).problem).toContain('was killed by SIGKILL without an error message')
  const long = await run('head -c 20000 /dev/zero | tr "\\0" x >&2; exit 1')
  expect(long.problem?.length).toBeLessThan(700)
})

test('a command that is not there says where it is configured', async () => {
  const { outcome, remedy, problem } = await run('no-such-program --token hunter2')
  expect({ outcome, remedy }).toEqual({ outcome: 'failed', remedy: expect.stringContaining('COPPICE_AGENT_COMMAND') })
  expect(problem).toMatch(/not found/)
})

test.runIf(process.platform === 'linux')('cancelling also ends what went into a session of its own', async () => {
  const abort = new AbortController()
  const running = run(`setsid sh -c 'echo $$ > ../pid; exec sleep 600' & sleep 0; wait; exec sleep 600`, {
    signal: abort.signal,
  })
  const daemon = run(`setsid setsid -f sh -c 'echo $$ > ../daemon; exec sleep 600'; exec sleep 600`, {
    signal: abort.signal,
  })
  const strays: ProcessIdentity[] = []
  for (const name of ['pid', 'daemon']) strays.push(await identityIn(join(root, name)))
  expect(strays.map(liveness)).toEqual(['alive', 'alive'])
  abort.abort()
  expect([(await running).outcome, (await daemon).outcome]).toEqual(['cancelled', 'cancelled'])
  expect(strays.map(liveness)).toEqual(['dead', 'dead'])
})

const identityIn = async (file: string): Promise<ProcessIdentity> => {
  for (;;) {
    const name = file.slice(root.length + 1)
    const pid = readdirSync(root).includes(name) ? readFileSync(file, 'utf8').trim() : ''
    const identity = pid === '' ? undefined : identifySync(Number(pid))
    if (identity !== undefined) return identity
    await new Promise(setImmediate)
  }
}
