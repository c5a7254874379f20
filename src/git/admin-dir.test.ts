import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { turnsDuring } from '../../test/helpers/heartbeat.ts'
import { makeSandbox, type Sandbox, writeIn } from '../../test/helpers/repo.ts'
import {
  branchCheckedOut,
  clearLock,
  halfDone,
  mainHead,
  readAdminDirs,
  readLock,
  readToken,
  readWorktreeLink,
  setLock,
  worktreePaths,
  writeToken,
} from './admin-dir.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())

describe("git's records of worktrees", () => {
  it('are read as git wrote them', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w1', '-b', 'feature/x')
    const detached = repo.worktree('w2', '--detach')
    repo.git('worktree', 'lock', '--reason', 'on a USB stick', detached.path)
    expect(await readAdminDirs(repo.commonDir)).toEqual([
      {
        name: 'w1',
        dir: tree.gitDir,
        worktreePath: tree.path,
        head: { branch: 'feature/x' },
        lockReason: undefined,
        busyBranches: [],
      },
      {
        name: 'w2',
        dir: detached.gitDir,
        worktreePath: detached.path,
        head: { sha: repo.sha() },
        lockReason: 'on a USB stick',
        busyBranches: [],
      },
    ])
    expect(await mainHead(repo.commonDir)).toEqual({ branch: 'main' })
  })

  it('are an empty list in a repository that never had one', async () => {
    expect(await readAdminDirs(box.repo().commonDir)).toEqual([])
  })

  it('are kept when half of them is missing, as after a crash', async () => {
    const repo = box.repo()
    mkdirSync(join(repo.commonDir, 'worktrees', 'half'), { recursive: true })
    writeFileSync(join(repo.commonDir, 'worktrees', 'half', 'locked'), 'initializing\n')
    expect(await readAdminDirs(repo.commonDir)).toEqual([
      expect.objectContaining({ name: 'half', worktreePath: undefined, head: undefined, lockReason: 'initializing' }),
    ])
  })

  it('cannot be told when they cannot be read, which is not the same as none', async () => {
    const repo = box.repo()
    // A file that is its own parent: ELOOP for root, too, where permissions do not count.
    rmSync(join(repo.commonDir, 'worktrees'), { recursive: true, force: true })
    symlinkSync('worktrees', join(repo.commonDir, 'worktrees'))
    await expect(readAdminDirs(repo.commonDir)).rejects.toThrow(/ELOOP/)
  })

  it('are read with turns for everything else in between, and refused when there are too many', async () => {
    const worktrees = box.path('many/worktrees')
    mkdirSync(worktrees, { recursive: true })
    for (let i = 0; i < 2_000; i += 1) mkdirSync(join(worktrees, `${i}`))
    expect(await turnsDuring(() => readAdminDirs(box.path('many')))).toBeGreaterThan(0)
    for (let i = 2_000; i < 5_001; i += 1) writeFileSync(join(worktrees, `${i}`), '')
    const refused = { code: 'unusable-file', message: `${worktrees} has more than 5000 entries` }
    await expect(readAdminDirs(box.path('many'))).rejects.toMatchObject(refused)
    await expect(worktreePaths(box.path('many'))).rejects.toMatchObject(refused)
    await expect(branchCheckedOut(box.path('many'), 'main')).rejects.toMatchObject(refused)
  })

  it('are found from the worktree, and only from a linked one', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'w')
    expect(await readWorktreeLink(tree.path)).toBe(tree.gitDir)
    expect(await readWorktreeLink(repo.path)).toBeUndefined()
    expect(await readWorktreeLink(box.path('nowhere'))).toBeUndefined()
    rmSync(tree.gitDir, { recursive: true })
    expect(await readWorktreeLink(tree.path)).toBeUndefined()
    writeFileSync(join(tree.path, '.git'), `gitdir: ${'\n'.repeat(100_000)}x`)
    await expect(readWorktreeLink(tree.path)).rejects.toMatchObject({ code: 'unusable-file' })
  })
})

