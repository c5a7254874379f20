import { existsSync, rmSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Send, type Sent, sendTo } from '../../test/helpers/send.ts'
import { aCodebase } from '../../test/helpers/store-values.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { IsolationHints } from '../domain/hints.ts'
import { toWork, type WorkType } from '../domain/work.ts'
import { writeToken } from '../git/admin-dir.ts'
import { resolveIsolation } from '../isolation/resolve/resolve.ts'

let world: World
let count = 0
/** Every test has numbers of its own. */
const next = (): number => (count += 10)

beforeAll(async () => {
  world = await makeWorld({ remote: true, settings: { worktreesPerCodebase: 100 } })
  const { repo } = world
  repo.git('push', '-q', 'origin', 'main:refs/heads/x')
  const theirs = repo.git('commit-tree', '-p', 'main', '-m', 'by a stranger', 'main^{tree}')
  repo.git('push', '-q', 'origin', `${theirs}:refs/pull/98/head`)
  repo.git('push', '-q', 'origin', `${theirs}:refs/pull/97/head`)
  for (const branch of ['own', 'closer', 'named']) repo.git('push', '-q', 'origin', `main:refs/heads/${branch}`)
  await world.context.store.codebases.update(world.codebase.id, { github: 'acme/app' })
})
afterAll(() => world[Symbol.asyncDispose]())

const send: Send = (...message) => sendTo(world, ...message)

const about = (type: WorkType, number: number, hints: IsolationHints = {}): Sent => ({
  platform: 'test',
  conversationId: `acme/app#${number}`,
  details: { codebase: 'project', hints: { workflowType: type, workflowId: String(number), ...hints } },
})
const own = { isForkPR: false, prBranch: 'x' } as const
const thread = (id: string): Sent => ({ platform: 'slack', conversationId: id, details: { codebase: 'project' } })
/** A message whose platform says nothing about its work: a command in a thread that is known already. */
const bare = ({ platform, conversationId }: Sent): Sent => ({
  ...(platform !== undefined && { platform }),
  conversationId,
  details: { codebase: 'project' },
})

const treeOf = async (text: string, sent: Sent): Promise<string> =>
  basename((await send(text, sent)).request?.directory ?? '')

const holderOf = async (type: WorkType, number: number): Promise<IsolatedEnvironment | undefined> =>
  world.context.store.environments.liveByWork(world.codebase.id, toWork(type, String(number)))

test('a conversation that a terminal has linked is told where it works with its first message, once', async () => {
  const n = next()
  await treeOf('fix it', about('issue', n))
  const talk = thread(`C2:${n}`)
  await send('hello', talk)
  const { conversations } = world.context.store
  const { id = '' } = (await conversations.find('slack', `C2:${n}`)) ?? {}
  await conversations.update(id, { environmentId: (await holderOf('issue', n))?.id })
  const place = `Working in isolated branch \`issue-${n}\` of \`project\``
  expect((await send('go on', talk)).said.split(place)).toHaveLength(2)
  expect((await send('and again', talk)).said).not.toContain(place)
})

