import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CliWorld, ended, type EnvironmentJson, fromSource, main, makeCliWorld, project } from '../helpers/cli.ts'
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

const mergedWork = async (branch: string): Promise<EnvironmentJson> => {
  const environment = await create(branch)
  writeIn(environment.path, branch, 'x')
  world.box.raw(environment.path, 'add', '.')
  world.box.raw(environment.path, 'commit', '-q', '-m', branch)
  repo.git('merge', '-q', '--no-ff', branch, '-m', `merge ${branch}`)
  return environment
}

describe('codebase', () => {
  test('add registers once, by whichever way the repository is reached', async () => {
    const tree = repo.worktree('linked', '-b', 'linked')
    const added = await world.json(world.box.root, 0, 'codebase', 'add', 'project')
    expect(added).toEqual({
      id: expect.any(String),
      name: 'project',
      path: repo.path,
      repository: repo.commonDir,
      remote: null,
      url: null,
      github: null,
      base: null,
      agent: null,
      cloned: false,
      createdAt: expect.stringMatching(/Z$/),
    })
    expect(await world.json('/', 0, 'codebase', 'add', tree.path)).toEqual(added)
    expect((await world.run('/', 'codebase', 'add', repo.path)).out).toContain('Already registered: project')
    expect((await world.run('/', 'codebase', 'list')).out).toMatch(/^NAME +WORKTREES +PATH\nproject +0 +/)
  })

  test('a second one of the same name gets a name of its own', async () => {
    await world.json('/', 0, 'codebase', 'add', repo.path)
    const other = world.box.repo('other/project')
    expect(await world.json('/', 0, 'codebase', 'add', other.path)).toMatchObject({ name: 'project-2' })
    const third = world.box.repo('third')
    expect(await world.json('/', 2, 'codebase', 'add', third.path, '--name', 'project')).toMatchObject({
      error: { code: 'name-invalid' },
    })
  })

  test('a URL is cloned bare, and works without any shared checkout', async () => {
    const url = `file://${repo.path}`
    const added = await world.json<{ repository: string }>('/', 0, 'codebase', 'add', url, '--name', 'mine')
    expect(added).toMatchObject({ name: 'mine', cloned: true, url, repository: join(world.home, 'repos/mine.git') })
    expect(await world.json('/', 0, 'codebase', 'add', url)).toEqual(added)
    const environment = await world.json<EnvironmentJson>('/', 0, 'worktree', 'create', 'x', '--codebase', 'mine')
    expect(readFileSync(join(environment.path, 'README'), 'utf8')).toBe('hello\n')
    expect(readdirSync(join(world.home, 'repos'))).toEqual(['mine.git'])
  })

  test('remove is refused while environments live; a clone goes only when nothing is lost with it', async () => {
    await world.json('/', 0, 'codebase', 'add', `file://${repo.path}`, '--name', 'mine')
    const { path } = await world.json<EnvironmentJson>('/', 0, 'worktree', 'create', 'x', '--codebase', 'mine')
    const refused = await world.json('/', 3, 'codebase', 'remove', 'mine')
    expect(refused).toMatchObject({ error: { code: 'codebase-in-use', message: 'mine still has worktrees: x' } })
    writeIn(path, 'work', 'x')
    world.box.raw(path, 'add', '.')
    world.box.raw(path, 'commit', '-q', '-m', 'only here')
    await world.json('/', 0, 'worktree', 'remove', 'x', '--codebase', 'mine')
    const kept = await world.json('/', 0, 'codebase', 'remove', 'mine')
    expect(kept).toMatchObject({
      cloneDeleted: false,
      cloneKept: ['1 commit that the remote does not have', '1 restore point'],
      restorePoints: 1,
    })
    // Registered again, everything is as it was.
    await world.json('/', 0, 'codebase', 'add', `file://${repo.path}`, '--name', 'mine')
    const restored = await world.json<EnvironmentJson>('/', 0, 'worktree', 'restore', 'x', '--codebase', 'mine')
    expect(existsSync(join(restored.path, 'work'))).toBe(true)
  })

  test('a clone that holds nothing of its own goes with its registration', async () => {
    await world.json('/', 0, 'codebase', 'add', `file://${repo.path}`, '--name', 'mine')
    const { out } = await world.run('/', 'codebase', 'remove', 'mine')
    expect(out).toContain('deleted the clone at')
    expect(existsSync(join(world.home, 'repos/mine.git'))).toBe(false)
  })

  test("the user's own repository is let go of untouched, prepared checkouts included", async () => {
    writeFileSync(join(world.home, 'config.yaml'), 'worktrees:\n  spares: 1\n')
    const { id } = await world.json<{ id: string }>('/', 0, 'codebase', 'add', repo.path)
    expect((await world.run('/', 'internal', 'keep-spares', id)).code).toBe(0)
    expect(repo.git('worktree', 'list')).toContain('.spares')
    expect((await world.run('/', 'codebase', 'remove', 'project')).out).toContain('is unchanged')
    expect(repo.git('worktree', 'list').split('\n')).toHaveLength(1)
    expect(await world.json('/', 0, 'codebase', 'list')).toEqual([])
    expect((await world.json<{ error: { code: string } }>('/', 1, 'codebase', 'remove', 'project')).error.code).toBe(
      'not-found',
    )
  })

  test('trust shows the commands and lets them run from then on', async () => {
    repo.commit('.coppice/config.yaml', 'worktree:\n  setup: echo made > made\n')
    const before = await world.run(repo.path, 'worktree', 'create', 'one')
    expect(before.err).toContain('coppice codebase trust project')
    const { out } = await world.run('/', 'codebase', 'trust', 'project')
    expect(out).toBe('Trusted: project may run these, until they change:\n  setup     echo made > made\n')
    const { path } = await create('two')
    expect(existsSync(join(path, 'made'))).toBe(true)
    expect(await world.json('/', 0, 'codebase', 'trust', 'project')).toMatchObject({
      setup: ['echo made > made'],
      teardown: [],
    })
  })

  test('the GitHub repository is read from the remote', async () => {
    repo.git('remote', 'add', 'origin', 'git@github.com:ada/project.git')
    expect(await world.json('/', 0, 'codebase', 'add', repo.path)).toMatchObject({
      github: 'ada/project',
      remote: 'origin',
    })
  })
})

