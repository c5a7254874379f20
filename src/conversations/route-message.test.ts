import { basename } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type During, type Sent, sendTo } from '../../test/helpers/send.ts'
import { writeIn } from '../../test/helpers/repo.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import type { IsolationHints } from '../domain/hints.ts'
import { lastOffer } from './last-offer.ts'

let world: World
let count = 0
const talk = (hints?: IsolationHints, platform = 'slack'): Sent => ({
  platform,
  conversationId: `C1:${(count += 1)}`,
  details: { codebase: 'project', ...(hints && { hints }) },
})
const send = (text: string, sent: Sent, during?: During) => sendTo(world, text, sent, during)

const route = (value: string): void => {
  world.repo.commit('.coppice/config.yaml', `commands:\n  route: ${value}\n`)
  world.repo.git('push', '-q', 'origin', 'main')
}

const files = {
  '.coppice/commands/review.md': '---\ndescription: review what changed\ntype: read\n---\nREVIEW: $ARGUMENTS',
  '.coppice/commands/audit.md':
    '---\ndescription: audit everything\ntype: read\nallowedTools: Bash(sh *)\n---\nAUDIT: $ARGUMENTS',
  '.coppice/commands/tidy.md': '---\ndescription: tidy up the code\ntype: write\n---\nTIDY: $ARGUMENTS',
}

beforeAll(async () => {
  world = await makeWorld({ remote: true })
  for (const [file, content] of Object.entries(files)) world.repo.commit(file, content)
  world.repo.git('push', '-q', 'origin', 'main')
})
afterAll(() => world[Symbol.asyncDispose]())

const asking = 'can you review this PR'
const offer = (name: string): RegExp => new RegExp(`^This sounds like \`/${name}\`.*Reply \`yes\` to run it, or \`no\``)

describe('without commands.route', () => {
  test('plain words go to the agent as they are, and `yes` is a word', async () => {
    const here = talk()
    expect((await send(asking, here)).request?.prompt).toBe(asking)
    expect((await send('yes', here)).request?.prompt).toBe('yes')
  })
})

describe('with commands.route: suggest', () => {
  beforeAll(() => route('suggest'))

  test('a command is offered and nothing runs until the next message says yes or no', async () => {
    const here = talk()
    const offered = await send(asking, here)
    expect([offered.request, offered.said]).toEqual([undefined, expect.stringMatching(offer('review'))])
    const { request } = await send('Yes!', here)
    expect([request?.prompt, request?.rules.access]).toEqual([`REVIEW: ${asking}`, 'read'])
    expect((await send('yes', here)).request?.prompt, 'once').toBe('yes')

    const declined = talk()
    await send(asking, declined)
    const plain = (await send('no', declined)).request
    expect([plain?.prompt, plain?.rules.access]).toEqual([asking, 'write'])
  })

  test('`no` leaves the first message what it was: it still names its branch', async () => {
    const mine = world.repo.worktree('mine', '-b', 'wip7')
    const here = talk()
    const text = 'review branch wip7'
    expect((await send(text, here)).said).toMatch(offer('review'))
    const { request } = await send('no', here)
    expect([request?.prompt, request?.directory]).toEqual([text, mine.path])
  })

  test.each([
    ['no', 5],
    ['yes', 6],
  ])('`%s` is about the issue that the first message was about, unless it names another', async (word, n) => {
    const issue = (id: number): Sent => talk({ workflowType: 'issue', workflowId: String(id) })
    const here = issue(n)
    await send('please tidy up the code', here)
    const { request } = await send(word, { ...here, details: { codebase: 'project' } })
    expect(basename(request?.directory ?? '')).toBe(`issue-${n}`)
    const there = issue(n + 10)
    await send('please tidy up the code', there)
    const other = await send(word, { ...there, details: issue(n + 20).details })
    expect(basename(other.request?.directory ?? '')).toBe(`issue-${n + 20}`)
  })

  test('`yes` is a word like any other once something else was said, or in another thread', async () => {
    const looked = talk()
    await send(asking, looked)
    await send('/status', looked)
    expect((await send('yes', looked)).request?.prompt).toBe('yes')
    const spoken = talk()
    await send(asking, spoken)
    expect((await send('yes, and fix the login bug', spoken)).request?.prompt).toBe('yes, and fix the login bug')
    expect((await send('yes', spoken)).request?.prompt).toBe('yes')
    await send(asking, talk())
    expect((await send('yes', talk())).request?.prompt).toBe('yes')
  })

  test('what a run after a crash accepts is the same offer', async () => {
    const here = talk()
    await send(asking, here)
    const crash = send('yes', here, {
      placed: async () => {
        throw new Error('the run ended here')
      },
    })
    expect((await crash).said, 'the first attempt has said where it works').toContain('Working in')
    const { store, clock } = world.context
    const [message] = (await store.inbox.ofConversation({ platform: 'slack', ...here }, 1)).slice(-1)
    if (message === undefined) throw new Error('no message')
    expect(await lastOffer(store, message, 'route:')).toMatchObject({ value: 'review' })
    const later = { ...message, id: 'another', acceptedAt: clock() + 1 }
    expect(await lastOffer(store, later, 'route:'), 'for another message it is no longer the last').toBeUndefined()
    const earlier = { ...message, acceptedAt: 0 }
    expect(await lastOffer(store, earlier, 'route:'), 'written before the offer').toBeUndefined()
  })
})

