import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Dressed, makeDressed } from '../../../test/helpers/provisioned.ts'
import type { TestRepo } from '../../../test/helpers/repo.ts'
import type { Codebase } from '../../domain/environment.ts'
import { findBase, freshen } from './base.ts'
import type { Base } from './base-branch.ts'
import { baseAndConfig } from './base-and-config.ts'
import { freshBase } from './fresh-base.ts'
import { locked } from '../lock/locked.ts'

let lab: Dressed
let repo: TestRepo
beforeEach(async () => {
  lab = await makeDressed()
  repo = lab.repo
})
afterEach(() => lab[Symbol.asyncDispose]())

/** A bare remote that has what the repository has, under the given default branch. */
const addRemote = async (name = 'origin', branch = 'main'): Promise<{ codebase: Codebase; remote: TestRepo }> => {
  const remote = lab.box.bare(`${name}.git`)
  repo.git('remote', 'add', name, remote.path)
  repo.git('push', '-q', name, `main:refs/heads/${branch}`)
  remote.git('symbolic-ref', 'HEAD', `refs/heads/${branch}`)
  repo.git('fetch', '-q', name)
  const codebase = { ...lab.codebase, remote: name, baseBranch: undefined }
  await lab.context.store.codebases.update(codebase.id, { remote: name })
  return { codebase, remote }
}

/** Somebody else pushes a commit to the remote. */
const pushElsewhere = (remote: TestRepo, branch = 'main'): string => {
  const clone = lab.box.path(`clone-${Math.random()}`)
  lab.box.raw(lab.box.root, 'clone', '-q', remote.path, clone)
  lab.box.raw(clone, 'commit', '-q', '--allow-empty', '-m', 'from elsewhere')
  lab.box.raw(clone, 'push', '-q', 'origin', `HEAD:${branch}`)
  return lab.box.raw(clone, 'rev-parse', 'HEAD')
}

const find = (codebase: Codebase, named?: string): Promise<Base> => findBase(lab.context, codebase, named)

