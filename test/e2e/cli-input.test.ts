import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CliWorld, type EnvironmentJson, main, makeCliWorld, project } from '../helpers/cli.ts'
import type { TestRepo } from '../helpers/repo.ts'
import { capitalized } from '../../src/domain/text/words.ts'
import { makeSmallDisk, noSmallDisk } from './small-disk.ts'

let world: CliWorld

beforeEach(() => {
  world = makeCliWorld()
})
afterEach(() => world[Symbol.dispose]())

type Failure = { error: { code: string; message: string; reasons: unknown[]; remedies: string[] } }

/** The failure as JSON, and the same for people: one sentence of what happened, one of what to do, never a stack. */
const failure = async (cwd: string, code: number, ...args: string[]): Promise<Failure['error']> => {
  const { error } = await world.json<Failure>(cwd, code, ...args)
  const human = await world.run(cwd, ...args)
  expect(human.code).toBe(code)
  expect(human.out).toBe('')
  expect(human.err).toContain(`coppice: ${error.message}`)
  expect(human.err).not.toMatch(/\n\s+at /)
  expect(error.reasons).toEqual([])
  return error
}

/** Everything that a command could have changed in the repository. */
const traces = (repo: TestRepo): string =>
  [repo.git('for-each-ref'), repo.git('worktree', 'list', '--porcelain'), repo.git('status', '--porcelain')].join('\n')