describe('a link made by hand', () => {
  test('moves the issue: a pull request that fixes it, another platform and the command line find it in the linked worktree', async () => {
    const n = next()
    const shared = await treeOf('begin', thread(`C1:${n}`))
    const issue = about('issue', n)
    expect(await treeOf('fix it', issue)).toBe(`issue-${n}`)
    const second = { ...issue, conversationId: `second ${n}` }
    expect(await treeOf('fix it', second)).toBe(`issue-${n}`)
    const before = await holderOf('issue', n)
    expect((await send(`/worktree link ${shared}`, bare(issue))).said.split('\n').slice(0, 3)).toEqual([
      `Linked this conversation to \`${shared}\` of \`project\`. It now works there.`,
      `Issue #${n} now uses \`${shared}\`, on every platform. Its previous worktree \`issue-${n}\` keeps its files, and is cleaned up like any other.`,
      `1 other conversation (test:second ${n}) still works there. To move it, link it, too.`,
    ])
    expect((await send(`/worktree link ${shared}`, second)).said).not.toContain('still works')
    expect(await treeOf('review it', about('pr', n + 1, { ...own, linkedIssues: [n] }))).toBe(shared)
    expect(await treeOf('go on', { ...issue, conversationId: 'another' })).toBe(shared)
    const { context, provider, codebase } = world
    const request = { codebase, work: toWork('issue', String(n)), hints: {}, createdBy: 'cli', linkedByHand: true }
    expect(await resolveIsolation(context, provider, request)).toMatchObject({
      how: 'same-work',
      environment: { branch: shared },
    })
    const old = before && (await context.store.environments.get(before.id))
    expect(old).toMatchObject({ status: 'active', branch: `issue-${n}`, work: { type: 'task', id: `issue-${n}` } })
    expect(existsSync(before?.path ?? '')).toBe(true)
    expect(await context.store.conversations.ofEnvironments(before === undefined ? [] : [before.id])).toEqual([])

    // And back: the branch still has the name.
    expect((await send(`/worktree link issue-${n}`, issue)).said).toContain(`Issue #${n} now uses \`issue-${n}\``)
    expect((await holderOf('issue', n))?.id).toBe(before?.id)
    expect((await send(`/worktree link issue-${n}`, issue)).said).not.toContain('now uses')
  })

  test('says of a person’s own worktree only that it keeps its files', async () => {
    const n = next()
    const shared = await treeOf('begin', thread(`C11:${n}`))
    world.repo.worktree(`own-${n}`, '-b', `wip/own-${n}`)
    const issue = about('issue', n, { suggestedBranch: `wip/own-${n}` })
    await send('fix it', issue)
    expect((await send(`/worktree link ${shared}`, issue)).said).toContain(
      `Its previous worktree \`wip/own-${n}\` keeps its files.`,
    )
  })

  test('moves nothing for a thread, which has no number', async () => {
    const n = next()
    const [one, two] = [await treeOf('begin', thread(`C2:${n}`)), await treeOf('begin', thread(`C3:${n}`))]
    expect((await send(`/worktree link ${one}`, thread(`C3:${n}`))).said).not.toContain('now uses')
    const left = await world.context.store.environments.liveByBranch(world.codebase.id, two)
    expect(left?.work).toEqual({ type: 'thread', id: `C3:${n}` })
  })

  test.each(['removed', 'deleted by hand'])(
    'after the linked worktree is %s, the issue goes back to the worktree that kept its branch',
    async (how) => {
      const n = next()
      const shared = await treeOf('begin', thread(`C4:${n}`))
      const issue = about('issue', n)
      await send('fix it', issue)
      const before = await holderOf('issue', n)
      await send(`/worktree link ${shared}`, issue)
      const linked = await holderOf('issue', n)
      if (linked === undefined) throw new Error('nothing was linked')
      if (how === 'removed') await world.provider.destroy(linked, { trigger: 'command', force: true })
      else rmSync(linked.path, { recursive: true })
      const again = await send('fix it', issue)
      expect([basename(again.request?.directory ?? ''), again.said]).toEqual([
        `issue-${n}`,
        expect.stringContaining(`Reusing worktree from task issue-${n}`),
      ])
      expect((await holderOf('issue', n))?.id).toBe(before?.id)
      expect((await send(`/worktree link ${shared}`, issue)).said).toContain(
        how === 'removed' ? 'has no worktree' : 'is gone',
      )
      expect((await holderOf('issue', n))?.id).toBe(before?.id)
      // The same for a conversation that was given a new one meanwhile.
      if (before !== undefined) rmSync(before.path, { recursive: true })
      await send(`/worktree create later-${n}`, issue)
      await send('/worktree list', issue)
      await send('go on', issue)
      expect((await holderOf('issue', n))?.branch).toContain(`later-${n}`)
    },
  )

  test.each(['is there', 'is gone, too'])(
    'after the linked worktree is removed, a pull request goes back to its own branch, whose worktree %s',
    async (how) => {
      const n = next()
      const shared = await treeOf('begin', thread(`C12:${n}`))
      // Checked out in the main working tree, so that the pull request gets a branch of its own.
      const pr = about('pr', n, { isForkPR: false, prBranch: 'main' })
      expect(await treeOf('fix it', pr)).toBe(`pr-${n}`)
      const before = await holderOf('pr', n)
      await send(`/worktree link ${shared}`, pr)
      const linked = await holderOf('pr', n)
      if (before === undefined || linked === undefined) throw new Error('nothing was linked')
      await world.provider.destroy(linked, { trigger: 'command', force: true })
      if (how === 'is gone, too') rmSync(before.path, { recursive: true })
      expect(await treeOf('go on', pr)).toBe(`pr-${n}`)
      const after = await holderOf('pr', n)
      expect([after?.branch, after?.id === before.id]).toEqual([`pr-${n}`, how === 'is there'])
    },
  )

  test('leads a pull request back to its own worktree also if nobody trusts that one', async () => {
    const n = next()
    const shared = await treeOf('begin', thread(`C13:${n}`))
    const pr = about('pr', n, { isForkPR: false, prBranch: 'main' })
    await send('fix it', pr)
    const before = await holderOf('pr', n)
    await send(`/worktree link ${shared}`, pr)
    const linked = await holderOf('pr', n)
    if (before === undefined || linked === undefined) throw new Error('nothing was linked')
    const { environments } = world.context.store
    await environments.update(before.id, { trust: 'unproven' })
    await world.provider.destroy(linked, { trigger: 'command', force: true })
    expect((await send('go on', pr)).request).toMatchObject({ directory: before.path, untrusted: true })
  })

  test('keeps no issue from its branch when both worktrees are gone', async () => {
    const n = next()
    const shared = await treeOf('begin', thread(`C10:${n}`))
    const issue = about('issue', n)
    await send('fix it', issue)
    const before = await holderOf('issue', n)
    await send(`/worktree link ${shared}`, issue)
    const linked = await holderOf('issue', n)
    if (before === undefined || linked === undefined) throw new Error('nothing was linked')
    world.box.raw(before.path, 'commit', '-q', '--allow-empty', '-m', 'work')
    const tip = world.box.raw(before.path, 'rev-parse', 'HEAD')
    await world.provider.destroy(linked, { trigger: 'command', force: true })
    rmSync(before.path, { recursive: true })
    expect(await treeOf('fix it', issue)).toBe(`issue-${n}`)
    const again = await holderOf('issue', n)
    expect([again?.branch, again?.id === before.id]).toEqual([`issue-${n}`, false])
    expect(world.box.raw(again?.path ?? '', 'rev-parse', 'HEAD')).toBe(tip)
  })

  test('moves neither a fork’s pull request into our worktree nor our issue into a fork’s', async () => {
    const n = next()
    await send('fix it', about('issue', n))
    const fork = about('pr', 98, { isForkPR: true })
    await send('look', fork)
    const theirs = await holderOf('pr', 98)
    expect((await send(`/worktree link issue-${n}`, bare(fork))).said).toContain(
      "PR #98 stays where it was, because it isn't proven to come from this repository",
    )
    expect((await send('/worktree link pr-98-review', about('issue', n))).said).toContain(
      `Issue #${n} stays where it was, because \`pr-98-review\` is not trusted`,
    )
    expect((await holderOf('pr', 98))?.id).toBe(theirs?.id)
    expect((await holderOf('issue', n))?.branch).toBe(`issue-${n}`)
    // Both conversations are where the person wanted them, and both run untrusted there.
    expect((await send('go on', fork)).request).toMatchObject({ untrusted: true })
    expect((await send('go on', about('issue', n, { linkedPRs: [n + 1] }))).request).toMatchObject({ untrusted: true })
    expect(await holderOf('pr', n + 1)).toBeUndefined()
    // Back to its own, which is the one it may have.
    expect((await send('/worktree link pr-98-review', fork)).said).not.toContain("isn't moved")
  })

  test('does not lead a fork’s pull request into our worktree by an alias', async () => {
    const n = next()
    // As if an issue had named it as its own repository's.
    await treeOf('fix it', about('issue', n, { linkedPRs: [97] }))
    expect((await holderOf('pr', 97))?.branch).toBe(`issue-${n}`)
    expect(await treeOf('look', about('pr', 97, { isForkPR: true }))).toBe('pr-97-review')
  })
})

