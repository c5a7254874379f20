import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CliWorld, type EnvironmentJson, main, makeCliWorld, project } from '../helpers/cli.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'

let world: CliWorld
let repo: TestRepo

beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
})
afterEach(() => world[Symbol.dispose]())

const create = (...args: string[]): Promise<EnvironmentJson> =>
  world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', ...args)

type Failure = { error: { code: string; message: string; remedies: string[] } }

test.each([
  [['--task', ''], '--task needs a value', 'usage: --task <text>'],
  [['--task', '  '], '--task needs a value', 'usage: --task <text>'],
  [['--issue'], '--issue needs a value', 'usage: --issue <number>'],
  [
    ['--issue', '-3'],
    '--issue needs a value, but the next argument looks like an option',
    'to pass it anyway, use --issue=<number>',
  ],
  [['x', '--fork=yes'], "--fork doesn't take a value", 'run `coppice worktree create --help` for usage'],
])('worktree create %j is wrong usage, in our words', async (args, message, remedy) => {
  const { error } = await world.json<Failure>(repo.path, 2, 'worktree', 'create', ...args)
  expect(error).toMatchObject({ code: 'usage', message, remedies: [remedy] })
  expect(await world.json(repo.path, 0, 'codebase', 'list')).toEqual([])
})

describe('help', () => {
  test.each([
    [['help'], /^coppice: an isolated/],
    [['help', 'worktree'], /^coppice worktree: create, list, remove/],
    [['help', 'worktree', 'create'], /^coppice worktree create \[branch\]/],
    [['help', 'status'], /^coppice status\n/],
  ])('%j', async (args, begins) => {
    const { out, code } = await world.run('/', ...args)
    expect(code).toBe(0)
    expect(out).toMatch(begins)
  })

  test('goes on below the description, and is indented', async () => {
    const { out } = await world.run('/', '--help')
    expect(out).toMatch(/^ {2}worktree create {3,}create a worktree,/m)
    expect(out).toMatch(/^ {2}--home <?dir>? {2,}data directory .*\n {12,}\S/m)
    expect(out).toMatch(/^ {2}--json {2,}output JSON$/m)
  })

  test('about what is not there says so', async () => {
    expect((await world.run('/', 'help', 'worktre')).err).toContain('Did you mean `coppice worktree`?')
    expect((await world.run('/', 'help', 'worktree', 'lsit')).err).toContain('Did you mean `coppice worktree list`?')
  })

  test.each([[[]], [['worktree', 'create']], [['worktree', 'restore']], [['codebase', 'add']], [['cleanup']]])(
    'of %j fits into 80 columns, and uses more where there are more',
    async (args) => {
      const longest = async (): Promise<number> =>
        Math.max(...(await world.run('/', ...args, '--help')).out.split('\n').map((line) => line.length))
      expect(await longest()).toBeLessThanOrEqual(80)
      Object.assign(world.env, { COLUMNS: '200' })
      expect(await longest()).toBeGreaterThan(80)
    },
  )
})

