import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Send, type Sent, sendTo } from '../../test/helpers/send.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import { toCodebaseId } from '../domain/names.ts'
import type { MessageDetails } from '../domain/message.ts'
import { trustEnvironment } from '../isolation/providers/checkout/trust-environment.ts'
import { resolveIsolation } from '../isolation/resolve/resolve.ts'
import { toWork } from '../domain/work.ts'

let world: World
let theirs: string
beforeAll(async () => {
  world = await makeWorld({
    remote: true,
    prepare: (repo) =>
      repo.commit('.coppice/commands/look.md', '---\ntype: read\nrequiresIsolation: false\n---\nLook around.\n'),
  })
  const { repo, context, codebase, box } = world
  theirs = repo.git('commit-tree', '-p', 'main', '-m', 'by a stranger', 'main^{tree}')
  repo.git('push', '-q', 'origin', 'main:refs/heads/x')
  for (const number of [1, 2, 3, 4, 5]) repo.git('push', '-q', 'origin', `${theirs}:refs/pull/${number}/head`)
  await context.store.codebases.update(codebase.id, { github: 'acme/app' })
  const other = box.repo('top-secret')
  await context.store.codebases.insert({
    ...codebase,
    id: toCodebaseId('other'),
    name: 'top-secret',
    repoPath: other.commonDir,
    checkoutPath: other.path,
    github: 'acme/top-secret',
  })
})
afterAll(() => world[Symbol.asyncDispose]())

const send: Send = (...message) => sendTo(world, ...message)

const about = (number: number, more: MessageDetails['hints'] = {}): Sent => ({
  conversationId: `acme/app#${number}`,
  details: { github: 'acme/app', hints: { workflowType: 'pr', workflowId: String(number), ...more } },
})

describe('a run is untrusted if its worktree or its message is:', () => {
  test('an issue and a pull request of our own are trusted, a fork’s and an unknown one are not', async () => {
    const issue: Sent = {
      conversationId: 'acme/app#50',
      details: { github: 'acme/app', hints: { workflowType: 'issue', workflowId: '50' } },
    }
    const own = about(9, { isForkPR: false, prBranch: 'x' })
    expect((await send('fix it', issue)).request?.untrusted).toBe(false)
    expect((await send('fix it', own)).request?.untrusted).toBe(false)
    expect((await send('fix it', about(1, { isForkPR: true }))).request?.untrusted).toBe(true)
    expect((await send('fix it', about(2, { linkedIssues: [50] }))).request?.untrusted).toBe(true)
    expect((await send('fix it', issue)).request?.untrusted).toBe(false)
  })

  test('a fork’s conversation that a person linked to our worktree, and ours in a fork’s worktree', async () => {
    await send('fix it', {
      ...about(50),
      details: { github: 'acme/app', hints: { workflowType: 'issue', workflowId: '50' } },
    })
    const fork = about(3, { isForkPR: true, prSha: theirs })
    expect((await send('/worktree link issue-50', fork)).said).toContain('Linked this conversation to `issue-50`')
    const linked = await send('fix it', fork)
    expect(linked.request).toMatchObject({ untrusted: true })
    expect(linked.request?.directory).toMatch(/issue-50$/)
    const slack = { platform: 'slack', conversationId: 'C1', details: { codebase: 'project' } }
    await send('fix it', about(1, { isForkPR: true }))
    await send('/worktree link pr-1-review', slack)
    for (const text of ['fix it', '/look']) {
      expect((await send(text, slack)).request).toMatchObject({ untrusted: true })
    }
  })

  test('an untrusted run ends the vouching: whatever it left there, the next run is untrusted until somebody vouches again', async () => {
    const { context, codebase, repo } = world
    const next = repo.git('commit-tree', '-p', theirs, '-m', 'next', `${theirs}^{tree}`)
    const slack = { platform: 'slack', conversationId: 'C7', details: { codebase: 'project' } }
    await send('fix it', about(5, { isForkPR: true, prSha: theirs }))
    const row = async () => {
      const found = await context.store.environments.liveByWork(codebase.id, toWork('pr', '5'))
      if (found === undefined) throw new Error('no worktree')
      return found
    }
    const vouch = async () => trustEnvironment(context, codebase, await row())
    const untrusted = async (sent: Sent, more: Parameters<typeof send>[2] = {}) =>
      (await send('fix it', sent, more)).request?.untrusted
    const [aboutFirst, aboutNext] = [theirs, next].map((prSha) => about(5, { isForkPR: true, prSha }))
    if (aboutFirst === undefined || aboutNext === undefined) throw new Error('no messages')
    await vouch()
    await send('/worktree link pr-5-review', slack)
    expect([await untrusted(slack), await untrusted(aboutFirst)]).toEqual([false, false])
    repo.git('push', '-q', 'origin', `${next}:refs/pull/5/head`)
    // Its agent changes settings without a commit, so that the worktree is still at the commit that was vouched for.
    const plant = async (directory: string) => writeFileSync(join(directory, 'CLAUDE.md'), 'theirs')
    expect(await untrusted(aboutNext, { agent: plant })).toBe(true)
    expect((await row()).trust).toBe('lapsed')
    expect([await untrusted(slack), await untrusted(aboutFirst)]).toEqual([true, true])
    expect((await send('fix it', aboutFirst)).said).toContain('coppice worktree trust pr-5-review')
    // Nor is it moved with our files in it.
    const { path } = await row()
    expect((await send('fix it', aboutNext)).said).toContain('nobody has vouched for that commit')
    expect(world.box.raw(path, 'rev-parse', 'HEAD')).toBe(theirs)
    await expect(vouch()).rejects.toThrow("didn't trust pr-5-review, which has more than its commit")
    world.box.raw(path, 'clean', '-q', '-f')
    await vouch()
    expect(await untrusted(slack)).toBe(false)
    // A run that was found to be trusted, and whose turn came after somebody moved the worktree.
    const placed = async () => void world.box.raw(path, 'merge', '-q', '--ff-only', next)
    expect(await untrusted(aboutFirst, { placed })).toBe(true)
  })

  test('a command that only reads does so in the checkout, for a fork’s pull request in a worktree of its own', async () => {
    const issue = { platform: 'slack', conversationId: 'C2', details: { codebase: 'project' } }
    expect((await send('/look', issue)).request).toMatchObject({ directory: world.repo.path, untrusted: false })
    const fork = await send('/look', about(4, { isForkPR: true }))
    expect(fork.request).toMatchObject({ untrusted: true })
    expect(fork.request?.directory).toMatch(/pr-4-review$/)
  })
})