describe('with commands.route: run', () => {
  beforeAll(() => route('run'))

  test('a read-only command that is clearly meant runs, with the message as its arguments', async () => {
    const { request, said } = await send(asking, talk())
    expect([request?.prompt, request?.rules.access]).toEqual([`REVIEW: ${asking}`, 'read'])
    expect(said.split('\n')[0]).toBe('Running `/review`')
  })

  test.each([
    ['the command may write', 'please tidy up the code', 'tidy', {}],
    ['it allows a shell command', 'audit everything', 'audit', {}],
    ['the agent is only told not to write', asking, 'review', { unenforced: true }],
    ['the words say more', 'review the login', 'review', {}],
  ])('it is only offered if %s', async (_why, text, name, during) => {
    const here = talk()
    const offered = await send(text, here, during)
    expect([offered.request, offered.said]).toEqual([undefined, expect.stringMatching(offer(name))])
    expect((await send('yes', here, during)).request?.prompt).toBe(`${name.toUpperCase()}: ${text}`)
  })

  test('a fork’s pull request gets the base branch’s command, in an untrusted worktree, and not its own', async () => {
    const { repo } = world
    repo.git('switch', '-q', '-c', 'theirs')
    repo.commit('.coppice/commands/review.md', '---\ntype: read\n---\nEVIL')
    repo.commit('.coppice/commands/hello.md', '---\ntype: read\n---\nEVIL')
    repo.git('switch', '-q', 'main')
    repo.git('push', '-q', 'origin', 'theirs:refs/pull/98/head')
    const fork = talk({ workflowType: 'pr', workflowId: '98', isForkPR: true }, 'github')
    const { request } = await send(asking, fork)
    expect([request?.prompt, request?.untrusted, request?.rules.access]).toEqual([`REVIEW: ${asking}`, true, 'read'])
    expect((await send('hello', fork)).request?.prompt).toBe('hello')
  })

  test('plain words never become one of Coppice’s own commands, which hides a file of the same name', async () => {
    world.repo.commit('.coppice/commands/worktree.md', '---\ndescription: cleanup merged\ntype: read\n---\nPROMPT')
    world.repo.git('push', '-q', 'origin', 'main')
    expect((await send('cleanup merged', talk())).request?.prompt).toBe('cleanup merged')
  })

  test('settings and commands that can’t be read leave the message as it is', async () => {
    route('always')
    const { said } = await send(asking, talk())
    expect(said).toContain('commands.route is "always"')
    route('run')
    writeIn(world.repo.path, '.coppice/commands/review.md', 'HALF EDITED')
    expect((await send(asking, talk())).request?.prompt).toBe(`REVIEW: ${asking}`)
  })
})
