import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Send, type Sent, sendTo } from '../../test/helpers/send.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { IsolationHints } from '../domain/hints.ts'
import { toEnvironmentId } from '../domain/names.ts'
import { acceptedOffer } from './offers.ts'

let world: World
let count = 0
/** Every test has numbers of its own. */
const next = (): number => (count += 10)

beforeAll(async () => {
  world = await makeWorld({ remote: true })
  const { repo } = world
  const theirs = repo.git('commit-tree', '-p', 'main', '-m', 'by a stranger', 'main^{tree}')
  repo.git('push', '-q', 'origin', `${theirs}:refs/pull/96/head`)
})
afterAll(() => world[Symbol.asyncDispose]())

const send: Send = (...message) => sendTo(world, ...message)

const about = (number: number, hints: IsolationHints = {}): Sent => ({
  platform: 'test',
  conversationId: `acme/app#${number}`,
  details: { codebase: 'project', hints: { workflowType: 'issue', workflowId: String(number), ...hints } },
})
const thread = (id: string): Sent => ({ platform: 'slack', conversationId: id, details: { codebase: 'project' } })

const treeOf = async (text: string, sent: Sent): Promise<string> =>
  basename((await send(text, sent)).request?.directory ?? '')

describe('a conversation whose first message speaks of other work', () => {
  const fresh = (): Sent => thread(`F:${next()}`)
  const offerIn = (said: string): string | undefined => /^(.*), or reply `link`$/m.exec(said)?.[1]

  test('is offered its worktree after the reply, with the reason; what comes later is not looked at', async () => {
    const n = next()
    await send('Fix it', about(n))
    const safari = await treeOf(`Login is broken on Safari ${n}\nSee the log`, thread(`S:${n}`))
    expect((await send(`the same as #${n}?`, fresh())).said.split('\n').slice(-2)).toEqual([
      'done',
      `Your message mentions issue #${n}, which has the worktree \`issue-${n}\`: \`/worktree link issue-${n}\` to share it, or reply \`link\``,
    ])
    const there = fresh()
    await send(`and #${n}?`, there)
    const [offered] = await world.context.store.outbox.ofConversation({ platform: 'slack', ...there }, 1)
    expect(offered?.actions).toMatchObject([{ label: 'Share worktree' }])
    expect((await send(offered?.actions?.[0]?.command ?? '', there)).said).toContain(`to \`issue-${n}\``)
    const talk = fresh()
    expect(offerIn((await send(`login is broken on safari ${n}!`, talk)).said)).toBe(
      `Your message reads like the work in \`${safari}\`: \`/worktree link ${safari}\` to share it`,
    )
    expect(offerIn((await send(`the same as #${n}`, talk)).said)).toBeUndefined()
    // Nor when it gets another worktree.
    const conversation = await world.context.store.conversations.find('slack', talk.conversationId)
    const environment = await world.context.store.environments.get(conversation?.environmentId ?? toEnvironmentId(''))
    if (environment === undefined) throw new Error('no worktree')
    await world.provider.destroy(environment, { trigger: 'command', force: true })
    expect(offerIn((await send(`the same as #${n}`, talk)).said)).toBeUndefined()
  })

  test('is compared with the titles of issues, and the title that somebody gave to an issue of their own with the rest', async () => {
    const n = next()
    const called = (number: number, text: string, own: boolean): Sent => {
      const { details, ...sent } = about(number)
      return { ...sent, details: { ...details, title: { text, own } } }
    }
    await send('look', called(n, `The export takes forever ${n}`, false))
    const reads = `Your message reads like the work in \`issue-${n}\`: \`/worktree link issue-${n}\` to share it`
    expect(offerIn((await send(`why? The export takes forever ${n}`, fresh())).said)).toBe(reads)
    expect(offerIn((await send('look', called(n + 1, `the export takes forever ${n}`, true))).said)).toBe(reads)
    expect(offerIn((await send('look', called(n + 2, `about the work in issue-${n}`, false))).said)).toBeUndefined()
  })

  test('is offered the one worktree whose commits change the file it names, with one git process', async () => {
    const n = next()
    const one = (await send('begin', thread(`A:${n}`))).request?.directory ?? ''
    const two = (await send('begin', thread(`B:${n}`))).request?.directory ?? ''
    const change = (tree: string, file: string): void => {
      writeFileSync(join(tree, file), 'x')
      world.box.raw(tree, 'add', file)
      world.box.raw(tree, 'commit', '-q', '-m', file)
    }
    change(one, `only-${n}.ts`)
    for (const tree of [one, two]) change(tree, `both-${n}.ts`)
    expect(offerIn((await send(`why is only-${n}.ts so slow?`, fresh())).said)).toBe(
      `Commits on \`${basename(one)}\` change \`only-${n}.ts\`: \`/worktree link ${basename(one)}\` to share it`,
    )
    expect(offerIn((await send(`why is both-${n}.ts so slow?`, fresh())).said)).toBeUndefined()
    const spawned = async (text: string): Promise<number> => {
      const before = world.context.git.spawned()
      await send(text, fresh())
      return world.context.git.spawned() - before
    }
    const plain = await spawned('hello there')
    expect(await spawned(`see #${n}0 and issue-${n}`)).toBe(plain)
    expect(await spawned(`why is none-${n}.ts so slow?`)).toBe(plain + 1)
  })

  test('accepts with one word, if that is the whole message and the offer was said last', async () => {
    const n = next()
    await send('Fix it', about(n))
    const first = `the same as #${n}`
    const accepted = fresh()
    const { request, said } = await send(first, accepted)
    expect(basename(request?.directory ?? '')).toMatch(/^thread-/)
    expect(said.split('\n').at(-1)).toMatch(/, or reply `link`$/)
    const left = basename(request?.directory ?? '')
    expect((await send(' Link ', accepted)).said).toBe(
      `Linked this conversation to \`issue-${n}\` of \`project\`. It now works there.\nIts previous worktree \`${left}\` is unchanged.\nShared by test:acme/app#${n}, slack:${accepted.conversationId}.`,
    )
    expect(await treeOf('go on', accepted)).toBe(`issue-${n}`)
    // Now it is a word like any other.
    expect((await send('link', accepted)).request?.prompt).toBe('link')

    const spoken = fresh()
    await send(first, spoken)
    expect((await send('link it', spoken)).request?.prompt).toBe('link it')
    expect((await send('link', spoken)).request?.prompt).toBe('link')
    const looked = fresh()
    await send(first, looked)
    await send('/status', looked)
    expect((await send('link', looked)).request?.prompt).toBe('link')
    const never = fresh()
    expect((await send('link', never)).request?.prompt).toBe('link')
  })

  test('does not accept with a word that was written before the offer', async () => {
    const n = next()
    await send('Fix it', about(n))
    const talk = { ...fresh(), kind: 'message', text: 'link' } as const
    await send(`the same as #${n}`, talk)
    const { store } = world.context
    const key = { ...talk, id: 'later', platform: 'slack' }
    const [offer] = await store.outbox.ofConversation(key, 1)
    const at = offer?.createdAt ?? 0
    expect(await acceptedOffer(store, { ...key, acceptedAt: at - 1 })).toBeUndefined()
    expect(await acceptedOffer(store, { ...key, acceptedAt: at, kind: 'closed' })).toBeUndefined()
    expect(await acceptedOffer(store, { ...key, acceptedAt: at })).toMatch(/^\/worktree link /)
  })

  test('of a fork’s pull request is offered nothing, neither by what it says nor by commits that mention it', async () => {
    const n = next()
    const ours = (await send('Fix it', about(n))).request?.directory ?? ''
    world.box.raw(ours, 'commit', '-q', '--allow-empty', '-m', 'as in #96')
    const fork = about(96, { workflowType: 'pr', isForkPR: true })
    expect(offerIn((await send(`the same as #${n}`, fork)).said)).toBeUndefined()
  })
})
