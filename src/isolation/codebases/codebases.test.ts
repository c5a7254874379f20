import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { said } from '../../../test/helpers/words.ts'
import { makeWorld } from '../../../test/helpers/world.ts'
import { reconcileAll } from '../../main/reconcile-all.ts'
import type { JournalEntry } from '../../store/store.ts'
import { recoverRepositoryClones } from './clone-repository.ts'
import { codebaseId } from './recognise.ts'
import { githubOf, plainName } from './register.ts'
import { addCodebase, codebaseAround, resolveCodebase } from './codebases.ts'

describe('finding the codebase of a directory', () => {
  test('a linked worktree and a subdirectory lead to the canonical repository', async () => {
    await using world = await makeWorld()
    const other = world.box.repo('other')
    const tree = other.worktree('linked', '-b', 'linked')
    mkdirSync(join(tree.path, 'deep'))
    const added = await resolveCodebase(world.context, { cwd: join(tree.path, 'deep') })
    expect(added).toMatchObject({ name: 'other', repoPath: other.commonDir, checkoutPath: other.path })
    expect((await resolveCodebase(world.context, { cwd: other.path })).id).toBe(added.id)
  })

  test('a known repository is found without starting a program', async () => {
    await using world = await makeWorld()
    const before = world.context.git.spawned()
    expect((await codebaseAround(world.context, world.repo.path))?.id).toBe(world.codebase.id)
    expect(world.context.git.spawned()).toBe(before)
  })

  test('inside an environment its record decides, whatever its .git file says', async () => {
    await using world = await makeWorld()
    const other = world.box.repo('other')
    await addCodebase(world.context, other.path, '/')
    const made = await world.provider.create({
      codebase: world.codebase,
      work: { type: 'issue', id: '1' },
      hints: {},
      createdBy: 'test',
      aliases: [],
    })
    if (made.outcome !== 'created') throw new Error(made.outcome)
    const { path } = made.environment
    writeFileSync(join(path, '.git'), `gitdir: ${other.commonDir}\n`)
    expect((await codebaseAround(world.context, path))?.id).toBe(world.codebase.id)
    rmSync(join(path, '.git'))
    expect((await codebaseAround(world.context, path))?.id).toBe(world.codebase.id)
  })

  test('a remote that came later is noticed, and its password is not kept', async () => {
    await using world = await makeWorld()
    world.repo.git('remote', 'add', 'origin', 'https://me:hush@github.com/ada/project.git')
    expect(await resolveCodebase(world.context, { cwd: world.repo.path })).toMatchObject({
      remote: 'origin',
      remoteUrl: 'https://github.com/ada/project.git',
      github: 'ada/project',
    })
    expect(JSON.stringify(await world.context.store.codebases.list(world.context.host))).not.toContain('hush')
  })

  test("checking out a branch of another remote does not change the codebase's remote, removing the remote does", async () => {
    await using world = await makeWorld({ remote: true })
    const fork = world.box.bare('fork.git')
    world.repo.git('remote', 'add', 'fork', fork.path)
    world.repo.git('push', '-q', 'fork', 'main:theirs')
    world.repo.git('checkout', '-q', '-b', 'review', '--track', 'fork/theirs')
    await world.context.store.codebases.update(world.codebase.id, { baseBranch: 'main' })
    const find = () => resolveCodebase(world.context, { cwd: world.repo.path })
    expect(await find()).toMatchObject({ remote: 'origin', baseBranch: 'main' })
    world.repo.git('remote', 'remove', 'origin')
    expect(await find()).toMatchObject({ remote: 'fork', baseBranch: undefined })
  })

  test('a repository that is gone is a fault that says so', async () => {
    await using world = await makeWorld()
    renameSync(world.repo.path, `${world.repo.path}.away`)
    await expect(resolveCodebase(world.context, { cwd: world.repo.path })).rejects.toMatchObject({
      code: 'not-a-repository',
    })
  })
})

