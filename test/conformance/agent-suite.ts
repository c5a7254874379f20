import type { Launch } from '../../src/domain/program.ts'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Agent, AgentEvent, AgentRequest } from '../../src/agents/agent.ts'
import type { ProcessIdentity } from '../../src/domain/process-identity.ts'
import { identifySync, liveness } from '../../src/process/identity.ts'
import { killTree } from '../../src/process/kill.ts'
import { runProgram } from '../../src/process/spawn.ts'
import { makeSandbox } from '../helpers/repo.ts'
import { type AgentSpec, contextDirectory, readTrace, type Scene } from './agent-specs.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { remedyIn } from '../helpers/words.ts'

const CANARY = 'COPPICE_TEST_CANARY'
let scene: Scene

const request = (events: AgentEvent[], overrides: Partial<AgentRequest> = {}): AgentRequest => ({
  directory: scene.directory,
  prompt: 'fix the login bug',
  context: undefined,
  session: undefined,
  rules: { access: 'write', allowedTools: [], disallowedTools: [] },
  untrusted: false,
  environment: { ...scene.box.env, COPPICE_MESSAGE: 'message-1' },
  mark: { id: randomUUID(), cgroup: undefined },
  signal: new AbortController().signal,
  secrets: createSecrets(),
  emit: (event) => events.push(event),
  onStart: async () => {},
  ...overrides,
})

const textOf = (events: readonly AgentEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')
const sessionsOf = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'session' ? [event.id] : []))

/** Everything that the run has no business with: the shared checkout, the sibling, and what git knows of both. */
const elsewhere = (): string[] => {
  const { repo, box } = scene
  return [repo.path, box.path('sibling')].flatMap((path) => [
    box.raw(path, 'status', '--porcelain', '--ignored', '--branch'),
    box.raw(path, 'rev-parse', 'HEAD'),
    box.raw(path, 'config', '--list', '--local'),
    readdirSync(path).join(' '),
  ])
}
const here = (): string =>
  scene.box.raw(scene.directory, 'rev-parse', 'HEAD') + scene.box.raw(scene.directory, 'status', '--porcelain')

const pidsIn = async (trace: string, count: number): Promise<ProcessIdentity[]> => {
  const lines = () => readTrace(scene.trace(trace)).trim().split('\n').filter(Boolean)
  while (lines().length < count) await new Promise(setImmediate)
  return lines().flatMap((pid) => identifySync(Number(pid)) ?? [])
}