describe('what bad input gets', () => {
  test('not a repository', async () => {
    const error = await failure(world.box.root, 1, 'worktree', 'create', 'x')
    expect(error.code).toBe('not-a-repository')
    expect(error.message).toContain(world.box.root)
  })

  test('a repository without commits', async () => {
    const path = world.box.path('empty')
    world.box.raw(world.box.root, 'init', '-q', path)
    const error = await failure(path, 1, 'worktree', 'create', 'x')
    expect(error.code).toBe('no-commits')
    expect(error.remedies[0]).toContain('git commit')
    expect(await world.json(path, 0, 'codebase', 'list')).toEqual([])
  })

  test.each([
    ['that git would refuse', ['a..b']],
    ['that git would refuse', ['a b']],
    ['that git would refuse', ['x.lock']],
    ['that looks like an option', ['--', '-evil']],
    ['that leads out of the managed root', ['../../outside']],
    ['that leads out of the managed root', ['/etc/passwd']],
    ['of a ref', ['refs/heads/x']],
    ['with half a number', ['--issue', '4x']],
    ['with a number below one', ['--issue', '0']],
    ['of a branch that git would refuse', ['--pr', '1', '--pr-branch', 'a..b']],
    ['that is no commit', ['--pr', '1', '--pr-sha', 'abc']],
    ['that is empty', ['']],
  ])('a name %s: %j', async (_what, args) => {
    const repo = project(world)
    const before = traces(repo)
    const error = await failure(repo.path, 2, 'worktree', 'create', ...args)
    expect(error.code).toBe('name-invalid')
    expect(traces(repo)).toBe(before)
    // Not even the codebase was registered, and nothing lies where the name would have led.
    expect(await world.json(repo.path, 0, 'codebase', 'list')).toEqual([])
    expect(existsSync(world.box.path('outside'))).toBe(false)
  })

  test('a base that does not exist', async () => {
    const repo = project(world)
    const before = traces(repo)
    const error = await failure(repo.path, 1, 'worktree', 'create', 'x', '--base', 'nowhere')
    expect(error.code).toBe('base-not-found')
    expect(error.message).toContain('"nowhere"')
    expect(traces(repo)).toBe(before)
  })

  test('a remote that cannot be reached: it goes on from what is here and says so', async () => {
    const repo = project(world)
    repo.git('remote', 'add', 'origin', world.box.path('gone.git'))
    const { code, out, err } = await world.run(repo.path, 'worktree', 'create', 'x')
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("note: couldn't fetch") })
    expect(out).toContain('Created x')
  })

  test('a pull request on a remote that cannot be reached is a failure, and nothing is made', async () => {
    const repo = project(world)
    repo.git('remote', 'add', 'origin', world.box.path('gone.git'))
    const before = traces(repo)
    const error = await failure(repo.path, 1, 'worktree', 'create', '--pr', '7', '--fork')
    expect(['pr-not-found', 'remote-unreachable']).toContain(error.code)
    expect(traces(repo)).toBe(before)
  })

  test('a URL that cannot be reached leaves nothing behind', async () => {
    const error = await failure(world.box.root, 1, 'codebase', 'add', `file://${world.box.path('gone.git')}`)
    expect(error.code).toBe('remote-unreachable')
    expect(readdirSync(join(world.home, 'repos'))).toEqual([])
    expect(await world.json('/', 0, 'codebase', 'list')).toEqual([])
  })

  test('a URL that runs a program or carries a password', async () => {
    for (const url of ['ext::sh -c true', 'https://me:secret@example.org/x.git']) {
      const error = await failure(world.box.root, 2, 'codebase', 'add', url)
      expect(error.code).toBe('name-invalid')
      expect(JSON.stringify(error)).not.toContain('secret@')
    }
  })

  test('a work that has an environment already gets that one', async () => {
    const repo = project(world)
    const first = await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', '--issue', '1')
    expect(await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', '--issue', '1')).toEqual(first)
  })

  test("an unknown key in the home's config", async () => {
    const repo = project(world)
    writeFileSync(join(world.home, 'config.yaml'), 'cleanup:\n  stale_days: 3\n')
    const error = await failure(repo.path, 1, 'worktree', 'list')
    expect(error.code).toBe('config-invalid')
    expect(error.message).toContain('config.yaml line 2')
    expect(error.message).toContain('cleanup.stale_days')
    expect(error.remedies).toEqual(['did you mean "cleanup.staleDays"?'])
  })

  test("an unknown key in the repository's config", async () => {
    const repo = project(world)
    repo.commit('.coppice/config.yaml', 'worktree:\n  stup: npm ci\n')
    const before = traces(repo)
    const error = await failure(repo.path, 1, 'worktree', 'create', 'x')
    expect(error.code).toBe('config-invalid')
    expect(error.message).toContain('worktree.stup')
    expect(error.remedies).toEqual(['did you mean "worktree.setup"?'])
    expect(traces(repo)).toBe(before)
  })

  test('a bad variable', async () => {
    Object.assign(world.env, { STALE_THRESHOLD_DAYS: 'soon' })
    const error = await failure(project(world).path, 1, 'worktree', 'list')
    expect(error.message).toContain('STALE_THRESHOLD_DAYS')
  })

  test.each([
    ['below a file', 'file/below', 1, 'config-invalid'],
    ['that is a file', 'file', 1, 'config-invalid'],
    // Node's own recursive mkdir never returns there.
    ['where the system makes no directories', '/proc/x/y', 1, 'config-invalid'],
    ['without a name', '', 2, 'usage'],
  ])('a home %s', async (_what, path, code, expected) => {
    writeFileSync(world.box.path('file'), '')
    const repo = project(world)
    const home = path === '' ? '' : resolve(world.box.root, path)
    const error = await failure(repo.path, code, 'worktree', 'list', '--home', home)
    expect(error.code).toBe(expected)
    expect(existsSync(join(repo.path, 'coppice.db'))).toBe(false)
  })

  test('a directory that does not exist any more', async () => {
    const gone = world.box.path('gone')
    mkdirSync(gone)
    const script = `rmdir '${gone}' && exec "$0" "$@"`
    const args = ['-c', script, process.execPath, main, 'worktree', 'list']
    const { status, stderr } = spawnSync('/bin/sh', args, { cwd: gone, env: world.env, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining('the current directory no longer exists'),
    })
  })
})