describe('clones', () => {
  const entry = (context: { host: string; self: { pid: number; startTime: string } }, id: string): JournalEntry => ({
    id,
    host: context.host,
    codebaseId: undefined,
    environmentId: undefined,
    kind: 'clone',
    step: 'cloning',
    data: { path: join(tmpdir(), 'app.git') },
    // The pid is ours, the start time is not: this very process is long dead.
    holder: { pid: context.self.pid, startTime: 'before' },
    child: undefined,
    startedAt: 0,
  })

  test("what an interrupted one left goes at a server's start", async () => {
    await using world = await makeWorld()
    const half = join(world.context.home, 'repos/.cloning-dead')
    mkdirSync(half, { recursive: true })
    await world.context.store.journal.begin(entry(world.context, 'dead'))
    expect(said(await reconcileAll(world.context))).toEqual(['recovered from an interrupted clone app.git'])
    expect(existsSync(half)).toBe(false)
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  })

  test('one that a living process makes is left to it', async () => {
    await using world = await makeWorld()
    const half = join(world.context.home, 'repos/.cloning-alive')
    mkdirSync(half, { recursive: true })
    await world.context.store.journal.begin({ ...entry(world.context, 'alive'), holder: world.context.self })
    expect(await recoverRepositoryClones(world.context)).toEqual({ settled: [], left: [] })
    expect(existsSync(half)).toBe(true)
  })

  test('one that git still works on, or that fails, is left, and the others go', async () => {
    await using world = await makeWorld()
    const { context, box } = world
    const [half, other] = ['busy', 'other'].map((id) => join(context.home, 'repos', `.cloning-${id}`)) as [
      string,
      string,
    ]
    mkdirSync(other, { recursive: true })
    box.raw(box.root, 'init', '-q', half)
    for (const id of ['broken', 'busy', 'other']) await context.store.journal.begin(entry(context, id))
    const git = spawn('git', ['-C', half, 'cat-file', '--batch'], { stdio: ['pipe', 'pipe', 'ignore'] })
    git.stdin.write('HEAD\n')
    await once(git.stdout, 'data')
    try {
      // Every look at the clock is six seconds later: nobody waits for git.
      let now = Date.now()
      const { journal } = context.store
      const end = async (id: string) => (id === 'broken' ? Promise.reject(new Error('disk full')) : journal.end(id))
      const store = { ...context.store, journal: { ...journal, end } }
      const { settled, left } = await recoverRepositoryClones({ ...context, store, clock: () => (now += 6_000) })
      expect(settled).toHaveLength(1)
      expect(said(left)).toEqual([
        'left alone: clone app.git: disk full',
        expect.stringMatching(/^left alone: clone app\.git: .*cat-file --batch/),
      ])
      expect([existsSync(half), existsSync(other)]).toEqual([true, false])
    } finally {
      git.kill()
      await once(git, 'exit')
    }
  })

  test.each(['clone.intent', 'clone.whole', 'clone.renamed'])('a fault at %s leaves nothing broken', async (name) => {
    const boom = new Error('boom')
    let armed = true
    await using world = await makeWorld({
      context: {
        failpoint: async (at) => {
          if (armed && at === name) throw boom
        },
      },
    })
    const url = `file://${world.repo.path}`
    await expect(addCodebase(world.context, url, '/', { name: 'mine' })).rejects.toBe(boom)
    armed = false
    const { codebase } = await addCodebase(world.context, url, '/', { name: 'mine' })
    expect(codebase.repoPath).toBe(join(world.context.home, 'repos/mine.git'))
    expect(readdirSync(join(world.context.home, 'repos'))).toEqual(['mine.git'])
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  })
})

describe('names', () => {
  test.each([
    ['https://github.com/ada/project.git', 'ada/project'],
    ['https://github.com/ada/project/', 'ada/project'],
    ['git@github.com:ada/project.git', 'ada/project'],
    ['ssh://git@github.com:22/ada/project', 'ada/project'],
    ['ssh://git@ssh.github.com:443/ada/project.git', 'ada/project'],
    ['https://gitlab.com/ada/project', undefined],
    ['https://github.com.evil.org/ada/project', undefined],
    ['https://evil.org/github.com/ada/project', undefined],
    ['/srv/github.com/ada/project', undefined],
    [undefined, undefined],
  ])('GitHub: %s', (url, expected) => {
    expect(githubOf(url)).toBe(expected)
  })

  test.each([
    ['project.git', 'project'],
    ['my project', 'my-project'],
    ['.dotfiles', 'dotfiles'],
    ['日本', 'repository'],
  ])('%s is called %s', (called, expected) => {
    expect(plainName(called)).toBe(expected)
  })

  test('the same place gives the same id', () => {
    expect(codebaseId('a', '/x')).toBe(codebaseId('a', '/x'))
    expect(codebaseId('a', '/x')).not.toBe(codebaseId('b', '/x'))
  })
})
