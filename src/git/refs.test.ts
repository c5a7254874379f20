import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeSandbox, type Sandbox } from '../../test/helpers/repo.ts'
import { toBranchName, toSha } from '../domain/names.ts'
import { isAbsentRef } from './ref-file.ts'
import { listRefs, readSymbolicRef, resolveCommit, setHeadBranch, updateRefs } from './refs.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())
const nowhere = toSha('1'.repeat(40))

describe('listing refs', () => {
  it('tells names, commits and dates in one process', async () => {
    const repo = box.repo()
    repo.git('branch', 'a/b')
    const git = box.git()
    const refs = await listRefs(git, repo, ['refs/heads'])
    const committerDate = Number(repo.git('log', '-1', '--format=%ct')) * 1000
    expect(refs).toEqual([
      { name: 'refs/heads/a/b', sha: repo.sha(), committerDate },
      { name: 'refs/heads/main', sha: repo.sha(), committerDate },
    ])
    expect(git.spawned()).toBe(2)
  })

  it('tells none where there are none', async () => {
    expect(await listRefs(box.git(), box.repo(), ['refs/coppice'])).toEqual([])
  })
})

describe('an absent ref', () => {
  it('is proven by the files of git alone, and never in place of one that is there', async () => {
    const repo = box.repo()
    for (const branch of ['loose', 'packed', 'folder/inner']) repo.git('branch', branch)
    repo.git('pack-refs', '--all')
    repo.git('branch', 'later')
    repo.git('symbolic-ref', 'refs/heads/link', 'refs/heads/packed')
    const isAbsent = (name: string) => isAbsentRef(repo.commonDir, `refs/heads/${name}`)
    for (const there of ['loose', 'packed', 'folder/inner', 'later', 'link', 'main']) {
      expect([there, await isAbsent(there)]).toEqual([there, false])
    }
    // The end of another name isn't this one.
    for (const absent of ['none', 'acked', 'inner']) expect([absent, await isAbsent(absent)]).toEqual([absent, true])
    // Empty, or the start of other names: only git can say.
    mkdirSync(join(repo.commonDir, 'refs', 'heads', 'empty'))
    expect(await isAbsent('empty')).toBe(false)
    // Another way of storing refs, or a file that can't be read.
    rmSync(join(repo.commonDir, 'packed-refs'))
    mkdirSync(join(repo.commonDir, 'packed-refs'))
    expect(await isAbsent('none')).toBe(false)
    rmSync(join(repo.commonDir, 'packed-refs'), { recursive: true })
    expect(await isAbsent('none')).toBe(true)
    mkdirSync(join(repo.commonDir, 'reftable'))
    expect(await isAbsent('none')).toBe(false)
  })
})

describe('updating refs', () => {
  it('creates, moves and deletes in one transaction, with a reflog', async () => {
    const repo = box.repo()
    const first = repo.sha()
    const second = repo.commit('x', 'y')
    repo.git('branch', 'old')
    repo.git('branch', 'moving', first)
    const commands = [
      { create: 'refs/coppice/keep', to: first },
      { update: 'refs/heads/moving', to: second, from: first },
      { delete: 'refs/heads/old', from: second },
    ]
    expect(await updateRefs(box.git(), repo, commands, { reason: 'coppice: test', durable: true })).toEqual({
      ok: true,
    })
    expect(repo.git('for-each-ref', '--format=%(refname) %(objectname)').split('\n')).toEqual([
      `refs/coppice/keep ${first}`,
      `refs/heads/main ${second}`,
      `refs/heads/moving ${second}`,
    ])
    expect(repo.git('reflog', 'moving')).toContain('coppice: test')
  })

  it('changes nothing at all when one ref is not where it was expected', async () => {
    const repo = box.repo()
    const first = repo.sha()
    const second = repo.commit('x', 'y')
    const before = repo.git('for-each-ref')
    const git = box.git()
    const wrong = [
      [
        { create: 'refs/heads/new', to: first },
        { delete: 'refs/heads/main', from: first },
      ],
      [
        { create: 'refs/heads/new', to: first },
        { create: 'refs/heads/main', to: first },
      ],
      [
        { create: 'refs/heads/new', to: first },
        { update: 'refs/heads/none', to: first, from: second },
      ],
      [{ create: 'refs/heads/main/below', to: first }],
    ]
    for (const commands of wrong) {
      expect(await updateRefs(git, repo, commands, { reason: 'r' })).toMatchObject({ ok: false })
      expect(repo.git('for-each-ref')).toBe(before)
    }
  })

  it('does not take a lock left by another git for a ref that has moved', async () => {
    const repo = box.repo()
    writeFileSync(join(repo.commonDir, 'refs/heads/main.lock'), '')
    const update = updateRefs(box.git(), repo, [{ delete: 'refs/heads/main', from: repo.sha() }], { reason: 'r' })
    await expect(update).rejects.toMatchObject({ code: 'busy' })
  })

  it('fails loudly when the new value does not exist', async () => {
    const repo = box.repo()
    const update = updateRefs(box.git(), repo, [{ create: 'refs/heads/x', to: nowhere }], { reason: 'r' })
    await expect(update).rejects.toMatchObject({ code: 'git-failed' })
  })
})

describe('resolving', () => {
  it('finds the commit behind a name, and nothing behind an option or nonsense', async () => {
    const repo = box.repo()
    repo.git('tag', '-a', '-m', 'x', 'v1')
    const git = box.git()
    expect(await resolveCommit(git, repo, 'v1')).toBe(repo.sha())
    expect(await resolveCommit(git, repo, 'main')).toBe(repo.sha())
    for (const rev of ['nothing', '--all', '', 'main:README', nowhere]) {
      expect(await resolveCommit(git, repo, rev)).toBeUndefined()
    }
  })
})

describe("a worktree's HEAD", () => {
  it('is put on a branch without touching the files', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '--detach')
    repo.git('branch', 'x')
    const git = box.git()
    expect(await readSymbolicRef(git, tree, 'HEAD')).toBeUndefined()
    await setHeadBranch(git, tree, toBranchName('x'))
    expect(await readSymbolicRef(git, tree, 'HEAD')).toBe('refs/heads/x')
    expect(box.raw(tree.path, 'status', '--porcelain', '--branch')).toBe('## x')
    expect(repo.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  })
})
