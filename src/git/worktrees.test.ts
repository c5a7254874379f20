import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeSandbox, type Sandbox } from '../../test/helpers/repo.ts'
import { toBranchName } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { readAdminDir, readAdminDirs, setLock } from './admin-dir.ts'
import { checkOutHead } from './checkout.ts'
import { discoverRepository } from './discover.ts'
import type { GitRequest, GitResult } from './request.ts'
import { type AddWorktree, addWorktree } from './worktree-add.ts'
import { removeWorktreeRecord } from './worktree-remove.ts'
import { moveWorktree } from './worktree-move.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())
const branch = toBranchName

describe('adding a worktree', () => {
  it('makes a new branch at the commit, without tracking, locked with our reason', async () => {
    const repo = box.repo()
    const at = repo.sha()
    repo.commit('later', 'x')
    const identities: ProcessIdentity[] = []
    const git = box.git()
    const requests: GitRequest[] = []
    const run = (request: GitRequest): Promise<GitResult> => git.run((requests.push(request), request))
    const add: AddWorktree = {
      path: box.path('trees', 'deep', 'w'),
      branch: { create: branch('issue-42') },
      at,
      lockReason: 'coppice: making env-1',
      onSpawn: (identity) => identities.push(identity),
    }
    const tree = await addWorktree({ ...git, run }, repo, add)
    // On SIGTERM git would delete the directory with everything in it, and so it would after a message to nobody.
    expect(requests).toEqual([expect.objectContaining({ killAtOnce: true, args: expect.arrayContaining(['--quiet']) })])
    expect(readdirSync(tree.path)).toEqual(['.git'])
    await checkOutHead(box.git(), tree)
    expect(box.raw(tree.path, 'rev-parse', 'HEAD')).toBe(at)
    expect(box.raw(tree.path, 'status', '--porcelain')).toBe('')
    expect(existsSync(join(tree.path, 'later'))).toBe(false)
    expect(readFileSync(join(tree.gitDir, 'locked'), 'utf8').trim()).toBe('coppice: making env-1')
    expect(repo.git('for-each-ref', '--format=%(upstream)', 'refs/heads/issue-42')).toBe('')
    expect(identities).toHaveLength(1)
    expect(repo.git('reflog', 'issue-42')).toMatch(/Created from/)
  })

  it('takes an existing branch as it is', async () => {
    const repo = box.repo()
    const first = repo.sha()
    repo.git('checkout', '-q', '-b', 'mine')
    const tip = repo.commit('x', 'y')
    repo.git('checkout', '-q', 'main')
    // A tag of the same name must not be taken for the branch.
    repo.git('tag', 'mine', first)
    const add = { path: box.path('w'), branch: { existing: branch('mine') }, at: first, lockReason: 'r' }
    const tree = await addWorktree(box.git(), repo, add)
    expect(box.raw(tree.path, 'rev-parse', 'HEAD')).toBe(tip)
    expect(box.raw(tree.path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/mine')
  })

  it('can be detached', async () => {
    const repo = box.repo()
    const add = { path: box.path('w'), branch: { detached: true }, at: repo.sha(), lockReason: 'r' } as const
    const tree = await addWorktree(box.git(), repo, add)
    expect(await readAdminDir(tree.gitDir)).toMatchObject({ head: { sha: repo.sha() } })
  })

  it('says which of its wishes is taken: the branch or the path', async () => {
    const repo = box.repo()
    const git = box.git()
    const add = (path: string, name: string) =>
      addWorktree(git, repo, { path, branch: { existing: branch(name) }, at: repo.sha(), lockReason: 'r' })
    await expect(add(box.path('w'), 'main')).rejects.toMatchObject({ code: 'branch-in-use' })
    repo.git('branch', 'x')
    mkdirSync(box.path('full'))
    writeFileSync(box.path('full', 'mine'), '')
    await expect(add(box.path('full'), 'x')).rejects.toMatchObject({ code: 'path-taken' })
    expect(existsSync(box.path('full', 'mine'))).toBe(true)
  })

  it('sets no flag that hides edits, whatever core.ignoreStat says', async () => {
    const repo = box.repo()
    repo.git('config', 'core.ignoreStat', 'true')
    const add = { path: box.path('w'), branch: { create: branch('x') }, at: repo.sha(), lockReason: 'r' }
    const tree = await addWorktree(box.git(), repo, add)
    await checkOutHead(box.git(), tree)
    expect(box.raw(tree.path, 'ls-files', '-v')).toBe('H README')
  })

  it('works in a bare repository', async () => {
    const repo = box.repo()
    const bare = box.bare()
    repo.git('push', '-q', bare.path, 'main')
    const add = { path: box.path('w'), branch: { create: branch('x') }, at: repo.sha(), lockReason: 'r' }
    const tree = await addWorktree(box.git(), bare, add)
    await checkOutHead(box.git(), tree)
    expect(box.raw(tree.path, 'status', '--porcelain')).toBe('')
  })
})

describe('moving a worktree', () => {
  it.each(['absolute', 'relative'])(
    'with an %s link moves directory and record, also under our own lock',
    async (kind) => {
      const repo = box.repo()
      const tree = repo.worktree('w', '-b', 'x')
      await setLock(tree.gitDir, 'coppice')
      if (kind === 'relative') writeFileSync(join(tree.path, '.git'), `gitdir: ${relative(tree.path, tree.gitDir)}\n`)
      mkdirSync(box.path('deep/er'), { recursive: true })
      const moved = await moveWorktree(tree, box.path('deep/er/new'), async () => undefined)
      expect(box.raw(moved.path, 'status', '--porcelain')).toBe('')
      const record = { worktreePath: box.path('deep/er/new'), lockReason: 'coppice' }
      expect(await readAdminDir(tree.gitDir)).toMatchObject(record)
    },
  )

  it('puts the directory back when the record cannot be changed', async () => {
    const tree = box.repo().worktree('w', '-b', 'x')
    const full = async (): Promise<never> => {
      throw new Error('full')
    }
    await expect(moveWorktree(tree, box.path('new'), full)).rejects.toThrow('full')
    expect(box.raw(tree.path, 'status', '--porcelain')).toBe('')
  })
})

describe('forgetting a worktree', () => {
  it('deletes the record of a directory that is gone, and no other record', async () => {
    const repo = box.repo()
    const gone = repo.worktree('gone', '-b', 'a')
    const unmounted = repo.worktree('unmounted', '-b', 'b')
    renameSync(gone.path, box.path('trash'))
    renameSync(unmounted.path, box.path('elsewhere'))
    await removeWorktreeRecord(box.git(), repo, { dir: gone.gitDir })
    expect((await readAdminDirs(repo.commonDir)).map(({ name }) => name)).toEqual(['unmounted'])
    expect(repo.git('branch', '--list', 'a')).toContain('a')
  })

  it('touches nothing while the directory is there', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'a')
    writeFileSync(join(tree.path, 'work'), 'precious')
    await expect(removeWorktreeRecord(box.git(), repo, { dir: tree.gitDir })).rejects.toMatchObject({
      code: 'path-taken',
    })
    expect(readFileSync(join(tree.path, 'work'), 'utf8')).toBe('precious')
    expect(await readAdminDir(tree.gitDir)).toBeDefined()
  })

  it('leaves a locked record', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'a')
    repo.git('worktree', 'lock', tree.path)
    rmSync(tree.path, { recursive: true })
    await expect(removeWorktreeRecord(box.git(), repo, { dir: tree.gitDir })).rejects.toThrow(/locked/)
    expect(await readAdminDir(tree.gitDir)).toBeDefined()
  })

  it('is done already when there is no record', async () => {
    const repo = box.repo()
    const git = box.git()
    await removeWorktreeRecord(git, repo, { dir: join(repo.commonDir, 'worktrees', 'none') })
    expect(git.spawned()).toBe(0)
  })
})