describe('a link that appears in a later message', () => {
  test('is recorded and told: the issue that comes after it finds the pull request’s worktree', async () => {
    const n = next()
    const pr = about('pr', n, { ...own, prBranch: 'own' })
    const tree = await treeOf('begin', pr)
    const later = about('pr', n, { ...own, prBranch: 'own', linkedIssues: [n + 1] })
    expect((await send('Fixes it', later)).said).toContain(`Issue #${n + 1} shares this worktree from now on`)
    expect((await send('go on', later)).said).not.toContain('shares this worktree')
    expect(await treeOf('fix it', about('issue', n + 1))).toBe(tree)
  })

  test('to a work with a worktree of its own is told once, with the command that joins them', async () => {
    const n = next()
    await send('fix it', about('issue', n))
    const shared = await treeOf('begin', thread(`C5:${n}`))
    const pr = about('pr', n + 1, own)
    await send(`/worktree link ${shared}`, pr)
    const later = about('pr', n + 1, { ...own, linkedIssues: [n] })
    const told = `PR #${n + 1} and issue #${n} belong together but have two worktrees, \`${shared}\` and \`issue-${n}\`: \`/worktree link issue-${n}\` to continue in \`issue-${n}\``
    expect((await send('go on', later)).said).toContain(told)
    expect((await send('go on', later)).said).not.toContain('belong together')
    expect((await send(`/worktree link issue-${n}`, later)).said).toContain(`PR #${n + 1} now uses \`issue-${n}\``)
    expect(await treeOf('go on', { ...later, conversationId: 'yet another' })).toBe(`issue-${n}`)
  })

  test('of a fork is offered once and never recorded', async () => {
    const n = next()
    const fork = { isForkPR: true } as const
    await send('fix it', about('issue', n))
    await send('look', about('pr', 97, fork))
    const later = about('pr', 97, { ...fork, linkedIssues: [n, n + 1] })
    expect((await send('go on', later)).said).toContain(`This pull request names issue #${n}, which has a worktree`)
    expect((await send('go on', later)).said).not.toContain('names issue')
    expect(await holderOf('issue', n + 1)).toBeUndefined()
  })
})

