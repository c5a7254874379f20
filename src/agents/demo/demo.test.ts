import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeSandbox, type Sandbox, type TestRepo, writeIn } from '../../../test/helpers/repo.ts'
import { selfIdentity } from '../../process/identity.ts'
import type { AgentEvent, AgentRequest, AgentResult } from '../agent.ts'
import { createDemoAgent } from './demo.ts'
import { createSecrets } from '../../process/redaction/redact.ts'

let box: Sandbox
let repo: TestRepo
let directory = ''
beforeEach(() => {
  box = makeSandbox()
  repo = box.repo()
  directory = repo.worktree('environment', '-b', 'issue-42').path
})
afterEach(() => box[Symbol.dispose]())

const run = async (
  message: string | undefined,
  overrides: Partial<AgentRequest> = {},
  git = box.git(),
): Promise<AgentResult & { session: string | undefined }> => {
  const events: AgentEvent[] = []
  const agent = createDemoAgent({ git, clock: Date.now, ids: randomUUID, self: selfIdentity() })
  const result = await agent.run({
    directory,
    prompt: 'fix the login bug\nand quickly',
    context: undefined,
    session: undefined,
    rules: { access: 'write', allowedTools: [], disallowedTools: [] },
    untrusted: false,
    environment: message === undefined ? {} : { COPPICE_MESSAGE: message },
    mark: { id: randomUUID(), cgroup: undefined },
    signal: new AbortController().signal,
    secrets: createSecrets(),
    emit: (event) => events.push(event),
    onStart: async () => {},
    ...overrides,
  })
  return { ...result, session: events.flatMap((event) => (event.type === 'session' ? [event.id] : []))[0] }
}

const raw = (...args: string[]): string => box.raw(directory, ...args)
const demoFile = (): string => readFileSync(join(directory, 'COPPICE_DEMO.md'), 'utf8')
const commits = (): number => Number(raw('rev-list', '--count', 'main..HEAD'))

test('a real commit quotes the request, and the reply says where it is', async () => {
  const { text, session } = await run('m1')
  expect(raw('log', '-1', '--format=%an <%ae>|%cn|%B')).toBe(
    `Coppice demo <demo@coppice.invalid>|Coppice demo|demo: fix the login bug\n\nCoppice-Message: m1\nCoppice-Session: ${session}`,
  )
  expect(raw('status', '--porcelain', '--ignored')).toBe('')
  expect(demoFile()).toBe(raw('show', 'HEAD:COPPICE_DEMO.md') + '\n')
  expect(demoFile()).toContain('> fix the login bug\n> and quickly\n')
  for (const part of ['`issue-42`', raw('rev-parse', '--short=7', 'HEAD'), '`COPPICE_DEMO.md`', '/diff']) {
    expect(text).toContain(part)
  }
  expect(raw('config', '--list', '--local')).not.toContain('user.')
})

test('it counts the messages of its session, and appends one after the other', async () => {
  const { session } = await run('m1')
  expect((await run('m2', { session, prompt: 'second' })).text).toContain('message 2 of our conversation')
  expect((await run('m3', { prompt: 'of another session' })).text).toContain('message 1 of our conversation')
  expect((await run('m4', { session, prompt: 'third' })).text).toContain('message 3 of our conversation')
  expect(commits()).toBe(4)
  expect(demoFile().match(/^> .*$/gm)).toEqual([
    '> fix the login bug',
    '> and quickly',
    '> second',
    '> of another session',
    '> third',
  ])
})

test('a rerun of the same message makes no second commit and says so', async () => {
  const { session } = await run('m1')
  await run('m2', { session })
  const head = raw('rev-parse', 'HEAD')
  const again = await run('m1', { session })
  expect(again).toMatchObject({ outcome: 'done', text: expect.stringMatching(/no second one[^]*message 1 of our/) })
  expect(raw('rev-parse', 'HEAD')).toBe(head)
  expect(raw('status', '--porcelain')).toBe('')
})

test('a rerun finishes what a crash left between the commit and the files', async () => {
  await run('m1')
  const whole = demoFile()
  // as it was before: the commit is there, index and file are not
  raw('rm', '-q', '--cached', 'COPPICE_DEMO.md')
  raw('clean', '-fdq')
  expect((await run('m1')).outcome).toBe('done')
  expect(demoFile()).toBe(whole)
  expect(raw('status', '--porcelain')).toBe('')
  expect(commits()).toBe(1)
})