describe('findBase', () => {
  describe('without a remote', () => {
    /** As after registration: nothing is remembered and nobody works in it. */
    const untouched = async (): Promise<void> => {
      await lab.context.store.environments.transition(lab.environment.id, 'active', 'released')
      await remember(undefined)
    }
    const remember = (baseBranch: string | undefined): Promise<void> =>
      lab.context.store.codebases.update(lab.codebase.id, { baseBranch })
    const remembered = async (): Promise<string | undefined> =>
      (await lab.context.store.codebases.get(lab.codebase.id))?.baseBranch
    const started = (branch: string, baseBranch: string): Promise<unknown> =>
      lab.another(branch, 'active', { baseBranch, owned: true })
    const codebase = (): Codebase => ({ ...lab.codebase, baseBranch: undefined })

    it.each([
      ['trunk', 'trunk'],
      ['develop', 'develop'],
      ['release/2', 'release/2'],
    ])(
      'is the checked-out branch %s when there is no better sign, and stays it whatever is checked out later',
      async (name, expected) => {
        await untouched()
        repo.git('branch', '-m', 'main', name)
        expect(await find(codebase())).toEqual({
          name: expected,
          ref: `refs/heads/${expected}`,
          sha: repo.sha(name),
          branch: expected,
        })
        expect(await remembered()).toBe(expected)
        repo.git('checkout', '-q', '-b', 'review')
        repo.commit('reviewed', 'x\n')
        expect(await find(codebase())).toMatchObject({ name: expected })
        repo.git('checkout', '-q', '--detach')
        expect(await find(codebase())).toMatchObject({ name: expected })
      },
    )

    it.each(['main', 'master', 'trunk', 'mine'])('is %s rather than whatever is checked out', async (name) => {
      await untouched()
      lab.box.raw(repo.path, 'config', '--global', 'init.defaultBranch', 'mine')
      repo.git('branch', '-m', 'main', name)
      repo.git('checkout', '-q', '-b', 'review')
      expect(await find(codebase())).toMatchObject({ name })
    })

    it("is the user's init.defaultBranch before the usual names, and never the one that the repository sets", async () => {
      await untouched()
      repo.git('branch', 'mine')
      repo.git('branch', 'planted')
      repo.git('config', 'init.defaultBranch', 'planted')
      expect(await find(codebase())).toMatchObject({ name: 'main' })
      await remember(undefined)
      lab.box.raw(repo.path, 'config', '--global', 'init.defaultBranch', 'mine')
      expect(await find(codebase())).toMatchObject({ name: 'mine' })
    })

    it('is what the environments were started from when nothing is remembered, as in a database of an older version', async () => {
      repo.git('branch', 'develop')
      await started('issue-1', 'develop')
      await lab.context.store.environments.transition(lab.environment.id, 'active', 'released')
      await remember(undefined)
      repo.git('checkout', '-q', '-b', 'review', 'issue-1')
      expect(await find(codebase())).toMatchObject({ name: 'develop' })
    })

    it("is never an environment's branch, checked out or well named", async () => {
      await untouched()
      repo.git('branch', '-m', 'main', 'develop')
      await started('main', 'develop')
      expect(await find(codebase())).toMatchObject({ name: 'develop' })
      await remember(undefined)
      repo.git('branch', '-m', 'develop', 'other')
      await expect(find(codebase())).rejects.toMatchObject({ code: 'base-not-found' })
    })

    it('is looked for again when the remembered one is gone, but not in the checkout while work is open', async () => {
      repo.git('branch', '-m', 'main', 'develop')
      repo.git('checkout', '-q', '-b', 'review')
      await lab.context.store.environments.transition(lab.environment.id, 'active', 'released')
      await started('issue-1', 'main')
      await expect(find(codebase())).rejects.toMatchObject({
        code: 'base-not-found',
        remedy: expect.arrayContaining([
          { of: 'shell', command: expect.stringContaining('init.defaultBranch') as string },
        ]) as unknown,
      })
      lab.box.raw(repo.path, 'config', '--global', 'init.defaultBranch', 'develop')
      expect(await find(codebase())).toMatchObject({ name: 'develop' })
    })

    it('is no detached HEAD', async () => {
      await untouched()
      repo.git('branch', '-m', 'main', 'develop')
      repo.git('checkout', '-q', '--detach')
      await expect(find(codebase())).rejects.toMatchObject({ code: 'base-not-found' })
      // Naming one is still possible, and its commit then says how the repository is configured.
      const named = await baseAndConfig(lab.context, codebase(), 'develop')
      expect(named.base).toMatchObject({ name: 'develop' })
    })

    it('is no name in worktree.base that moves with what somebody does in the checkout', async () => {
      repo.git('update-ref', 'ORIG_HEAD', 'HEAD')
      repo.commit('.coppice/config.yaml', 'worktree:\n  base: ORIG_HEAD\n')
      expect(repo.git('rev-parse', 'ORIG_HEAD')).toBe(repo.sha('main~1'))
      await expect(baseAndConfig(lab.context, lab.codebase)).rejects.toMatchObject({ code: 'base-not-found' })
    })
  })

  it("is the remote's HEAD, not the local branch that happens to be checked out", async () => {
    const { codebase } = await addRemote('origin', 'master')
    repo.git('remote', 'set-head', 'origin', 'master')
    repo.git('checkout', '-q', '-b', 'something')
    const before = lab.context.git.spawned()
    expect(await find(codebase)).toMatchObject({
      name: 'origin/master',
      ref: 'refs/remotes/origin/master',
      branch: 'master',
    })
    // The question what git's configuration says, and one for the ref.
    expect(lab.context.git.spawned() - before).toBeLessThanOrEqual(2)
  })

  it('prefers what was fetched to a stale local branch of the same name, named or not', async () => {
    const { codebase } = await addRemote()
    const fetched = repo.sha()
    repo.git('remote', 'set-head', 'origin', 'main')
    repo.commit('local', 'only here\n')
    expect(await find(codebase)).toMatchObject({ name: 'origin/main', sha: fetched })
    expect(await find(codebase, 'main')).toMatchObject({ name: 'origin/main', sha: fetched, branch: 'main' })
    expect(await find(codebase, 'origin/main')).toMatchObject({ name: 'origin/main', sha: fetched, branch: 'main' })
    expect(await find(codebase, 'refs/heads/main')).toMatchObject({ name: 'main', sha: repo.sha(), branch: 'main' })
  })

  it('is the one set for the repository here, which also proves a merge, unless its own configuration names another', async () => {
    const { codebase } = await addRemote()
    repo.git('push', '-q', 'origin', 'main:refs/heads/develop', 'main:refs/heads/release')
    const own = { ...codebase, base: 'develop' }
    const fresh = await freshBase(lab.context, own, { outcome: 'fetched' })
    expect(fresh).toMatchObject({ base: { name: 'origin/develop' }, stale: undefined })
    await expect(baseAndConfig(lab.context, { ...codebase, base: 'gone' })).rejects.toMatchObject({
      code: 'base-not-found',
    })
    repo.commit('.coppice/config.yaml', 'worktree:\n  base: release\n')
    repo.git('push', '-q', 'origin', 'main')
    expect((await baseAndConfig(lab.context, own)).base.name).toBe('origin/release')
  })

  it('asks the remote once when nothing says what its HEAD is, and remembers', async () => {
    const { codebase, remote } = await addRemote('upstream', 'develop')
    expect(await find(codebase)).toMatchObject({ name: 'upstream/develop', branch: 'develop' })
    const remembered = await lab.context.store.codebases.get(codebase.id)
    expect(remembered?.baseBranch).toBe('develop')
    rmSync(remote.path, { recursive: true })
    expect(await find({ ...codebase, baseBranch: 'develop' })).toMatchObject({ name: 'upstream/develop' })
  })

  it('goes on with the local branch when the remote cannot be asked', async () => {
    const { codebase, remote } = await addRemote()
    rmSync(remote.path, { recursive: true })
    expect(await find(codebase)).toMatchObject({ name: 'origin/main', branch: 'main' })
    repo.git('update-ref', '-d', 'refs/remotes/origin/main')
    expect(await find(codebase)).toMatchObject({ name: 'main', ref: 'refs/heads/main' })
  })

  it("does not stop at a note of the remote's HEAD that leads nowhere", async () => {
    const { codebase } = await addRemote('origin', 'main')
    repo.git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/renamed')
    expect(await find(codebase)).toMatchObject({ name: 'origin/main' })
  })

  it('takes a tag or a commit by its name', async () => {
    repo.git('tag', '-a', '-m', 'one', 'v1')
    const sha = repo.sha()
    expect(await find(lab.codebase, 'v1')).toEqual({ name: 'v1', ref: 'refs/tags/v1', sha, branch: undefined })
    expect(await find(lab.codebase, sha)).toEqual({ name: sha.slice(0, 7), ref: sha, sha, branch: undefined })
  })

  it.each(['nothing', '--all', '-h', 'ma*', 'main..', '', 'refs/heads/nothing', '\u{1F333}'])(
    'says so when %j does not exist',
    async (named) => {
      await expect(find(lab.codebase, named)).rejects.toMatchObject({
        code: 'base-not-found',
        message: expect.stringContaining(JSON.stringify(named)) as string,
      })
    },
  )

  it('says so when the repository has no commits', async () => {
    const path = lab.box.path('unborn')
    lab.box.raw(lab.box.root, 'init', '-q', path)
    const codebase = { ...lab.codebase, repoPath: join(path, '.git'), checkoutPath: path }
    await expect(find(codebase)).rejects.toMatchObject({ code: 'no-commits' })
    await expect(find(codebase, 'main')).rejects.toMatchObject({ code: 'no-commits' })
  })
})