describe('a full disk', () => {
  test('creation fails with one sentence and leaves nothing, and works once there is room', async ({ skip }) => {
    const repo = project(world)
    repo.commit('large', Buffer.alloc(3 * 1024 * 1024, 'x'))
    using disk = await makeSmallDisk()
    if (disk === undefined) return skip(noSmallDisk)
    world.through.push(...disk.through)
    Object.assign(world.env, { WORKTREE_BASE: disk.at })
    const before = traces(repo)
    const error = await failure(repo.path, 1, 'worktree', 'create', 'x')
    expect(error.code).toBe('disk-full')
    expect(error.remedies[0]).toContain('free some space')
    // A chat gets the same sentences.
    const chat = await world.run(repo.path, 'chat', '--agent', 'demo', 'go on')
    expect(chat.out + chat.err).toContain(
      `Couldn't set up an isolated worktree of \`project\`: ${error.message}. Nothing was run. ${capitalized(error.remedies[0] ?? '')}.`,
    )
    expect(traces(repo)).toBe(before)
    expect(await world.json(repo.path, 0, 'worktree', 'list')).toEqual([])
    // With the source named, mount does not repeat the old options, whose owner means nobody in a namespace.
    disk.sh(`mount -o remount,size=20m tmpfs '${disk.at}'`)
    const { path } = await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', 'x')
    expect(disk.sh(`wc -c < '${path}/large'`).trim()).toBe(String(3 * 1024 * 1024))
  })

  test('with the home on it, a failed creation gives its space back at once', async ({ skip }) => {
    const repo = project(world)
    repo.commit('large', Buffer.alloc(3 * 1024 * 1024, 'x'))
    using disk = await makeSmallDisk()
    if (disk === undefined) return skip(noSmallDisk)
    world.through.push(...disk.through)
    const home = join(disk.at, 'home')
    const free = (): number => Number(disk.sh(`df --output=avail -k '${disk.at}' | tail -1`))
    await world.json(repo.path, 0, 'worktree', 'list', '--home', home)
    const before = free()
    expect((await world.run(repo.path, 'worktree', 'create', 'x', '--home', home)).err).toContain('the disk is full')
    await expect.poll(free).toBeGreaterThan(before - 300)
    expect(await world.json(repo.path, 0, 'worktree', 'list', '--home', home)).toEqual([])
  })

  test('a home on a full disk is a failure with one sentence', async ({ skip }) => {
    const repo = project(world)
    using disk = await makeSmallDisk()
    if (disk === undefined) return skip(noSmallDisk)
    world.through.push(...disk.through)
    disk.sh(`head -c ${2 * 1024 * 1024 - 8192} /dev/zero > '${disk.at}/filler'`)
    const { code, err } = await world.run(repo.path, 'worktree', 'create', 'x', '--home', join(disk.at, 'home'))
    expect(code).toBe(1)
    expect(err).toMatch(/disk is full|ENOSPC|no space/i)
    expect(err).not.toMatch(/\n\s+at /)
  })
})

describe('wrong usage', () => {
  test.each([
    [['worktre', 'list'], 'unknown command "worktre"', 'did you mean `coppice worktree`?'],
    [['worktree', 'lsit'], 'unknown command "worktree lsit"', 'did you mean `coppice worktree list`?'],
    [['list'], 'unknown command "list"', 'did you mean `coppice worktree list`?'],
    [['worktree', 'list', '--jsno'], 'unknown option --jsno', 'did you mean `--json`?'],
    [
      ['worktree', 'create'],
      'specify a branch, --issue, --pr, --review, --thread, --task or --crew',
      'coppice worktree create --help',
    ],
    [['worktree', 'create', 'x', '--issue', '1'], "a branch and --issue can't be combined", 'use one of them'],
    [['worktree', 'create', '--issue', '1', '--fork'], '--fork requires --pr', 'usage: --pr <number>'],
    [['worktree', 'create', 'x', 'y'], 'unexpected argument "y"', 'coppice worktree create --help'],
    [['worktree', 'remove'], 'missing required argument: <ref>', 'coppice worktree remove --help'],
    [['done', '--close'], '--close requires --mode discard', 'closed or in review anyway'],
    [['nudge', 'alder'], 'missing required argument: <text>', 'coppice nudge --help'],
    [['fleet', 'stauts'], 'unknown command "fleet stauts"', 'did you mean `coppice fleet status`?'],
    [['platforms', 'xyzzy'], 'unknown command "platforms xyzzy"', 'coppice platforms --help'],
    [['worktree', 'cleanup', 'everything'], 'unknown cleanup type "everything"', '`merged` or `stale`'],
    [['xyzzy'], 'unknown command "xyzzy"', 'coppice --help'],
  ])('%j', async (args, message, remedy) => {
    const error = await failure(project(world).path, 2, ...args)
    expect(error.code).toBe('usage')
    expect(error.message).toBe(message)
    expect(error.remedies.join()).toContain(remedy)
  })

  test('a command that is also the name of a group has the help of the group', async () => {
    const cwd = project(world).path
    const { out } = await world.run(cwd, 'fleet', '--help')
    for (const name of ['fleet status', 'fleet up', 'fleet down']) expect(out).toContain(`  ${name}  `)
    expect((await world.run(cwd, 'help', 'fleet')).out).toBe(out)
    expect((await world.run(cwd, 'platforms', '--help')).out).toMatch(/^ {2}platforms +\w[^]*^ {2}platforms setup /m)
    expect((await world.run(cwd, 'fleet', 'status', '--help')).out).toMatch(/^coppice fleet status\n/)
  })
})
