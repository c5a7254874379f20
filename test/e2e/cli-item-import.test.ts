import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { anIssue, type Bd, blocks, installBd } from '../helpers/bd/bd.ts'
import { type CliWorld, makeCliWorld, project } from '../helpers/cli.ts'
import type { TestRepo } from '../helpers/repo.ts'
import { type GithubDouble, startDouble } from '../platforms/github-double.ts'

/* Items from elsewhere, on the command line. */

let world: CliWorld
let repo: TestRepo
beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
})
afterEach(() => world[Symbol.dispose]())

const run = (...args: string[]) => world.run(repo.path, 'item', ...args)
const json = <T = Record<string, unknown>>(code: number, ...args: string[]) =>
  world.json<T>(repo.path, code, 'item', ...args)

type Listed = { id: number; title: string; state: string; after: number[]; ready: boolean; source: object | null }[]

describe('item import github', () => {
  let double: GithubDouble
  beforeEach(async () => {
    double = await startDouble()
    Object.assign(world.env, { GITHUB_API_URL: double.url, GITHUB_TOKEN: 'ghp_x' })
    await world.run(repo.path, 'codebase', 'add', '.', '--github', 'acme/app')
  })
  afterEach(() => double.close())

  test('adds an item for each open issue with the label, and says what the next import finds', async () => {
    double.issue(11, { title: 'Fix login', label: 'ready' })
    double.issue(12, { title: 'Logout', label: 'ready', pull_request: {} })
    double.issue(13, { title: 'Reset' })
    await world.run(repo.path, 'worktree', 'create', '--issue', '11')
    const first = await run('import', 'github', '--label', 'ready')
    expect([first.code, first.out]).toEqual([
      0,
      'Imported from acme/app: 1 added.\n' +
        '  added  1  acme/app#11  Fix login\n' +
        'Already worked on:\n' +
        '  item 1 (acme/app#11): its issue has the worktree issue-11\n',
    ])
    double.issue(11, { title: 'Fix the login', label: 'ready' })
    expect(await json(0, 'import', 'github', '--label', 'ready', '--dry-run')).toMatchObject({
      source: { kind: 'github', repository: 'acme/app' },
      dryRun: true,
      added: [],
      updated: [{ id: 1, title: 'Fix the login', fields: ['title'] }],
      elsewhere: [{ id: 1, environment: { branch: 'issue-11' } }],
      noLongerOpen: [],
      more: false,
      problem: null,
    })
    double.issue(11, { state: 'closed' })
    expect((await run('import', 'github')).out).toBe(
      'Imported from acme/app: 1 added.\n' +
        '  added  2  acme/app#13  Reset\n' +
        'Already worked on:\n' +
        '  item 1 (acme/app#11): its issue has the worktree issue-11\n' +
        'No longer open on GitHub:\n' +
        '  item 1 (acme/app#11): closed\n' +
        'Close an item: coppice item close <item>\n',
    )
    expect((await json<Listed>(0, 'list')).map(({ id, source }) => [id, source])).toEqual([
      [1, { kind: 'github', repository: 'acme/app', number: 11 }],
      [2, { kind: 'github', repository: 'acme/app', number: 13 }],
    ])
    expect((await run('show', '2')).out).toMatch(/source +acme\/app#13\n(.|\n)*imported from GitHub/)
  })

  test('reads public issues without a token, and says how to read others, and when', async () => {
    delete world.env['GITHUB_TOKEN']
    double.issue(11)
    expect(await json(0, 'import', 'github')).toMatchObject({ added: [{ id: 1 }] })
    expect([...double.authorizations]).toEqual([''])
    double.trouble = () => ({ status: 404, body: { message: 'Not Found' } })
    const refused = await run('import', 'github')
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/^coppice: GitHub refused: Not Found.*\nIf the repository is private, set GITHUB_TOKEN/),
    ])
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.floor(Date.now() / 1000) + 600) }
    double.trouble = () => ({ status: 403, body: { message: 'API rate limit exceeded' }, headers })
    const limited = await json<{ error: { code: string; message: string; remedies: string[] } }>(1, 'import', 'github')
    expect(limited.error).toMatchObject({
      code: 'remote-unreachable',
      message: expect.stringMatching(/^GitHub's rate limit was reached; it resets in (9|10) minutes$/),
      remedies: ['without a token, GitHub allows 60 requests an hour; set GITHUB_TOKEN for 5,000'],
    })
  })

  test('names what is wrong with its options, and a repository that is elsewhere', async () => {
    expect((await run('import', 'github', '--state', 'new')).code).toBe(2)
    expect((await run('import', 'github', '--limit', '0')).code).toBe(2)
    expect((await run('import', 'github', '--label', ' ')).code).toBe(2)
    const other = world.box.repo('other')
    const result = await world.run(other.path, 'item', 'import', 'github')
    expect([result.code, result.err]).toEqual([1, expect.stringContaining('--github <owner/name>')])
    expect(double.requests).toEqual([])
  })
})

