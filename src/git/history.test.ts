import { array, assert, asyncProperty, nat } from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeSandbox, type Sandbox, type TestRepo } from '../../test/helpers/repo.ts'
import { type Sha, toSha } from '../domain/names.ts'
import type { AheadBehind } from './ahead-behind.ts'
import { forkPoints } from './reachable.ts'
import { commitsChanging, commitsMentioning, countAheadBehind, isAncestor } from './history.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())

/** A commit with these parents and an empty difference. */
const commit = (repo: TestRepo, parents: readonly Sha[], message = 'x'): Sha =>
  toSha(repo.git('commit-tree', ...parents.flatMap((p) => ['-p', p]), '-m', message, 'HEAD^{tree}'))

/** Says whether the common ancestors were known too. */
const expectAsGit = async (found: AheadBehind | undefined, repo: TestRepo, base: Sha, tip: Sha): Promise<boolean> => {
  const [behind, ahead] = repo.git('rev-list', '--left-right', '--count', `${base}...${tip}`).split('\t').map(Number)
  expect(found).toMatchObject({ ahead, behind })
  if (found?.forks === undefined) return false
  expect(found.forks).toEqual(await forkPoints(box.git(), repo, base, tip))
  return true
}

describe('ahead and behind', () => {
  it('are counted for many tips in a constant number of processes', async () => {
    const repo = box.repo()
    const root = repo.sha()
    const base = commit(repo, [commit(repo, [root], 'b1')], 'b2')
    const tips = Array.from({ length: 40 }, (_, i) => commit(repo, [i % 2 === 0 ? root : base], `tip ${i}`))
    const git = box.git({ now: () => 0 })
    await git.config(repo)
    const before = git.spawned()
    const found = await countAheadBehind(git, repo, base, [...tips, base, root])
    expect(git.spawned() - before).toBe(2)
    expect(found.get(tips[0]!)).toEqual({ ahead: 1, behind: 2, forks: [root] })
    expect(found.get(tips[1]!)).toEqual({ ahead: 1, behind: 0, forks: [base] })
    expect(found.get(base)).toEqual({ ahead: 0, behind: 0, forks: [base] })
    expect(found.get(root)).toEqual({ ahead: 0, behind: 2, forks: [root] })
  })

  it('are right for criss-cross merges', async () => {
    const repo = box.repo()
    const root = repo.sha()
    const a1 = commit(repo, [root], 'a1')
    const b1 = commit(repo, [root], 'b1')
    const a2 = commit(repo, [a1, b1], 'a2')
    const b2 = commit(repo, [b1, a1], 'b2')
    const tips = [commit(repo, [a2], 'a3'), b2, a1]
    const found = await countAheadBehind(box.git(), repo, a2, tips)
    for (const tip of tips) await expectAsGit(found.get(tip), repo, a2, tip)
  })

  it('are right for unrelated histories', async () => {
    const repo = box.repo()
    const other = commit(repo, [commit(repo, [], 'another root')], 'y')
    const tips = [other, commit(repo, [repo.sha(), other], 'joined')]
    const found = await countAheadBehind(box.git(), repo, repo.sha(), tips)
    for (const tip of tips) await expectAsGit(found.get(tip), repo, repo.sha(), tip)
  })

  it('are asked one by one where history is too long to hold', async () => {
    const repo = box.repo()
    const root = repo.sha()
    const tips = [commit(repo, [commit(repo, [root], 'p')], 'q'), commit(repo, [root], 'r')]
    const found = await countAheadBehind(box.git(), repo, root, tips, { limit: 2 })
    for (const tip of tips) await expectAsGit(found.get(tip), repo, root, tip)
  })

  it("agree with git's own count on random histories", async () => {
    const repo = box.repo()
    const git = box.git()
    const shape = array(array(nat(), { maxLength: 2 }), { minLength: 2, maxLength: 12 })
    let forksKnown = 0
    await assert(
      asyncProperty(shape, async (parentsOf) => {
        const commits: Sha[] = []
        for (const [i, wanted] of parentsOf.entries()) {
          const parents = i === 0 ? [] : [...new Set(wanted.map((n) => commits[n % i]!))]
          commits.push(commit(repo, parents, `${i} ${JSON.stringify(parentsOf)}`))
        }
        const base = commits[commits.length >> 1]!
        const found = await countAheadBehind(git, repo, base, commits)
        for (const tip of commits) if (await expectAsGit(found.get(tip), repo, base, tip)) forksKnown += 1
      }),
      { numRuns: 12 },
    )
    expect(forksKnown).toBeGreaterThan(12)
  })
})

describe('relations of commits', () => {
  it('knows ancestors', async () => {
    const repo = box.repo()
    const root = repo.sha()
    const a = commit(repo, [root], 'a')
    const git = box.git()
    expect(await isAncestor(git, repo, root, a)).toBe(true)
    expect(await isAncestor(git, repo, a, a)).toBe(true)
    expect(await isAncestor(git, repo, a, root)).toBe(false)
  })

  it('cannot tell about a commit that is not there', async () => {
    const repo = box.repo()
    const nowhere = toSha('1'.repeat(40))
    await expect(isAncestor(box.git(), repo, nowhere, repo.sha())).rejects.toMatchObject({ code: 'git-failed' })
  })

  it('finds the branches whose own commits mention a number, and not a longer one', async () => {
    const repo = box.repo()
    const base = commit(repo, [repo.sha()], 'old news of #42')
    repo.git('branch', 'a', commit(repo, [base], 'fix #42: it was the cache'))
    repo.git('branch', 'b', commit(repo, [base], 'fix #421'))
    repo.git('branch', 'c', commit(repo, [base], 'closes #42'))
    const found = await commitsMentioning(box.git(), repo, ['a', 'b', 'c'], '#42', { except: [base] })
    expect(found.sort()).toEqual(['a', 'c'])
    expect(await commitsMentioning(box.git(), repo, [], '#42')).toEqual([])
  })

  it('finds the branches whose own commits change a file, by its name or path', async () => {
    const repo = box.repo()
    repo.commit('src/login.ts', 'old\n')
    const base = repo.sha()
    for (const [branch, file] of [
      ['a', 'src/login.ts'],
      ['b', 'lib/deep/login.ts'],
      ['c', 'src/relogin.ts'],
      ['d', 'login.ts'],
    ] as const) {
      repo.git('checkout', '-q', '-b', branch, base)
      repo.commit(file, `${branch}\n`)
    }
    const on = async (...files: string[]) =>
      (await commitsChanging(box.git(), repo, ['a', 'b', 'c', 'd'], files, { except: [base] })).sort()
    expect(await on('login.ts')).toEqual(['a', 'b', 'd'])
    expect(await on('src/login.ts')).toEqual(['a'])
    expect(await on('*login.ts', 'LOGIN.ts')).toEqual([])
    expect(await on()).toEqual([])
  })
})