/** Every agent passes this suite. A new one adds its spec to one of the two lists: with a program to install or without. */
export const agentSuite = (specs: readonly AgentSpec[]): void => {
  beforeEach(() => {
    const box = makeSandbox()
    const repo = box.repo('project')
    const { path } = repo.worktree('environment', '-b', 'work')
    repo.worktree('sibling', '-b', 'other')
    mkdirSync(box.path('traces'))
    scene = { box, repo, directory: path, trace: (name) => box.path('traces', name) }
    process.env[CANARY] = 'secret'
  })
  afterEach(() => {
    delete process.env[CANARY]
    scene.box[Symbol.dispose]()
  })
  describe.each(specs)('the agent $name', (spec) => {
    test('starts its program the way the environment says, if it starts one', async () => {
      const agent = spec.works(scene)
      const started: string[] = []
      const launch: Launch = (program) => {
        started.push(program.cwd)
        return program
      }
      expect((await agent.run(request([], { launch }))).outcome).toBe('done')
      expect(new Set(started)).toEqual(new Set(spec.startsNothing === true ? [] : [scene.directory]))
    })

    test('says what it can do, under its own name', async () => {
      const agent = spec.works(scene)
      expect(agent.name).toBe(spec.name)
      expect(await agent.availability()).toMatchObject({ state: 'ready' })
    })

    test('works in its directory and nowhere else, and its reply is what it said on the way', async () => {
      const before = elsewhere()
      const untouched = here()
      const events: AgentEvent[] = []
      const result = await spec.works(scene).run(request(events, { context: 'earlier words' }))
      expect(result).toMatchObject({ outcome: 'done', text: textOf(events) })
      expect(result.text).toContain('fix the login bug')
      expect(here()).not.toBe(untouched)
      expect(elsewhere()).toEqual(before)
      expect(readdirSync(scene.box.root).includes('contexts') ? readdirSync(contextDirectory(scene)) : []).toEqual([])
    })

    test('works even if an image sent with the message is gone', async () => {
      const gone = scene.box.path('files', 'gone.png')
      const attachments = [{ path: gone, name: 'a\nb.png', mediaType: 'image/png', bytes: 10 }]
      const result = await spec.works(scene).run(request([], { attachments }))
      expect(result.outcome).toBe('done')
    })

    test('names its session before it says anything, and goes on in the one it is given', async () => {
      const first: AgentEvent[] = []
      await spec.works(scene).run(request(first))
      const [session] = sessionsOf(first)
      expect(first[0]).toEqual({ type: 'session', id: expect.stringMatching(/^\S+$/) })
      const second: AgentEvent[] = []
      const again = request(second, { session, environment: { ...scene.box.env, COPPICE_MESSAGE: 'message-2' } })
      expect(await spec.works(scene).run(again)).toMatchObject({ outcome: 'done' })
      const resumed = sessionsOf(second)[0] === session
      // One that may forget begins anew and says so; all others go on.
      const forgot = second.some(({ type }) => type === 'session-lost')
      expect(resumed || (spec.mayForget === true && forgot)).toBe(true)
      const other: AgentEvent[] = []
      await spec.works(scene).run(request(other, { environment: { ...scene.box.env, COPPICE_MESSAGE: 'message-3' } }))
      expect(sessionsOf(other)).not.toEqual([session])
    })

    test('does nothing before its process is written down', async () => {
      const untouched = here()
      const seen: string[] = []
      const events: AgentEvent[] = []
      const onStart = async (identity: ProcessIdentity): Promise<void> => {
        // as long as another shell takes to do what it would do
        await runProgram({
          shell: 'cat > "$OUT"; echo',
          stdin: 'x',
          cwd: '/',
          env: { ...scene.box.env, OUT: scene.trace('other') },
          clock: Date.now,
          outputLimitBytes: 100,
        })
        seen.push(liveness(identity), here() === untouched ? 'untouched' : 'touched', textOf(events))
      }
      await spec.works(scene).run(request(events, { onStart }))
      expect(seen).toEqual(['alive', 'untouched', ''])
    })

    test('does not begin when its process cannot be written down', async () => {
      const untouched = here()
      const onStart = async () => {
        throw new Error('the store is gone')
      }
      await expect(spec.works(scene).run(request([], { onStart }))).rejects.toThrow('the store is gone')
      expect(here()).toBe(untouched)
    })

    test('a failure is an outcome with one sentence of what happened and one of what to do', async () => {
      const events: AgentEvent[] = []
      const result = await spec.fails(scene).run(request(events))
      expect(result).toMatchObject({
        outcome: 'failed',
        text: textOf(events),
        problem: expect.stringMatching(/^[A-Z].*no such (model|tree).*\.$/s),
      })
      expect(remedyIn(result)).toMatch(/^\S/)
    })

    test('a directory that is not there is a failure too, and nothing is made in its place', async () => {
      const directory = scene.box.path('gone')
      const result = await spec.works(scene).run(request([], { directory }))
      expect(result).toMatchObject({ outcome: 'failed', problem: expect.any(String) })
      expect(remedyIn(result)).not.toBe('')
      expect(readdirSync(scene.box.root)).not.toContain('gone')
    })

    test('cancelling leaves no process of its tree alive, not even one that ignores SIGTERM', async () => {
      const abort = new AbortController()
      const events: AgentEvent[] = []
      const run = spec.hangs(scene).run(request(events, { signal: abort.signal }))
      const family = await pidsIn('pids', 2)
      expect(family.map(liveness)).toEqual(['alive', 'alive'])
      // A tool is shown when it starts: this one never ends.
      const isShown = (): boolean => spec.hasTools !== true || events.some(({ type }) => type === 'tool')
      await expect.poll(isShown, { timeout: 10_000 }).toBe(true)
      abort.abort()
      expect(await run).toEqual({ outcome: 'cancelled', text: textOf(events) })
      expect(family.map(liveness)).toEqual(['dead', 'dead'])
    })

    test('one that was cancelled before it began does nothing', async () => {
      const untouched = here()
      const run = spec.works(scene).run(request([], { signal: AbortSignal.abort() }))
      expect(await run).toMatchObject({ outcome: 'cancelled' })
      expect(here()).toBe(untouched)
    })

    test('what it starts is in the directory and sees nothing of our environment', async () => {
      const given = { ...scene.box.env, COPPICE_MESSAGE: 'message-1', GIVEN: 'a\nb' }
      expect(await spec.tells(scene).run(request([], { environment: given }))).toMatchObject({ outcome: 'done' })
      const names = readTrace(scene.trace('env')).split('\0')
      expect(readTrace(scene.trace('cwd')).trim()).toBe(scene.directory)
      expect(names.length).toBeGreaterThan(2)
      expect(names.filter((line) => line.startsWith(CANARY) || line.includes('secret'))).toEqual([])
    })

    test('many at once do not hear each other', async () => {
      const agent: Agent = spec.works(scene)
      const runs = Array.from({ length: 4 }, async (_, n) => {
        const { path } = scene.repo.worktree(`tree-${n}`, '-b', `branch-${n}`)
        const events: AgentEvent[] = []
        const environment = { ...scene.box.env, COPPICE_MESSAGE: `message-${n}` }
        const result = await agent.run(request(events, { directory: path, prompt: `ask ${n}`, environment }))
        return { result, said: textOf(events), session: sessionsOf(events)[0] }
      })
      const all = await Promise.all(runs)
      expect(all.map(({ result }) => result.outcome)).toEqual(['done', 'done', 'done', 'done'])
      expect(all.map(({ said }) => /ask \d/.exec(said)?.[0])).toEqual(['ask 0', 'ask 1', 'ask 2', 'ask 3'])
      expect(new Set(all.map(({ session }) => session)).size).toBe(4)
    })
  })

  test.each(specs.flatMap(({ name, rambles }) => (rambles === undefined ? [] : [{ name, rambles }])))(
    'a reply of $name without end is cut, says so, and keeps its last words',
    async ({ rambles }) => {
      const events: AgentEvent[] = []
      const { outcome, text } = await rambles(scene).run(request(events))
      expect(outcome).toBe('done')
      expect(text).toBe(textOf(events))
      expect(Buffer.byteLength(text)).toBeLessThan(10_200)
      expect(text).toMatch(/\d+ bytes of output omitted/)
      expect(text).toMatch(/the end\s*$/)
      expect(text).not.toContain('\uFFFD')
    },
  )

  test.each(specs.flatMap(({ name, forks }) => (forks === undefined ? [] : [{ name, forks }])))(
    'when $name leaves a process behind it is done all the same, and that one lives',
    async ({ forks }) => {
      const result = await forks(scene).run(request([]))
      const left = await pidsIn('pids', 1)
      try {
        expect(result).toEqual({ outcome: 'done', text: 'bye\n' })
        expect(left.map(liveness)).toEqual(['alive'])
      } finally {
        for (const identity of left) await killTree(identity, { graceMs: 1_000, clock: Date.now })
      }
    },
  )
}