test('item import beads reads a file, and names the line that is wrong', async () => {
  const file = join(repo.path, 'issues.jsonl')
  const lines = [
    anIssue('bd-1', blocks('bd-2')),
    anIssue('bd-2', { status: 'deferred' }),
    anIssue('bd-3', { status: 'closed' }),
  ]
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  expect((await run('import', 'beads', 'issues.jsonl', '--dry-run')).out).toContain(
    `Would import from ${file}: 2 added.`,
  )
  const { code, out } = await run('import', 'beads', 'issues.jsonl')
  expect([code, out]).toEqual([
    0,
    `Imported from ${file}: 2 added.\n` +
      '  added  1  bd-2  Title of bd-2  deferred in beads\n' +
      '  added  2  bd-1  Title of bd-1\n' +
      'Left out: 1 closed.\n',
  ])
  expect(await json<Listed>(0, 'list')).toMatchObject([
    { id: 1, state: 'parked', parked: { kind: 'status-elsewhere', message: 'deferred in beads' } },
    { id: 2, state: 'open', after: [1], ready: false },
  ])
  // It waits for beads, not for a person.
  expect(await world.json(repo.path, 0, 'fleet', 'status')).toMatchObject({ items: { parked: 1 }, needsYou: [] })
  expect(await json(0, 'import', 'beads', 'issues.jsonl')).toMatchObject({
    source: { kind: 'beads', file },
    unchanged: [2, 1],
    leftOut: { closed: 1, deleted: 0, aside: 0, others: 0 },
  })
  writeFileSync(file, '{"id":"bd-9"}\n')
  const wrong = await json<{ error: object }>(1, 'import', 'beads', 'issues.jsonl')
  expect(wrong.error).toMatchObject({ code: 'unusable-file', message: `${file}, line 1: bd-9 has no title` })
})

describe('item sync beads', () => {
  let bd: Bd
  beforeEach(() => {
    bd = installBd(repo.path, world.box.path('bin'), [anIssue('bd-1'), anIssue('bd-2')])
    world.env['PATH'] = `${bd.bin}:${world.env['PATH'] ?? ''}`
  })

  test('mirrors both ways, and says what it did, what it left and what was refused', async () => {
    expect((await run('sync', 'beads')).out).toContain('Imported from beads: 2 added.\n')
    expect((await run('sync', 'beads')).out).toBe('Items and beads are in sync.\n')
    await run('park', '1', 'which one?')
    bd.set('bd-2', { status: 'closed' })
    expect((await run('sync', 'beads')).out).toBe(
      'Changed here:\n  item 2 (bd-2): open → closed\nChanged in beads:\n  item 1 (bd-1): blocked\n',
    )
    expect(bd.issue('bd-1').comments).toEqual([{ author: 'coppice', text: 'Parked in Coppice (item 1): which one?' }])
    bd.set('bd-2', { status: 'open' })
    await run('close', '1')
    bd.write({ trouble: { close: 'fails' } })
    const refused = await run('sync', 'beads')
    expect([refused.code, refused.out]).toEqual([
      1,
      'Left alone:\n  item 2 (bd-2): open in beads, but it is closed here, which is final\n' +
        'Refused by bd:\n  item 1 (bd-1): database is locked\n',
    ])
    bd.write({ trouble: {} })
    expect(await json(0, 'sync', 'beads')).toMatchObject({
      source: { kind: 'beads' },
      pulled: [],
      pushed: [{ id: 1, to: 'closed' }],
      left: [{ id: 2, there: 'ready', why: 'final' }],
      refused: [],
    })
  })

  test('without bd says what to do instead', async () => {
    world.env['PATH'] = world.env['PATH']?.replace(`${bd.bin}:`, '') ?? ''
    const { code, err } = await run('sync', 'beads')
    expect([code, err]).toEqual([
      1,
      'coppice: "bd" was not found on PATH.\n' +
        'Install beads (github.com/steveyegge/beads), or import a file: coppice item import beads <file>\n',
    ])
  })
})

test('a command of three words has its help, as has its group, and a typo is recognised', async () => {
  const help = await run('import', 'github', '--help')
  expect(help.out).toMatch(/^coppice item import github \[--label <name>\]…/)
  expect(help.out).toContain('coppice item import github --label ready')
  for (const args of [['import'], ['import', '--help']]) {
    expect((await run(...args)).out).toMatch(
      /^coppice item import: .*\n\n {2}item import github .*\n {2}item import beads/,
    )
  }
  expect((await run('import', 'gihub')).err).toContain('Did you mean `coppice item import github`?')
  expect((await run('imprt', 'github')).err).toContain('unknown command "item imprt"')
})