describe('a thread of a repository, which everybody can read,', () => {
  const issue: Sent = {
    conversationId: 'acme/app#60',
    details: { github: 'acme/app', hints: { workflowType: 'issue', workflowId: '60' } },
  }
  test.each([
    '/codebases',
    '/codebase top-secret',
    '/codebase nothing',
    '/clone https://github.com/acme/top-secret',
    '/status',
    '/worktree list',
    '/worktree orphans',
    '/worktree create mine',
    '/worktree create --issue 61 --base top-secret',
    '/worktree link top-secret',
    '/worktree link issue-60',
    '/worktree remove /etc',
    '/worktree restore --list',
    '/worktree cleanup merged --dry-run',
    '/diff',
    '/agents',
    '/help',
  ])('shows no other repository, no path of this machine and no other conversation: %s', async (command) => {
    const { context, codebase, provider, box } = world
    const work = toWork('issue', '60')
    await resolveIsolation(context, provider, { codebase, work, hints: {}, createdBy: 'test' })
    mkdirSync(join(box.path('elsewhere')), { recursive: true })
    world.repo.git('worktree', 'add', '-q', '--force', '--detach', box.path(`orphan-${randomUUID()}`))
    const slack = { platform: 'slack', conversationId: 'C123:1712.34', details: { codebase: 'project' } }
    await send('/worktree link issue-60', slack)
    const { said } = await send(command, issue)
    expect(said).not.toBe('')
    const shown = said.replaceAll(command.slice(1), '')
    expect(shown).not.toContain(box.root)
    expect(shown).not.toContain('C123')
    // The word that was asked for may come back in the refusal.
    expect(shown.replaceAll('"top-secret"', '')).not.toContain('top-secret')
  })

  test('is about its own repository, also if it was bound to another one before', async () => {
    const { store } = world.context
    await send('/status', issue)
    const row = await store.conversations.find('github', 'acme/app#60')
    await store.conversations.update(row?.id ?? '', { codebaseId: toCodebaseId('other') })
    expect((await send('/status', issue)).said).toContain('`project`')
    const unknown = { ...issue, details: { ...issue.details, github: 'acme/unregistered' } }
    await store.conversations.update(row?.id ?? '', { codebaseId: toCodebaseId('other') })
    expect((await send('/worktree list', unknown)).said).not.toContain('top-secret')
  })

  test('elsewhere all repositories are listed', async () => {
    const slack = { platform: 'slack', conversationId: 'C9', details: {} }
    expect((await send('/codebases', slack)).said).toContain('top-secret')
    expect((await send('/codebase top-secret', slack)).said).toContain('`top-secret`')
  })
})