describe('a branch is taken', () => {
  it('by the main checkout, a worktree, or nobody', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'x')
    repo.git('branch', 'free')
    expect(await branchCheckedOut(repo.commonDir, 'main')).toBe(repo.path)
    expect(await branchCheckedOut(repo.commonDir, 'x')).toBe(tree.path)
    expect(await branchCheckedOut(repo.commonDir, 'free')).toBeUndefined()
  })

  it('by a worktree that is in the middle of rebasing it', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'x')
    writeIn(tree.path, 'README', 'theirs\n')
    box.raw(tree.path, 'commit', '-qam', 'theirs')
    repo.commit('README', 'ours\n')
    expect(() => box.raw(tree.path, 'rebase', 'main')).toThrow(/CONFLICT|could not apply/)
    expect(await branchCheckedOut(repo.commonDir, 'x')).toBe(tree.path)
    expect(halfDone(tree.gitDir)).toEqual(['rebase'])
  })

  it('by a worktree that is bisecting it', async () => {
    const repo = box.repo()
    repo.commit('a', '1')
    const tree = repo.worktree('w', '-b', 'x')
    box.raw(tree.path, 'bisect', 'start', 'HEAD', 'HEAD~1')
    expect(await branchCheckedOut(repo.commonDir, 'x')).toBe(tree.path)
    expect(halfDone(tree.gitDir)).toEqual(['bisect'])
  })

  it('never by a bare repository, whose HEAD names a branch nobody has', async () => {
    const bare = box.bare()
    expect(await branchCheckedOut(bare.commonDir, 'main')).toBeUndefined()
  })
})

describe('half done', () => {
  const conflict = (): { path: string; gitDir: string; repo: ReturnType<Sandbox['repo']> } => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'x')
    writeIn(tree.path, 'README', 'theirs\n')
    box.raw(tree.path, 'commit', '-qam', 'theirs')
    repo.commit('README', 'ours\n')
    return { ...tree, repo }
  }

  it('is nothing in a quiet tree', () => {
    expect(halfDone(box.repo().worktree('w', '-b', 'x').gitDir)).toEqual([])
  })

  it.each([
    ['merge', ['merge', 'main']],
    ['cherry-pick', ['cherry-pick', 'main']],
  ] as const)('is a %s that stopped at a conflict', (name, command) => {
    const tree = conflict()
    expect(() => box.raw(tree.path, ...command)).toThrow(/Command failed/)
    expect(halfDone(tree.gitDir)).toEqual([name])
  })

  it('is a revert that stopped at a conflict', () => {
    const { path, gitDir } = conflict()
    writeIn(path, 'README', 'later\n')
    box.raw(path, 'commit', '-qam', 'later')
    expect(() => box.raw(path, 'revert', '--no-edit', 'HEAD~1')).toThrow(/could not revert/)
    expect(halfDone(gitDir)).toEqual(['revert'])
  })

  it('is an am that stopped at a patch that does not apply', () => {
    const { path, gitDir, repo } = conflict()
    writeFileSync(box.path('mail'), repo.git('format-patch', '-1', '--stdout'))
    expect(() => box.raw(path, 'am', box.path('mail'))).toThrow(/patch/i)
    expect(halfDone(gitDir)).toEqual(['am'])
  })

  it('is a cherry-pick of several commits between two of them', () => {
    const { path, gitDir, repo } = conflict()
    repo.commit('other', 'x')
    expect(() => box.raw(path, 'cherry-pick', 'main~1', 'main')).toThrow(/could not apply/)
    box.raw(path, 'checkout', '-q', '--ours', 'README')
    box.raw(path, 'add', 'README')
    rmSync(join(gitDir, 'CHERRY_PICK_HEAD'))
    expect(halfDone(gitDir)).toEqual(['cherry-pick'])
  })
})

describe('token and lock', () => {
  it('gives back the token that was written, and undefined without one', async () => {
    const { gitDir } = box.repo().worktree('w', '-b', 'w')
    expect(await readToken(gitDir)).toBeUndefined()
    await writeToken(gitDir, 'env-1')
    await writeToken(gitDir, 'env-2')
    expect(await readToken(gitDir)).toBe('env-2')
  })

  it('locks as git does, and git respects it', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'w')
    expect(await setLock(tree.gitDir, 'coppice: in use')).toBe(true)
    expect(repo.git('worktree', 'list', '--porcelain')).toContain('locked coppice: in use')
    expect(() => repo.git('worktree', 'remove', tree.path)).toThrow(/locked/)
    expect(await clearLock(tree.gitDir, 'coppice: in use')).toBe(true)
    repo.git('worktree', 'remove', tree.path)
  })

  it("never replaces nor clears somebody else's lock", async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'w')
    repo.git('worktree', 'lock', '--reason', 'mine', tree.path)
    expect(await setLock(tree.gitDir, 'coppice')).toBe(false)
    expect(await clearLock(tree.gitDir, 'coppice')).toBe(false)
    expect(await readLock(tree.gitDir)).toBe('mine')
    expect(readFileSync(join(tree.gitDir, 'locked'), 'utf8')).toBe('mine\n')
    expect(existsSync(join(tree.gitDir, `locked.${process.pid}.tmp`))).toBe(false)
  })
})