describe('a pull request in the worktree of its issue', () => {
  test('is told once that its branch is another one, and how to push to it', async () => {
    const n = next()
    await send('fix it', about('issue', n))
    const pr = about('pr', n + 1, { ...own, linkedIssues: [n] })
    const told = `The branch of PR #${n + 1} is \`x\`, but this worktree is on \`issue-${n}\`. To update the PR from here: \`git push origin HEAD:x\``
    expect((await send('review it', pr)).said).toContain(told)
    expect((await send('go on', pr)).said).not.toContain('git push')
    // It does what it says.
    const tree = (await holderOf('issue', n))?.path ?? ''
    world.box.raw(tree, 'commit', '-q', '--allow-empty', '-m', 'more')
    world.box.raw(tree, 'push', '-q', 'origin', 'HEAD:x')
    expect(world.box.raw(tree, 'ls-remote', 'origin', 'refs/heads/x')).toContain(
      world.box.raw(tree, 'rev-parse', 'HEAD'),
    )
    const same = about('pr', n + 2, { isForkPR: false, prBranch: `issue-${n}`, linkedIssues: [n] })
    expect((await send('review it', same)).said).not.toContain('The branch of PR')
  })

  test('of a fork is told that no push from there updates it', async () => {
    const n = next()
    await send('fix it', about('issue', n))
    const fork = about('pr', 97, { isForkPR: true, prBranch: 'theirs' })
    await send(`/worktree link issue-${n}`, fork)
    expect((await send('go on', fork)).said).toContain("a push from here can't update the PR")
  })
})