describe('freshen', () => {
  const stored = async (): Promise<Codebase> => {
    const codebase = await lab.context.store.codebases.get(lab.codebase.id)
    if (codebase === undefined) throw new Error('gone')
    return codebase
  }

  it('fetches, says so while it runs, and remembers when', async () => {
    const { remote } = await addRemote()
    const pushed = pushElsewhere(remote)
    const before = Date.now()
    expect(await freshen(lab.context, await stored(), { maxAgeMs: 60_000 })).toEqual({ outcome: 'fetched' })
    expect(repo.sha('origin/main')).toBe(pushed)
    expect(lab.progress).toContain('fetching project from origin')
    expect((await stored()).fetchedAt).toBeGreaterThanOrEqual(before)
  })

  it('does not fetch again within the time that is fresh enough, and always does for 0', async () => {
    const { remote } = await addRemote()
    await freshen(lab.context, await stored(), { maxAgeMs: 60_000 })
    const pushed = pushElsewhere(remote)
    expect(await freshen(lab.context, await stored(), { maxAgeMs: 60_000 })).toEqual({ outcome: 'fresh' })
    expect(repo.sha('origin/main')).not.toBe(pushed)
    expect(await freshen(lab.context, await stored(), { maxAgeMs: 0 })).toEqual({ outcome: 'fetched' })
    expect(repo.sha('origin/main')).toBe(pushed)
  })

  it('is one fetch for all who ask at the same time', async () => {
    await addRemote()
    const codebase = await stored()
    const all = await Promise.all(Array.from({ length: 5 }, () => freshen(lab.context, codebase, { maxAgeMs: 60_000 })))
    expect(all.map(({ outcome }) => outcome).sort()).toEqual(['fetched', 'fresh', 'fresh', 'fresh', 'fresh'])
  })

  it('fetches for 0 although somebody fetched before it was asked, not although somebody did after', async () => {
    await addRemote()
    let now = 1000
    const context = { ...lab.context, clock: () => now }
    const codebase = await stored()
    await context.store.codebases.update(codebase.id, { fetchedAt: 1000 })
    expect(await freshen(context, codebase, { maxAgeMs: 0 })).toEqual({ outcome: 'fetched' })
    const held = Promise.withResolvers<undefined>()
    const holding = locked(context, codebase, 'something else', () => held.promise)
    now = 2000
    const waiting = freshen(context, codebase, { maxAgeMs: 0 })
    now = 3000
    await context.store.codebases.update(codebase.id, { fetchedAt: 3000 })
    held.resolve(undefined)
    await holding
    expect(await waiting).toEqual({ outcome: 'fresh' })
  })

  it('takes a time in the future for a clock that was set back, not for a young fetch', async () => {
    await addRemote()
    const context = { ...lab.context, clock: () => 1000 }
    expect(await freshen(context, { ...(await stored()), fetchedAt: 5000 }, { maxAgeMs: 60_000 })).toEqual({
      outcome: 'fetched',
    })
  })

  it('answers when the remote is away, without remembering a fetch, and when there is none', async () => {
    expect(await freshen(lab.context, lab.codebase, { maxAgeMs: 0 })).toEqual({ outcome: 'no-remote' })
    const { remote } = await addRemote()
    renameSync(remote.path, `${remote.path}.away`)
    const away = await freshen(lab.context, await stored(), { maxAgeMs: 0 })
    expect(away).toMatchObject({ outcome: 'offline', detail: expect.stringMatching(/./) as string })
    expect((await stored()).fetchedAt).toBeUndefined()
    repo.git('remote', 'remove', 'origin')
    expect(await freshen(lab.context, await stored(), { maxAgeMs: 0 })).toMatchObject({ outcome: 'offline' })
  })

  it('does not take a call that was called off for an absent remote', async () => {
    await addRemote()
    const signal = AbortSignal.abort()
    const called = freshen(lab.context, await stored(), { maxAgeMs: 0, signal })
    await expect(called).rejects.toMatchObject({ code: 'cancelled' })
  })
})
