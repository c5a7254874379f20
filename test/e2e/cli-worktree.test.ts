import { existsSync, readFileSync, rmSync, writeFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CliWorld, type EnvironmentJson, makeCliWorld, project } from '../helpers/cli.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'

let world: CliWorld
let repo: TestRepo

beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
})
afterEach(() => world[Symbol.dispose]())

const commitIn = (path: string, file: string): void => {
  writeIn(path, file, 'x')
  world.box.raw(path, 'add', '.')
  world.box.raw(path, 'commit', '-q', '-m', file)
}

const create = (...args: string[]): Promise<EnvironmentJson> =>
  world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', ...args)

describe('worktree create', () => {
  test('gives an isolated tree at once and says where it is', async () => {
    const { code, out, err } = await world.run(repo.path, 'worktree', 'create', '--issue', '42')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const path = join(world.home, 'worktrees/project/issue-42')
    expect(out).toBe(`Created issue-42 for issue #42\n  cd ${path}\n`)
    expect(readFileSync(join(path, 'README'), 'utf8')).toBe('hello\n')
    expect(repo.git('status', '--porcelain')).toBe('')
  })

  test('answers an environment with exactly the documented fields', async () => {
    const environment = await create('--issue', '42')
    expect(environment).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      codebase: 'project',
      work: { type: 'issue', id: '42' },
      provider: 'worktree',
      path: join(world.home, 'worktrees/project/issue-42'),
      branch: 'issue-42',
      status: 'active',
      owned: true,
      createdBy: 'cli',
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
  })

  test.each([
    [['my/branch'], 'my/branch', { type: 'task', id: 'my/branch' }],
    [['--task', 'Add dark mode'], 'task-add-dark-mode', { type: 'task', id: 'add-dark-mode' }],
    [['--thread', 'C123:1712.34'], /^thread-[0-9a-f]{8}$/, { type: 'thread', id: 'C123:1712.34' }],
    [['--issue', '#7'], 'issue-7', { type: 'issue', id: '7' }],
  ])('%j', async (args, branch, work) => {
    const environment = await create(...args)
    expect(environment.branch).toMatch(branch)
    expect(environment.work).toEqual(work)
  })

  test('a work that has an environment gets that one, with exit code 0', async () => {
    const first = await create('--issue', '42')
    expect(await create('--issue', '42')).toEqual(first)
    expect((await world.run(repo.path, 'worktree', 'create', '--issue', '42')).out).toContain(
      'Using existing worktree issue-42',
    )
  })

  test('a pull request that fixes an issue shares its tree, and says so', async () => {
    const issue = await create('--issue', '42')
    const { out, err } = await world.run(repo.path, 'worktree', 'create', '--pr', '9', '--fixes', '42', '--fixes', '43')
    expect(out).toContain('Shared issue-42')
    expect(err).toContain('note: Reusing worktree from issue #42')
    expect((await create('--pr', '9', '--fixes', '42')).id).toBe(issue.id)
  })

  test('--base starts from there', async () => {
    repo.git('branch', 'release')
    repo.commit('later', 'x')
    const { path } = await create('on-release', '--base', 'release')
    expect(existsSync(join(path, 'later'))).toBe(false)
  })

  test('works from a subdirectory, from inside an environment, and with --codebase from anywhere', async () => {
    writeIn(repo.path, 'deep/er/file', '')
    const first = await world.json<EnvironmentJson>(join(repo.path, 'deep/er'), 0, 'worktree', 'create', 'one')
    const second = await world.json<EnvironmentJson>(first.path, 0, 'worktree', 'create', 'two')
    const third = await world.json<EnvironmentJson>('/', 0, 'worktree', 'create', 'three', '--codebase', 'project')
    expect([first, second, third].map(({ codebase }) => codebase)).toEqual(['project', 'project', 'project'])
    expect(await world.json<unknown[]>(repo.path, 0, 'codebase', 'list')).toHaveLength(1)
  })

  test('at the limit it refuses with the numbers and the ways out, and nothing is made', async () => {
    const limited = { ...world.env, MAX_WORKTREES_PER_CODEBASE: '1' }
    await create('one')
    Object.assign(world.env, limited)
    const { code, out, err } = await world.run(repo.path, 'worktree', 'create', 'two')
    expect({ code, out }).toEqual({ code: 3, out: '' })
    expect(err).toContain('You have 1 active worktree for project (limit reached: 1).')
    expect(err).toContain('0 merged   0 stale (no activity in 14+ days)   1 active')
    expect(err).toContain('coppice worktree remove <name>')
    // Nobody is sent to clean up nothing.
    expect(err).not.toContain('cleanup')
    const refused = await world.json<{ error: unknown }>(repo.path, 3, 'worktree', 'create', 'two')
    expect(refused.error).toMatchObject({
      code: 'limit',
      message: 'project has 1 of 1 worktrees: 0 merged, 0 stale (no activity in 14+ days), 1 active',
    })
    expect(repo.git('branch', '--list', 'two')).toBe('')
  })

  test('prepares a spare in the background, which the next creation takes', async () => {
    using warm = makeCliWorld({ config: 'worktrees:\n  spares: 1\n' })
    const own = project(warm)
    await warm.json(own.path, 0, 'worktree', 'create', 'one')
    await expect
      .poll(async () => (await warm.json<{ findings: unknown[] }>(own.path, 0, 'doctor')) && spares(warm), {
        timeout: 20_000,
      })
      .toBe(1)
    await expect.poll(() => own.git('worktree', 'list')).toContain('locked')
    const listed = await warm.json<EnvironmentJson[]>(own.path, 0, 'worktree', 'list')
    expect(listed.map(({ branch }) => branch)).toEqual(['one'])
    // The background process is done when a second one would find nothing to do.
    expect((await warm.run('/', 'internal', 'keep-spares', await idOf(warm))).code).toBe(0)
    const two = await warm.json<EnvironmentJson>(own.path, 0, 'worktree', 'create', 'two')
    expect(readFileSync(join(two.path, 'README'), 'utf8')).toBe('hello\n')
    await warm.run('/', 'internal', 'keep-spares', await idOf(warm))
    expect(spares(warm)).toBe(1)
  })
})