describe('what a platform says about an issue or a thread', () => {
  test('an issue joins the worktree of the pull request that closes it', async () => {
    const n = next()
    const tree = await treeOf('begin', about('pr', n, { isForkPR: false, prBranch: 'closer' }))
    expect(tree).toBe('closer')
    expect(await treeOf('fix it', about('issue', n + 1, { linkedPRs: [n] }))).toBe(tree)
    expect((await holderOf('issue', n + 1))?.branch).toBe('closer')
  })

  test('an issue and a thread join a person’s worktree on the suggested branch, and one of ours', async () => {
    const n = next()
    const mine = world.repo.worktree(`mine-${n}`, '-b', `wip/${n}`)
    const issue = await send('fix it', about('issue', n, { suggestedBranch: `wip/${n}` }))
    expect([issue.request?.directory, issue.said]).toEqual([mine.path, expect.stringContaining('Adopted the worktree')])
    const talk = { ...thread(`C6:${n}`), details: { codebase: 'project' } }
    expect((await send(`go on with branch wip/${n}`, talk)).request?.directory).toBe(mine.path)
    // Said later, it is no more than a word.
    const later = thread(`C7:${n}`)
    const own = (await send('begin', later)).request?.directory
    expect((await send(`what is on branch wip/${n}?`, later)).request?.directory).toBe(own)
  })

  test('a linked work whose worktree can’t be used keeps no issue from its own', async () => {
    const n = next()
    await send('fix it', about('issue', n))
    const { path = '' } = (await holderOf('issue', n)) ?? {}
    rmSync(path, { recursive: true })
    world.box.repo(relative(world.box.root, path))
    expect(await treeOf('fix it', about('issue', n + 1, { linkedIssues: [n] }))).toBe(`issue-${n + 1}`)
    // A platform that knows the link usually names its branch, too.
    const both = { linkedIssues: [n], suggestedBranch: `issue-${n}` }
    expect(await treeOf('fix it', about('issue', n + 2, both))).toBe(`issue-${n + 2}`)
  })

  test('a suggested worktree that can’t be adopted keeps no issue from its own', async () => {
    const n = next()
    const { gitDir } = world.repo.worktree(`theirs-${n}`, '-b', `theirs/${n}`)
    await writeToken(gitDir, 'made-with-another-home')
    expect(await treeOf('fix it', about('issue', n, { suggestedBranch: `theirs/${n}` }))).toBe(`issue-${n}`)
  })

  test('a thread that names a pull request joins its worktree, but does not take its number', async () => {
    const n = next()
    const name = (number: number): string => `look at https://github.com/acme/app/pull/${number}`
    const alone = await treeOf(name(n), thread(`C8:${n}`))
    expect(alone).toMatch(/^thread-/)
    expect(await holderOf('pr', n)).toBeUndefined()
    // An issue that is opened with such an address isn't that pull request's issue.
    await send(name(n), about('issue', n + 1))
    expect(await holderOf('pr', n)).toBeUndefined()
    await send('begin', about('pr', n, { isForkPR: false, prBranch: 'named' }))
    const joined = await send(name(n), thread(`C9:${n}`))
    expect([basename(joined.request?.directory ?? ''), joined.said]).toEqual([
      'named',
      expect.stringContaining(`Reusing worktree from PR #${n}`),
    ])
  })
})

describe('a conversation that moves to another repository', () => {
  const elsewhere = async (): Promise<{ name: string; shared: string; numbers: (n: number) => Promise<string> }> => {
    const name = `other-${next()}`
    const repo = world.box.repo(name)
    const place = { host: world.context.host, repoPath: repo.commonDir, checkoutPath: repo.path }
    const codebase = aCodebase(name, place)
    await world.context.store.codebases.insert(codebase)
    const shared = await treeOf('begin', { ...thread(`C14:${name}`), details: { codebase: name } })
    const numbers = async (n: number): Promise<string> =>
      (await world.context.store.environments.liveByWork(codebase.id, toWork('issue', String(n))))?.branch ?? ''
    return { name, shared, numbers }
  }

  test('takes no number of the previous one along', async () => {
    const n = next()
    const other = await elsewhere()
    const issue = about('issue', n)
    await send('fix it', issue)
    const moving = { ...bare(issue), details: { codebase: other.name, move: true } }
    const { said } = await send(`/worktree link ${other.shared}`, moving)
    expect(said).toContain(`Linked this conversation to \`${other.shared}\` of \`${other.name}\``)
    expect(said).not.toContain('now uses')
    expect(said, 'its worktree is the previous repository’s').not.toContain(`issue-${n}`)
    expect(await other.numbers(n)).toBe('')
    expect((await holderOf('issue', n))?.branch).toBe(`issue-${n}`)
  })

  test('keeps the number that came with the message', async () => {
    const n = next()
    const other = await elsewhere()
    const issue = about('issue', n)
    await send('fix it', issue)
    const hints: IsolationHints = { workflowType: 'issue', workflowId: String(n + 1) }
    await send('/worktree list', { ...issue, details: { codebase: other.name, move: true, hints } })
    const linked = await send(`/worktree link ${other.shared}`, { ...issue, details: {} })
    expect(linked.said).toContain(`Issue #${n + 1} now uses \`${other.shared}\``)
    expect(await other.numbers(n + 1)).toBe(other.shared)
  })

  test('that isn’t registered keeps its own number', async () => {
    const n = next()
    const issue = about('issue', n)
    await send('fix it', issue)
    const hints: IsolationHints = { workflowType: 'issue', workflowId: String(n + 1) }
    await send('/worktree list', { ...issue, details: { codebase: 'nowhere', move: true, hints } })
    expect((await world.context.store.conversations.find('test', `acme/app#${n}`))?.work?.id).toBe(String(n))
  })
})
