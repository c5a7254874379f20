import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CliWorld, type EnvironmentJson, main, makeCliWorld, project } from '../helpers/cli.ts'
import type { TestRepo } from '../helpers/repo.ts'

let world: CliWorld
let repo: TestRepo

beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
})
afterEach(() => world[Symbol.dispose]())

const create = (...args: string[]): Promise<EnvironmentJson> =>
  world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', ...args)
const remove = (...args: string[]): Promise<unknown> => world.json(repo.path, 0, 'worktree', 'remove', ...args)

type Refused = { error: { message: string; remedies: string[] } }
const remediesOf = async (cwd: string, ...args: string[]): Promise<string[]> =>
  (await world.json<Refused>(cwd, 3, 'worktree', 'remove', ...args)).error.remedies

/** Pasted as it is printed, where the user stands. */
const paste = (cwd: string, remedy: string | undefined): void => {
  const command = remedy?.replace(/^[A-Z][^:]*: /, '') ?? 'false'
  execFileSync('bash', ['-c', command], { cwd, env: { ...world.env, GIT_CONFIG_NOSYSTEM: '1' }, stdio: 'pipe' })
}

describe('a way out, pasted where the user stands', () => {
  beforeEach(() => writeFileSync(join(repo.path, 'README'), 'work in the shared checkout\n'))

  test('discards in the environment, and nothing in the shared checkout', async () => {
    const { path } = await create('--issue', '42')
    writeFileSync(join(path, 'README'), 'changed\n')
    writeFileSync(join(repo.path, 'mine'), '')
    const discard = (await remediesOf(repo.path, 'issue-42')).find((way) => way.startsWith('Discard'))
    paste(repo.path, discard)
    expect(world.box.raw(path, 'status', '--porcelain')).toBe('')
    expect(repo.git('status', '--porcelain')).toBe(' M README\n?? mine')
  })

  test('commits and pushes from the environment though its branch has no upstream', async () => {
    const origin = world.box.bare('origin.git')
    repo.git('remote', 'add', 'origin', origin.path)
    const { path } = await create('--issue', '42')
    writeFileSync(join(path, 'new'), '')
    const push = (await remediesOf(repo.path, 'issue-42')).find((way) => way.startsWith('Commit and push'))
    paste(repo.path, push)
    expect(origin.git('log', '-1', '--format=%s', 'issue-42')).toBe('WIP')
    expect(repo.git('status', '--porcelain')).toBe(' M README')
    // Now it has one.
    writeFileSync(join(path, 'more'), '')
    paste(repo.path, (await remediesOf(repo.path, 'issue-42'))[0])
    expect(origin.git('rev-list', '--count', 'issue-42')).toBe('3')
  })

  test('does not push where there is nowhere to push to', async () => {
    const { path } = await create('--issue', '42')
    writeFileSync(join(path, 'new'), '')
    const [commit] = await remediesOf(repo.path, 'issue-42')
    expect(commit).toBe(`Commit: git -C ${path} add -A && git -C ${path} commit -m "WIP"`)
  })

  test('runs nothing that a branch is called', async () => {
    const branch = 'x$(touch${IFS}ran)'
    const { path } = await create(branch)
    writeFileSync(join(path, 'new'), '')
    const anyway = (await remediesOf(repo.path, branch)).find((way) => way.startsWith('Remove it anyway'))
    expect(anyway).toContain(`worktree remove '${branch}' --force`)
  })
})

test('a way out keeps the codebase that was named', async () => {
  const { path } = await create('--issue', '5')
  writeFileSync(join(path, 'new'), '')
  const remedies = await remediesOf('/', 'issue-5', '--codebase', 'project')
  expect(remedies.at(-1)).toBe(
    'Remove it anyway: coppice worktree remove issue-5 --force --codebase project   (kept for 30 days: coppice worktree restore issue-5 --codebase project)',
  )
  const { err } = await world.run('/', 'worktree', 'remove', 'nothing', '--codebase', 'project')
  expect(err).toContain('`coppice worktree list --codebase project` for a list')
  const removed = await world.run('/', 'worktree', 'remove', 'issue-5', '--force', '--codebase', 'project')
  expect(removed.out).toContain('coppice worktree restore issue-5 --codebase project')
})