const spares = (of: CliWorld): number => {
  const trees = of.box.raw(of.box.path('project'), 'worktree', 'list', '--porcelain')
  return trees.split('\n').filter((line) => line.startsWith('worktree ') && line.includes('/.spares/')).length
}

const idOf = async (of: CliWorld): Promise<string> =>
  (await of.json<{ id: string }[]>('/', 0, 'codebase', 'list'))[0]?.id ?? ''

describe('worktree list', () => {
  test('shows what is to be said about each, and marks the one you are in', async () => {
    const one = await create('--issue', '1')
    await create('--issue', '2')
    commitIn(one.path, 'work')
    writeFileSync(join(one.path, 'new'), '')
    const { out, code } = await world.run(one.path, 'worktree', 'list')
    expect(code).toBe(0)
    expect(out).toMatch(/^ {3}BRANCH {3}FOR {7}FILES .*MERGED .*ACTIVE/)
    expect(out).toMatch(/^\* +issue-1 +issue #1 +1 untracked +1 ahead +no +just now/m)
    expect(out).toMatch(/^ +issue-2 +issue #2 +clean +up to date +– +just now/m)
    expect(out).toContain('2 worktrees of project (limit 25)')
    // oxlint-disable-next-line no-control-regex
    expect(out).not.toMatch(/\u001b/)
  })

  test('adds exactly the documented fields', async () => {
    await create('--issue', '1')
    const [listed] = await world.json<Record<string, unknown>[]>(repo.path, 0, 'worktree', 'list')
    expect(listed).toMatchObject({
      current: false,
      dirty: false,
      ahead: 0,
      behind: 0,
      merged: { value: false, proof: null },
      lastActivityAt: expect.stringMatching(/Z$/),
      conversations: [],
      inUse: false,
      cleanup: null,
    })
    expect(Object.keys(listed ?? {})).toHaveLength(19)
  })

  test('merged work carries its proof', async () => {
    const { path } = await create('--issue', '1')
    commitIn(path, 'feature')
    repo.git('merge', '-q', '--no-ff', 'issue-1', '-m', 'merge')
    const [listed] = await world.json<{ merged: unknown }[]>(repo.path, 0, 'worktree', 'list')
    expect(listed?.merged).toEqual({ value: true, proof: 'ancestor' })
  })

  test('records a directory that vanished, and one that came back', async () => {
    const { path } = await create('--issue', '1')
    const statuses = async (): Promise<string[]> =>
      (await world.json<EnvironmentJson[]>(repo.path, 0, 'worktree', 'list')).map(({ status }) => status)
    renameSync(path, `${path}.away`)
    expect(await statuses()).toEqual(['missing'])
    expect((await world.run(repo.path, 'worktree', 'list')).out).toContain('missing')
    renameSync(`${path}.away`, path)
    expect(await statuses()).toEqual(['active'])
  })

  test('an empty list says how to make one', async () => {
    expect((await world.run(repo.path, 'worktree', 'list')).out).toContain('coppice worktree create --issue 42')
    expect(await world.json(repo.path, 0, 'worktree', 'list')).toEqual([])
  })
})

describe('worktree remove and restore', () => {
  test('a clean one goes; restore brings it back with its branch', async () => {
    const { id, path } = await create('--issue', '42')
    const removed = await world.json(repo.path, 0, 'worktree', 'remove', 'issue-42')
    expect(removed).toEqual({
      environment: expect.objectContaining({ id, status: 'removed' }),
      restorePoint: expect.stringMatching(/^[0-9a-f-]{36}$/),
      branchDeleted: true,
      leftOut: [],
    })
    expect(existsSync(path)).toBe(false)
    const restored = await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'restore')
    expect(restored).toMatchObject({ branch: 'issue-42', status: 'active', path })
    expect(existsSync(join(path, 'README'))).toBe(true)
  })

  test('a dirty one is refused with every reason and the ways out, and nothing changes', async () => {
    const { path } = await create('--issue', '42')
    writeFileSync(join(path, 'README'), 'changed\n')
    writeFileSync(join(path, 'new'), 'new\n')
    const { code, out, err } = await world.run(repo.path, 'worktree', 'remove', 'issue-42')
    expect({ code, out }).toEqual({ code: 3, out: '' })
    expect(err).toBe(
      [
        'Cannot remove worktree `issue-42`: 1 file changed, 1 untracked.',
        ` 1. Commit:            git -C ${path} add -A && git -C ${path} commit -m "WIP"`,
        ` 2. Discard changes:   git -C ${path} reset --hard && git -C ${path} clean -fd`,
        ' 3. Remove it anyway:  coppice worktree remove issue-42 --force   (kept for 30 days: coppice worktree restore issue-42)',
        '',
      ].join('\n'),
    )
    const refused = await world.json<{ error: Record<string, unknown> }>(repo.path, 3, 'worktree', 'remove', 'issue-42')
    expect(refused.error).toMatchObject({
      code: 'refused',
      reasons: [
        { gate: 'nothing-uncommitted', answer: 'no', detail: '1 file changed' },
        { gate: 'nothing-uncommitted', answer: 'no', detail: '1 untracked' },
      ],
    })
    expect(readFileSync(join(path, 'new'), 'utf8')).toBe('new\n')
  })

  test('--force removes a dirty one, and restore brings every byte back', async () => {
    const { path } = await create('--issue', '42')
    writeFileSync(join(path, 'README'), 'changed\n')
    writeFileSync(join(path, 'new'), 'new\n')
    const { code, out } = await world.run(repo.path, 'worktree', 'remove', 'issue-42', '--force')
    expect(code).toBe(0)
    expect(out).toContain('Removed issue-42 (kept for 30 days: coppice worktree restore issue-42)')
    expect(existsSync(path)).toBe(false)
    const restored = await world.run(repo.path, 'worktree', 'restore', 'issue-42')
    expect(restored.out).toContain(`Restored issue-42 for issue #42\n  cd ${path}`)
    expect(readFileSync(join(path, 'README'), 'utf8')).toBe('changed\n')
    expect(readFileSync(join(path, 'new'), 'utf8')).toBe('new\n')
  })

  test('from inside, the user is told to step out, and force is not offered', async () => {
    const { path } = await create('--issue', '42')
    const { code, err } = await world.run(path, 'worktree', 'remove', 'issue-42', '--force')
    expect(code).toBe(3)
    expect(err).toContain('you are inside it')
    expect(err).toContain('1. Leave it:')
    expect(err).not.toContain('anyway')
    expect(existsSync(path)).toBe(true)
  })

  test.each(['id', 'branch', 'path', 'work'])('finds it by its %s', async (by) => {
    const environment = await create('--task', 'Add dark mode')
    const { id, branch, path } = environment
    const refs: Record<string, string> = { id, branch, path, work: 'task-add-dark-mode' }
    const { code } = await world.run(repo.path, 'worktree', 'remove', refs[by] ?? '')
    expect(code).toBe(0)
  })

  test('what is not there is one sentence of what happened and one of what to do', async () => {
    const removed = await world.run(repo.path, 'worktree', 'remove', 'nothing')
    expect(removed.code).toBe(1)
    expect(removed.err).toMatch(/^coppice: project has no worktree "nothing"\.\nRun `coppice worktree list` for a list/)
    expect((await world.run(repo.path, 'worktree', 'restore', 'nothing')).code).toBe(1)
  })

  test('a branch with work of its own stays, and the answer says why', async () => {
    const { path } = await create('--issue', '42')
    commitIn(path, 'work')
    const { out } = await world.run(repo.path, 'worktree', 'remove', 'issue-42')
    expect(out).toContain('branch kept: ')
    expect(repo.git('branch', '--list', 'issue-42')).toContain('issue-42')
  })
})

describe('worktree adopt, orphans and link', () => {
  test('orphans shows what git knows and we do not; adopt takes note of it; removing lets go of it', async () => {
    const tree = repo.worktree('hotfix', '-b', 'hotfix')
    await create('--issue', '42')
    const theirs = { locked: false, missing: false, ours: false, main: false, environment: null }
    const listed = await world.json<{ path: string }[]>(repo.path, 0, 'worktree', 'orphans')
    expect(listed).toEqual([
      { ...theirs, path: repo.path, branch: 'main', main: true },
      { ...theirs, path: tree.path, branch: 'hotfix' },
      { ...theirs, path: expect.any(String), branch: 'issue-42', ours: true, environment: expect.any(String) },
    ])
    const git = repo.git('worktree', 'list', '--porcelain').match(/^worktree .*/gm) ?? []
    expect(listed.map(({ path }) => `worktree ${path}`).toSorted(), "git's full list").toEqual(git.toSorted())
    expect((await world.run(repo.path, 'worktree', 'orphans')).out).toMatch(
      /^BRANCH +TRACKED AS +PATH\nmain +\(main working tree\) .*\nhotfix +not tracked .*hotfix\nissue-42 +issue #42 .*\nTrack one: coppice worktree adopt <path>\n$/,
    )
    const adopted = await world.json<EnvironmentJson>('/', 0, 'worktree', 'adopt', tree.path)
    expect(adopted).toMatchObject({ branch: 'hotfix', owned: false, codebase: 'project' })
    repo.worktree('other-place', '-b', 'by-branch')
    expect((await world.run(repo.path, 'worktree', 'adopt', 'by-branch')).out).toContain('Adopted by-branch')
    expect((await world.run(repo.path, 'worktree', 'orphans')).out).toContain(
      'Coppice tracks every worktree of project.',
    )
    const released = await world.json(repo.path, 0, 'worktree', 'remove', 'hotfix')
    expect(released).toMatchObject({ environment: { status: 'released' }, restorePoint: null, branchDeleted: false })
    expect(existsSync(tree.path)).toBe(true)
    expect((await world.run(repo.path, 'worktree', 'adopt', tree.path)).out).toContain("Coppice won't delete")
  })

  test.each([
    ['the main working tree', () => repo.path, "Coppice doesn't track"],
    ['nothing', () => '/does/not/exist', 'no worktree found for'],
  ])('%s cannot be adopted', async (_what, path, words) => {
    const { error } = await world.json<{ error: { code: string; message: string } }>(
      repo.path,
      1,
      'worktree',
      'adopt',
      path(),
    )
    expect(error.code).toBe('not-adoptable')
    expect(error.message).toContain(words)
  })

  test('link lets a conversation go on in the environment', async () => {
    await create('--issue', '42')
    const args = ['worktree', 'link', 'issue-42', '--conversation', 'slack:C123:1712.34']
    expect(await world.json(repo.path, 0, ...args)).toMatchObject({
      branch: 'issue-42',
      conversations: ['slack:C123:1712.34'],
    })
    expect((await world.run(repo.path, ...args)).out).toBe('Linked slack:C123:1712.34 to issue-42\n')
    const [listed] = await world.json<{ conversations: string[] }[]>(repo.path, 0, 'worktree', 'list')
    expect(listed?.conversations).toEqual(['slack:C123:1712.34'])
    // It is in use by somebody now, and a removal says by whom.
    expect((await world.run(repo.path, 'worktree', 'remove', 'issue-42')).err).toContain(
      'slack:C123:1712.34 is using it',
    )
  })

  test('a conversation without a platform is wrong usage', async () => {
    await create('--issue', '42')
    expect(await world.run(repo.path, 'worktree', 'link', 'issue-42', '--conversation', 'C123')).toMatchObject({
      code: 2,
      err: expect.stringContaining('invalid --conversation "C123"'),
    })
    expect((await world.run(repo.path, 'worktree', 'link', 'issue-42')).code).toBe(2)
  })
})

test('a work whose directory is gone is taken up anew', async () => {
  const { path } = await create('--issue', '42')
  rmSync(path, { recursive: true })
  const { code } = await world.run(repo.path, 'worktree', 'create', '--issue', '42')
  expect(code).toBe(0)
  expect(existsSync(path)).toBe(true)
})