describe('cleanup', () => {
  test('a dry run reports and touches nothing; the real one removes what is merged and keeps the rest', async () => {
    const merged = await mergedWork('done')
    appendFileSync(join(repo.path, '.git', 'info', 'exclude'), 'node_modules/\n')
    mkdirSync(join(merged.path, 'node_modules'))
    const dirty = await mergedWork('dirty')
    writeFileSync(join(dirty.path, 'new'), '')
    await create('busy')
    const dry = await world.json(repo.path, 0, 'cleanup', '--dry-run')
    expect(dry).toEqual({
      removed: [expect.objectContaining({ id: merged.id, branch: 'done', status: 'active', leftOut: [] })],
      skipped: [
        {
          environment: expect.objectContaining({ branch: 'dirty' }),
          reasons: [{ gate: 'nothing-uncommitted', answer: 'no', detail: '1 untracked' }],
        },
      ],
      missing: [],
      orphans: [],
      errors: [],
      dryRun: true,
      notices: [],
    })
    expect(existsSync(merged.path)).toBe(true)
    const { out, code } = await world.run('/', 'cleanup')
    expect(code).toBe(0)
    expect(out).toMatch(/^removed {2}done {3}merged: /)
    expect(out).toContain('not kept: node_modules/ (can be regenerated)')
    expect(out).toContain('kept     dirty  1 untracked')
    expect(out).toContain('project: 1 worktree removed; each can be restored for 30 days.')
    expect(existsSync(merged.path)).toBe(false)
    expect(existsSync(dirty.path)).toBe(true)
  })

  test('cleanup merged and cleanup stale look at one thing each', async () => {
    await mergedWork('done')
    await create('idle')
    Object.assign(world.env, { STALE_THRESHOLD_DAYS: '0' })
    const branches = async (only: string): Promise<string[]> => {
      const report = await world.json<{ removed: EnvironmentJson[] }>(
        repo.path,
        0,
        'worktree',
        'cleanup',
        only,
        '--dry-run',
      )
      return report.removed.map(({ branch }) => branch).toSorted()
    }
    expect(await branches('merged')).toEqual(['done'])
    expect(await branches('stale')).toEqual(['done', 'idle'])
    expect((await world.run(repo.path, 'worktree', 'cleanup', 'merged')).out).toContain('removed  done')
  })
})