describe('removing from inside', () => {
  /** As from a prompt: a shell that stands in it and waits for coppice. */
  const fromShell = (cwd: string, ...args: string[]): { status: number | null; stderr: string } => {
    const script = `'${process.execPath}' '${main}' "$@"; exit $?`
    const { status, stderr } = spawnSync('bash', ['-c', script, 'shell', ...args], {
      cwd,
      env: world.env,
      encoding: 'utf8',
    })
    return { status, stderr }
  }

  test("says only that, and how to step out: the user's own shell is no stranger", async () => {
    const { path } = await create('--issue', '60')
    expect(fromShell(path, 'worktree', 'remove', 'issue-60')).toEqual({
      status: 3,
      stderr: [
        'Cannot remove worktree `issue-60`: you are inside it: leave it first.',
        ` 1. Leave it:  cd ${repo.path} && coppice worktree remove issue-60`,
        '',
      ].join('\n'),
    })
  })

  test('without a checkout it steps out to the home, and names the codebase', async () => {
    await world.json('/', 0, 'codebase', 'add', `file://${repo.path}`, '--name', 'mine')
    const { path } = await world.json<EnvironmentJson>('/', 0, 'worktree', 'create', 'x', '--codebase', 'mine')
    const { stderr } = fromShell(path, 'worktree', 'remove', 'x', '--force')
    expect(stderr).toContain('cd ~ && coppice worktree remove x --force --codebase mine\n')
  })

  test('a process of somebody else is still named', async () => {
    const { path } = await create('--issue', '60')
    const script = `sleep 600 & '${process.execPath}' '${main}' worktree remove issue-60; kill $!`
    const { stderr } = spawnSync('bash', ['-c', script], { cwd: path, env: world.env, encoding: 'utf8' })
    expect(stderr).toMatch(/you are inside it: leave it first, process \d+ \(sleep\) is inside it\./)
  })
})

describe('restore', () => {
  test('takes the newest that is not back, one after the other', async () => {
    for (const issue of ['1', '2']) await create('--issue', issue)
    for (const issue of ['1', '2']) await remove(`issue-${issue}`)
    const restore = (): Promise<EnvironmentJson> => world.json(repo.path, 0, 'worktree', 'restore')
    expect((await restore()).branch).toBe('issue-2')
    expect(await world.json(repo.path, 0, 'status')).toMatchObject({ restorePoints: 1 })
    expect((await restore()).branch).toBe('issue-1')
    expect(await world.json(repo.path, 0, 'status')).toMatchObject({ restorePoints: 0 })
    expect((await world.run(repo.path, 'worktree', 'restore')).err).toMatch(
      /^coppice: project has nothing to restore\./,
    )
  })

  test('of a work that is back says which and what to do', async () => {
    await create('--issue', '1')
    await remove('issue-1')
    const { path } = await create('--issue', '1')
    const { code, err } = await world.run(repo.path, 'worktree', 'restore', 'issue-1')
    expect(code).toBe(1)
    expect(err).toBe(
      `coppice: can't restore issue-1: issue #1 already has a worktree, issue-1 at ${path}.\nRemove that one first: coppice worktree remove issue-1\n`,
    )
  })

  test('--list shows what can be restored and changes nothing', async () => {
    expect((await world.run(repo.path, 'worktree', 'restore', '--list')).out).toBe('project has nothing to restore.\n')
    const { path, id } = await create('--issue', '1')
    writeFileSync(join(path, 'new'), '')
    await remove('issue-1', '--force')
    const { out } = await world.run(repo.path, 'worktree', 'restore', '--list')
    expect(out).toMatch(
      /^BRANCH +FOR +REMOVED +KEPT FOR +UNCOMMITTED +ID\nissue-1 +issue #1 +just now +30 days +yes +\w{8}\n/,
    )
    expect(out).toContain('Restore one: coppice worktree restore <branch or id>')
    const [listed] = await world.json<{ restorePoint: string }[]>(repo.path, 0, 'worktree', 'restore', '--list')
    expect(listed).toMatchObject({ environment: { id, branch: 'issue-1' }, dirty: true })
    expect(existsSync(path)).toBe(false)
    expect((await world.run(repo.path, 'worktree', 'remove', 'issue-1')).err).toContain(
      'or `coppice worktree restore --list` for removed ones',
    )
    expect((await world.run(repo.path, 'worktree', 'restore', '--list', 'issue-1')).code).toBe(2)
    // By the id as the list shows it.
    const short = listed?.restorePoint.slice(0, 8) ?? ''
    expect(await world.json(repo.path, 0, 'worktree', 'restore', short)).toMatchObject({ branch: 'issue-1' })
  })
})

describe('an environment whose directory is gone', () => {
  test('is let go of, and what could not be kept is not called kept', async () => {
    const { path } = await create('--issue', '72')
    renameSync(path, `${path}.away`)
    const { out } = await world.run(repo.path, 'worktree', 'remove', 'issue-72', '--force')
    expect(out).toContain(`Stopped tracking issue-72: ${path} was missing, so its files couldn't be saved\n`)
    expect(out).toContain('its branch and commits are kept for 30 days')
    expect(out).not.toContain('not kept:')
  })

  test('is mentioned when the work is taken up anew', async () => {
    const { path } = await create('--issue', '70')
    rmSync(path, { recursive: true })
    const { err, code } = await world.run(repo.path, 'worktree', 'create', '--issue', '70')
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringContaining(`stopped tracking the earlier issue-70, because ${path} was missing.`),
    })
  })
})