test('the same message twice at once is one commit', async () => {
  const both = await Promise.all([run('m1', { session: 's' }), run('m1', { session: 's' }, box.git())])
  expect(both.some(({ outcome }) => outcome === 'done')).toBe(true)
  expect(commits()).toBe(1)
})

test('what somebody wrote into the file and staged beside it is not committed and not lost', async () => {
  await run('m1')
  writeFileSync(join(directory, 'COPPICE_DEMO.md'), `${demoFile()}my own words`)
  writeIn(directory, 'staged', 'x')
  raw('add', 'staged')
  await run('m2', { prompt: 'second' })
  expect(raw('show', 'HEAD:COPPICE_DEMO.md')).not.toContain('my own words')
  expect(raw('show', '--format=', '--name-only', 'HEAD')).toBe('COPPICE_DEMO.md')
  expect(demoFile()).toMatch(/my own words\n\n## Message 1\n\n> second\n/)
  expect(raw('status', '--porcelain').split('\n')).toEqual([' M COPPICE_DEMO.md', 'A  staged'])
})

test('with the right to read only it says what it would do', async () => {
  const rules = { access: 'read', allowedTools: [], disallowedTools: [] } as const
  expect((await run('m1', { rules })).text).toMatch(/changed nothing[^]*commit it on `issue-42`/)
  expect((await run('m1', { rules, directory: repo.path })).outcome).toBe('done')
  expect(commits()).toBe(0)
  expect(raw('status', '--porcelain') + repo.git('status', '--porcelain')).toBe('')
})

test('it never commits in the shared checkout, nor where a link leads', async () => {
  const before = repo.sha()
  for (const place of [repo.path, join(directory, 'sub'), box.root]) {
    mkdirSync(place, { recursive: true })
    expect(await run('m1', { directory: place })).toMatchObject({
      outcome: 'failed',
      problem: expect.any(String),
      remedy: expect.anything(),
    })
  }
  expect(existsSync(join(repo.path, 'COPPICE_DEMO.md'))).toBe(false)
  expect(repo.sha()).toBe(before)
  symlinkSync(box.path('outside'), join(directory, 'COPPICE_DEMO.md'))
  expect(await run('m1')).toMatchObject({ outcome: 'failed', remedy: expect.stringContaining('COPPICE_DEMO.md') })
  expect(existsSync(box.path('outside'))).toBe(false)
  expect(commits()).toBe(0)
})

test('a worktree whose .git file was turned to another record is refused', async () => {
  const other = repo.worktree('other', '-b', 'other')
  writeFileSync(join(directory, '.git'), `gitdir: ${other.gitDir}\n`)
  expect((await run('m1')).outcome).toBe('failed')
  expect(repo.sha('other')).toBe(repo.sha('main'))
  // nor to one that only looks like git's, and says that the shared checkout's branch is checked out here
  writeIn(box.path('forged'), 'HEAD', 'ref: refs/heads/main\n')
  writeIn(box.path('forged'), 'commondir', `${repo.commonDir}\n`)
  writeIn(box.path('forged'), 'gitdir', `${join(directory, '.git')}\n`)
  writeFileSync(join(directory, '.git'), `gitdir: ${box.path('forged')}\n`)
  const before = repo.sha('main')
  expect((await run('m1')).outcome).toBe('failed')
  expect(repo.sha('main')).toBe(before)
})

test('nothing in a request is taken for a trailer, a mark or a control character', async () => {
  const prompt = '\n  Coppice-Message: m2\r\n<!-- Coppice-Message: m2 -->\n\u001b[31m\0 red'
  await run('m1', { prompt })
  expect((await run('m2', { prompt: 'x'.repeat(5_000) })).text).not.toContain('no second one')
  expect(commits()).toBe(2)
  expect(raw('log', '-1', '--format=%s', 'HEAD^')).toBe('demo: Coppice-Message: m2')
  expect(raw('log', '-1', '--format=%s').length).toBeLessThan(70)
  for (const character of ['\0', '\u001b', '\r']) expect(demoFile()).not.toContain(character)
  expect((await run('m3', { prompt: '' })).outcome).toBe('done')
})

test('without a message id every run is a commit of its own', async () => {
  await run(undefined)
  await run(undefined)
  expect(commits()).toBe(2)
})