test('the list fits the terminal, and says where the paths are', async () => {
  await create('--task', 'A task with a title that is so long that nobody would read it to its end')
  const { path } = await create('--issue', '1')
  writeFileSync(join(path, 'new'), '')
  writeFileSync(join(path, 'README'), 'changed')
  const wide = (await world.run(repo.path, 'worktree', 'list')).out
  expect(wide).toContain(path)
  Object.assign(world.env, { COLUMNS: '80' })
  const { out } = await world.run(repo.path, 'worktree', 'list')
  const lines = out.trimEnd().split('\n')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(out).toMatch(/^issue-1 +issue #1 +1 changed, 1 untr/m)
  expect(out).toContain('…')
  expect(lines.at(-1)).toBe('2 worktrees of project (limit 25); paths: coppice worktree list --json')
})

test('adopting what cannot be adopted does not register its repository', async () => {
  const other = world.box.repo('other')
  const detached = other.worktree('detached', '--detach')
  for (const path of [other.path, detached.path]) {
    const { error } = await world.json<Failure>(repo.path, 1, 'worktree', 'adopt', path)
    expect(error.code).toBe('not-adoptable')
  }
  expect(await world.json('/', 0, 'codebase', 'list')).toEqual([])
})

test('an option that had no effect is named', async () => {
  repo.git('branch', 'release')
  await create('--issue', '60')
  const again = await world.run(repo.path, 'worktree', 'create', '--issue', '60', '--base', 'release')
  expect(again.out).toContain('Using existing worktree issue-60')
  expect(again.err).toBe('note: issue-60 already exists and was left as is: --base release had no effect\n')
  await create('--pr', '9', '--fixes', '60')
  const sha = repo.git('rev-parse', 'HEAD')
  const shared = await world.run(repo.path, 'worktree', 'create', '--pr', '9', '--pr-sha', sha)
  expect(shared.err).toContain(`issue-60 already exists and was left as is: --pr-sha ${sha} had no effect`)
  expect((await world.run(repo.path, 'worktree', 'create', '--issue', '60')).err).toBe('')
})

test.skipIf(!existsSync('/dev/full'))('an answer that cannot be written is one sentence and a failure', () => {
  for (const args of ['worktree list', '--help', 'worktree list --json']) {
    const script = `'${process.execPath}' '${main}' ${args} > /dev/full`
    const { status, stderr } = spawnSync('bash', ['-c', script], { cwd: repo.path, env: world.env, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "coppice: couldn't write the output: no space left on device.\n",
    })
  }
})

test('a cleanup over all codebases is aligned and says of which each row is', async () => {
  const other = world.box.repo('other-project')
  for (const [own, branch] of [
    [repo, 'a'],
    [other, 'long-branch'],
  ] as const) {
    const { path } = await world.json<EnvironmentJson>(own.path, 0, 'worktree', 'create', branch)
    writeIn(path, branch, 'x')
    world.box.raw(path, 'add', '.')
    world.box.raw(path, 'commit', '-q', '-m', branch)
    own.git('merge', '-q', '--no-ff', branch, '-m', 'merge')
  }
  repo.worktree('theirs', '-b', 'theirs')
  const { out } = await world.run('/', 'cleanup', '--dry-run')
  expect(out).toBe(
    [
      'would remove  other-project  long-branch  merged: ancestor of main',
      'would remove  project        a            merged: ancestor of main',
      `untracked     project        theirs       ${world.box.path('theirs')}`,
      'To track one: coppice worktree adopt <path>',
      'other-project, project: 2 worktrees would be removed.',
      '',
    ].join('\n'),
  )
})

test('doctor never advises to prune: that would forget every missing environment', async () => {
  const { path } = repo.worktree('theirs', '-b', 'theirs')
  await create('--issue', '1')
  rmSync(path, { recursive: true })
  const { findings } = await world.json<{ findings: { remedy: string | null }[] }>('/', 0, 'doctor')
  const remedy = findings.find((finding) => finding.remedy?.includes('gone for good'))?.remedy ?? ''
  expect(remedy).toBe(`if it is gone for good: git -C ${repo.path} worktree remove ${path}`)
  spawnSync('bash', ['-c', remedy.replace(/^.*?: /, '')], { cwd: '/', env: world.env })
  expect(repo.git('worktree', 'list')).not.toContain('theirs')
})

test('inside a submodule its own repository is meant, not the one around it', async () => {
  const library = world.box.repo('library')
  repo.git('submodule', 'add', '-q', library.path, 'sub')
  await world.json(repo.path, 0, 'codebase', 'add', '.')
  const environment = await world.json<EnvironmentJson>(join(repo.path, 'sub'), 0, 'worktree', 'create', 'x')
  expect(environment.codebase).toBe('sub')
})

describe('a clone stays for what only it has', () => {
  const clone = async (): Promise<string> => {
    repo.git('tag', 'v1')
    repo.git('tag', '-a', 'v2', '-m', 'two')
    const url = `file://${repo.path}`
    return (await world.json<{ repository: string }>('/', 0, 'codebase', 'add', url, '--name', 'mine')).repository
  }
  const kept = async (): Promise<unknown> =>
    (await world.json<{ cloneKept: string[] }>('/', 0, 'codebase', 'remove', 'mine')).cloneKept

  test('a stash of any of its worktrees', async () => {
    await clone()
    const { path } = await world.json<EnvironmentJson>('/', 0, 'worktree', 'create', 'x', '--codebase', 'mine')
    writeFileSync(join(path, 'README'), 'changed')
    world.box.raw(path, 'stash')
    await world.json('/', 0, 'worktree', 'remove', 'x', '--codebase', 'mine')
    expect(await kept()).toEqual(['a stash', '1 restore point'])
  })

  test('tags and notes that were never pushed, not those of the remote', async () => {
    const repository = await clone()
    world.box.raw(repository, 'tag', 'mine-only', 'refs/remotes/origin/main')
    world.box.raw(repository, 'notes', 'add', '-m', 'note', 'refs/remotes/origin/main')
    expect(await kept()).toEqual([
      '1 ref of notes that the remote does not have',
      '1 tag that the remote does not have',
    ])
    expect(existsSync(repository)).toBe(true)
  })

  test('nothing: then it goes, tags of the remote or not', async () => {
    const repository = await clone()
    expect(await kept()).toEqual([])
    expect(existsSync(repository)).toBe(false)
  })
})