describe('status and doctor', () => {
  test('status says where one is and how many there are', async () => {
    const { path } = await create('--issue', '1')
    await mergedWork('done')
    const { out } = await world.run(path, 'status')
    expect(out).toMatch(/^repository +project, /)
    expect(out).toMatch(/^worktrees +2 of 25: 1 active, 1 merged \(can be removed\)$/m)
    expect(out).toMatch(/^in worktree +issue-1 \(issue #1\), /m)
    expect(out).toMatch(/^database +SQLite, /m)
    expect(await world.json(path, 0, 'status')).toMatchObject({
      codebase: { name: 'project' },
      environment: { branch: 'issue-1' },
      worktrees: { total: 2, active: 1, merged: 1, stale: 0, missing: 0 },
      limit: 25,
    })
    expect(await world.json('/', 0, 'status')).toMatchObject({ codebase: null, environment: null })
  })

  test('doctor is content with a healthy home', async () => {
    await create('--issue', '1')
    const { code, out } = await world.run('/', 'doctor')
    expect(out).toContain('No problems found.')
    expect(code).toBe(0)
    expect(await world.json('/', 0, 'doctor')).toMatchObject({ healthy: true, fixed: [] })
  })

  test('doctor names each problem with what to do, and --fix does what can be done', async () => {
    const { path } = await create('--issue', '1')
    repo.worktree('theirs', '-b', 'theirs')
    renameSync(path, `${path}.away`)
    chmodSync(world.home, 0o755)
    mkdirSync(join(world.home, 'worktrees/.trash/unknown'), { recursive: true })
    mkdirSync(join(world.home, 'worktrees/.spares/unknown'), { recursive: true })
    const { findings } = await world.json<{ findings: { state: string; detail: string; remedy: string }[] }>(
      '/',
      1,
      'doctor',
    )
    const problems = findings.filter(({ state }) => state === 'problem')
    expect(problems.map(({ detail }) => detail)).toEqual([
      expect.stringContaining('other users can read'),
      expect.stringContaining('issue-1 is missing'),
      expect.stringContaining('.trash/unknown'),
      expect.stringContaining('.spares/unknown'),
    ])
    expect(problems.every(({ remedy }) => remedy.length > 0)).toBe(true)
    expect(findings.find(({ state }) => state === 'note')?.detail).toContain('theirs')
    chmodSync(world.home, 0o700)
    rmSync(join(world.home, 'worktrees/.trash/unknown'), { recursive: true })
    rmSync(join(world.home, 'worktrees/.spares/unknown'), { recursive: true })
    await world.run(repo.path, 'worktree', 'list')
    renameSync(`${path}.away`, path)
    const fixed = await world.json<{ fixed: string[] }>('/', 0, 'doctor', '--fix')
    expect(fixed.fixed).toEqual(['project: issue-1 is back'])
  })
})

describe('the program itself', () => {
  // create, list, restore and import are started in other tests, serve and chat in test/e2e/conversations.
  test('every command runs as a process of its own, and ends', async () => {
    const theirs = repo.worktree('theirs', '-b', 'theirs')
    await create('x')
    await create('y')
    const commands: readonly (readonly [words: string[], says: RegExp, code?: number])[] = [
      [['codebase', 'add', '.'], /^Already registered: project/],
      [['codebase', 'list'], /^NAME/],
      [['codebase', 'trust', 'project'], /^project/],
      [['worktree', 'orphans'], /theirs/],
      [['worktree', 'adopt', theirs.path], /^Adopted theirs/],
      [['worktree', 'link', 'theirs', '--conversation', 'slack:C1'], /^Linked slack:C1 to theirs/],
      [['worktree', 'trust', 'x'], /\bx\b/],
      [['status'], /^repository/],
      [['agents'], /demo/],
      [['diff', 'x'], /./],
      [['worktree', 'remove', 'x'], /^Removed x/],
      [['worktree', 'cleanup', 'merged'], /./],
      [['cleanup', '--dry-run'], /./],
      [['doctor'], /No problems found/],
      [['platforms'], /^slack\s+not configured$/m],
      [['platforms', 'setup', 'slack'], /^Set up Slack/, 1],
      [['codebase', 'remove', 'project'], /^coppice: project still has worktrees: y, theirs/, 3],
    ]
    const ran: unknown[] = []
    for (const [words] of commands) {
      const { code, out, err } = await ended(world.start(repo.path, ...words))
      ran.push({ words, code, says: out === '' ? err : out })
    }
    expect(ran).toEqual(commands.map(([words, says, code = 0]) => ({ words, code, says: expect.stringMatching(says) })))
  })

  test('--help shows every command, and each has examples of its own', async () => {
    const { out, code } = await world.run('/', '--help')
    expect(code).toBe(0)
    expect(out).toContain('worktree create')
    expect(out).not.toContain('internal')
    const create = (await world.run('/', 'worktree', 'create', '--help')).out
    expect(create).toContain('--pr-branch <branch>')
    expect(create).toContain('Examples\n  coppice worktree create --issue 42')
    expect((await world.run('/', 'worktree')).out).toContain('worktree orphans')
    expect(readdirSync(world.home)).toEqual(['config.yaml'])
  })

  test('--version', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    expect((await world.run('/', '--version')).out).toBe(`${version}\n`)
  })

  test('from source it runs without a build', () => {
    const { stdout } = spawnSync(process.execPath, [fromSource, 'worktree', 'list'], {
      cwd: repo.path,
      env: world.env,
      encoding: 'utf8',
    })
    expect(stdout).toContain('project has no worktrees yet.')
  })

  test('the home is private, and its host id stays', async () => {
    const home = world.box.path('new/home')
    await world.run(repo.path, 'worktree', 'list', '--home', '../new/home')
    const id = readFileSync(join(home, 'host'), 'utf8')
    expect(statSync(home).mode & 0o777).toBe(0o700)
    expect(statSync(join(home, 'host')).mode & 0o777).toBe(0o600)
    await world.run(repo.path, 'worktree', 'list', '--home', home)
    expect(readFileSync(join(home, 'host'), 'utf8')).toBe(id)
  })

  test('two that start together for the first time agree on the host and the codebase', async () => {
    const both = ['one', 'two'].map((branch) => ended(world.start(repo.path, 'worktree', 'create', branch, '--json')))
    const runs = (await Promise.all(both)).map(({ out }) => JSON.parse(out) as EnvironmentJson)
    expect(runs.map(({ branch }) => branch)).toEqual(['one', 'two'])
    expect(await world.json<unknown[]>(repo.path, 0, 'worktree', 'list')).toHaveLength(2)
  })

  test('a reader that has read enough is no fault', () => {
    const script = `'${process.execPath}' '${main}' --help | true; echo "\${PIPESTATUS[0]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { env: world.env, encoding: 'utf8' })
    expect({ stdout, stderr }).toEqual({ stdout: '0\n', stderr: '' })
  })

  test('Ctrl-C during a setup cancels, undoes what was made, keeps what was written and exits with 130', async () => {
    repo.commit('.coppice/config.yaml', 'worktree:\n  setup: touch started && sleep 600\n')
    await world.json(repo.path, 0, 'codebase', 'add', '.')
    await world.run(repo.path, 'codebase', 'trust', 'project')
    const child = world.start(repo.path, 'worktree', 'create', 'x')
    const end = ended(child)
    const path = join(world.home, 'worktrees/project/x')
    await expect.poll(() => existsSync(join(path, 'started'))).toBe(true)
    child.kill('SIGINT')
    expect(await end).toEqual({
      code: 130,
      out: '',
      err: expect.stringMatching(/^Cancelled\. .+ saved: coppice worktree restore \S+$/m),
    })
    expect(existsSync(path)).toBe(false)
    expect(repo.git('branch', '--list', 'x')).toBe('')
    expect(await world.json(repo.path, 0, 'worktree', 'list')).toEqual([])
  })

  test('what takes long says what it is waiting for', async () => {
    repo.commit('.coppice/config.yaml', 'worktree:\n  setup: while [ ! -e go ]; do sleep 0.05; done\n')
    await world.run(repo.path, 'codebase', 'trust', repo.path)
    const child = world.start(repo.path, 'worktree', 'create', 'x')
    let err = ''
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()))
    await expect.poll(() => err).toContain('…')
    writeFileSync(join(world.home, 'worktrees/project/x/go'), '')
    expect((await ended(child)).code).toBe(0)
  })

  test('a token in the environment never comes back in a message', async () => {
    Object.assign(world.env, { GITHUB_TOKEN: 'ghp_verysecretverysecret' })
    const { err } = await world.run(repo.path, 'worktree', 'remove', 'ghp_verysecretverysecret', '--verbose')
    expect(err).toContain('[hidden]')
    expect(err).not.toContain('verysecret')
  })

  test('--verbose shows the causes, and without it there is no stack', async () => {
    const quiet = await world.run(repo.path, 'worktree', 'remove', 'x')
    const loud = await world.run(repo.path, 'worktree', 'remove', 'x', '--verbose')
    expect(quiet.err).not.toMatch(/\n\s+at /)
    expect(loud.err).toMatch(/\n\s+at /)
  })
})