describe('discovering a repository', () => {
  it('finds it from a directory inside the checkout', async () => {
    const repo = box.repo()
    mkdirSync(join(repo.path, 'a', 'b'), { recursive: true })
    expect(await discoverRepository(box.git(), join(repo.path, 'a', 'b'))).toEqual({
      commonDir: repo.commonDir,
      checkoutPath: repo.path,
      linkedWorktree: undefined,
    })
  })

  it('finds the canonical repository from a linked worktree', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'w')
    mkdirSync(join(tree.path, 'sub'))
    expect(await discoverRepository(box.git(), join(tree.path, 'sub'))).toEqual({
      commonDir: repo.commonDir,
      checkoutPath: repo.path,
      linkedWorktree: tree.path,
    })
  })

  it('knows a bare repository', async () => {
    const bare = box.bare()
    const found = { commonDir: bare.commonDir, checkoutPath: undefined, linkedWorktree: undefined }
    expect(await discoverRepository(box.git(), bare.path)).toEqual(found)
  })

  it('says that a directory is in no repository, or not there, or not a directory', async () => {
    mkdirSync(box.path('plain'))
    writeFileSync(box.path('file'), '')
    for (const name of ['plain', 'nowhere', 'file']) {
      await expect(discoverRepository(box.git(), box.path(name))).rejects.toMatchObject({ code: 'not-a-repository' })
    }
  })

  it.runIf(process.getuid?.() === 0)("says that a repository is another user's", async () => {
    const repo = box.repo()
    chownSync(repo.path, 12_345, 12_345)
    chownSync(repo.commonDir, 12_345, 12_345)
    await expect(discoverRepository(box.git(), repo.path)).rejects.toThrow(/belongs to another user/)
  })
})
