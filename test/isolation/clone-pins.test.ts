import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import type { AppError } from '../../src/domain/errors.ts'
import { toRepoPath } from '../../src/domain/names.ts'
import { mergeStatuses } from '../../src/isolation/merge-proof/merge-status.ts'
import { assertFewRefs } from '../../src/isolation/providers/clone/tips.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { remedyIn } from '../helpers/words.ts'
import { inside, issue, refusal, remove, removed } from './scene.ts'

const open = (): Promise<World> => makeWorld({ remote: true, settings: { isolationProvider: 'clone' } })

/** Imports what the clone has. */
const look = (world: World): Promise<unknown> => mergeStatuses(world.context, world.codebase)

const gc = (world: World): void => {
  world.repo.git('reflog', 'expire', '--expire=now', '--all')
  world.repo.git('gc', '-q', '--prune=now')
}

describe.concurrent('a clone', () => {
  test('keeps what it has imported once, whatever its refs lead to later, also after a gc on both sides', async () => {
    await using world = await open()
    const at = inside(world, await issue(world, 1))
    const stash = (content: string): string => {
      at.write('README', content)
      at.git('stash')
      return at.git('rev-parse', 'stash@{0}')
    }
    const older = stash('first')
    await look(world)
    stash('second')
    await look(world)
    const commit = at.commit('mine', 'staged')
    await look(world)
    at.git('reset', '-q', '--soft', 'HEAD~')
    at.write('mine', 'changed')
    await look(world)
    at.git('gc', '-q')
    gc(world)
    expect([older, commit].map((sha) => at.git('cat-file', '-t', sha))).toEqual(['commit', 'commit'])
    expect(at.git('show', ':mine')).toBe('staged')
    expect(at.git('stash', 'show', '-p', 'stash@{1}')).toContain('+first')

    // A broken ref stops the import of all but its branch.
    at.git('commit', '-q', '-m', 'mine again')
    at.git('branch', 'keep')
    await look(world)
    at.git('gc', '-q')
    at.git('reset', '-q', '--hard', 'HEAD~')
    at.commit('other', 'x')
    writeFileSync(join(at.path, '.git/refs/heads/broken'), `${'12'.repeat(20)}\n`)
    await look(world)
    gc(world)
    rmSync(join(at.path, '.git/refs/heads/broken'))
    expect(at.git('show', 'keep:mine')).toBe('staged')
  })

  test('has work of its own in a branch of the user, below what was fetched, and from a remote nobody asks', async () => {
    await using world = await open()
    world.repo.git('switch', '-q', '-c', 'issue-1')
    world.repo.commit('unpushed', 'of the user')
    world.repo.git('switch', '-q', 'main')
    const made = await issue(world, 1)
    const at = inside(world, made)
    at.git('branch', 'keep')
    at.commit('pushed', 'and rewritten')
    at.git('push', '-q', 'origin', 'issue-1')
    at.git('reset', '-q', '--hard', 'origin/main')
    world.repo.git('branch', '-q', '-D', 'issue-1')
    const unrelated = world.repo.git('commit-tree', '-p', 'main', '-m', 'unrelated', 'main^{tree}')
    world.repo.git('push', '-q', 'origin', `${unrelated}:refs/heads/unrelated`)
    const colleague = inside(world, { path: world.box.path('colleague') })
    world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), colleague.path)
    colleague.git('switch', '-q', '-c', 'experiment')
    colleague.commit('experiment', 'x')
    at.git('remote', 'add', 'scratch', colleague.path)
    at.git('fetch', '-q', '--all')
    world.repo.git('push', '-q', 'origin', ':issue-1', ':unrelated')
    world.repo.git('fetch', '-q', '--prune')
    const first = (await refusal(world, made)).join('\n')
    expect(first).toMatch(/refs\/heads\/keep holds[^]*refs\/remotes\/scratch\/experiment holds/)
    // The branch's reflog has what was pushed of it, and the other came with a fetch.
    expect(first).not.toMatch(/refs\/remotes\/origin/)

    at.git('switch', '-q', '-c', 'side')
    at.commit('side', 'its own')
    at.git('push', '-q', 'origin', 'side')
    colleague.git('fetch', '-q', 'origin')
    colleague.git('switch', '-q', 'side')
    colleague.commit('more', 'of a colleague')
    colleague.git('push', '-q', 'origin', 'side')
    at.git('fetch', '-q', 'origin')
    at.git('switch', '-q', 'issue-1')
    at.git('branch', '-q', '-D', 'side')
    world.repo.git('push', '-q', 'origin', ':side')
    expect((await refusal(world, made)).join('\n')).toMatch(/refs\/remotes\/origin\/side holds/)
  })
})

test('a clone is not held by a branch that it fetched, on the base of then', async () => {
  await using world = await open()
  const made = await issue(world, 1)
  const at = inside(world, made)
  const theirs = world.repo.git('commit-tree', '-p', 'main', '-m', 'theirs', 'main^{tree}')
  world.repo.git('push', '-q', 'origin', `${theirs}:refs/heads/theirs`)
  at.git('fetch', '-q')
  world.repo.git('commit', '-q', '--amend', '-m', 'rewritten')
  world.repo.git('push', '-q', '--force', 'origin', 'main', ':theirs')
  at.git('fetch', '-q')
  at.git('reset', '-q', '--hard', 'origin/main')
  await removed(world, made)
})

test('doctor prints no name that somebody else chose', async () => {
  await using world = await open()
  world.repo.git('update-ref', 'refs/coppice/clone/x$(touch${IFS}y)/tip', 'HEAD')
  world.repo.git('update-ref', 'refs/coppice/clone/deleted/tip', 'HEAD')
  const found = await examineCodebase(world.context, world.codebase)
  expect(found.map(({ detail }) => detail)).toEqual([expect.stringContaining('(environment deleted)')])
})

test('a clone that git cannot save is not removed, and the way out that is named works', async () => {
  await using world = await open()
  const made = await issue(world, 1)
  const at = inside(world, made)
  at.write('staged', 'gone')
  at.git('add', 'staged')
  const blob = at.git('rev-parse', ':staged')
  rmSync(join(at.path, '.git/objects', blob.slice(0, 2), blob.slice(2)))
  at.write('staged', 'newer')
  const failed = await remove(world, made, { force: true }).catch((error: AppError) => error)
  expect(failed).toMatchObject({
    message: expect.stringMatching(/^couldn't save issue-1, so it was not removed: git /),
  })
  expect('remedy' in failed && remedyIn(failed)).toBe(
    `copy what you need out of ${made.path}, delete that directory, then run \`coppice worktree remove issue-1 --force\``,
  )
  rmSync(made.path, { recursive: true })
  await removed(world, made, { force: true })
})

test('a clone with more loose refs than git reads in a second or two is not read', async () => {
  const path = mkdtempSync(join(tmpdir(), 'coppice-test-'))
  const repo = { commonDir: toRepoPath(path) }
  mkdirSync(join(path, 'refs/heads/deep'), { recursive: true })
  for (let i = 0; i < 19_990; i += 1) writeFileSync(join(path, 'refs/heads/deep', `${i}`), '')
  await assertFewRefs(repo)
  for (let i = 0; i < 20; i += 1) writeFileSync(join(path, 'refs/heads', `${i}`), '')
  await expect(assertFewRefs(repo)).rejects.toThrow(/more than 20000 entries/)
  rmSync(path, { recursive: true })
})
