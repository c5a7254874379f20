import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Chat, makeChat, missingAgent, readyAgent } from '../../test/helpers/chat.ts'
import { inside, issue } from '../../test/isolation/scene.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import { isAppError } from '../domain/errors.ts'
import { toEnvironmentId } from '../domain/names.ts'
import { toWork } from '../domain/work.ts'
import { acquireLease } from '../isolation/lease.ts'
import { isChatCommand, laneOf } from './answer-command.ts'

let world: World
let chat: Chat

beforeEach(async () => {
  world = await makeWorld()
  chat = await makeChat(world)
})
afterEach(() => world[Symbol.asyncDispose]())

describe('what is a command', () => {
  test.each(['/help', '/worktree list', '/status@coppice_bot', '/Help', '/fix-it now', '/a\nb'])('%j is', (text) => {
    expect(isChatCommand(text)).toBe(true)
  })

  test.each(['', '/', ' /help', '/ help', '//x', '/usr/bin/env fails', '/42', 'say /help', '/é'])(
    '%j is not',
    (text) => {
      expect(isChatCommand(text)).toBe(false)
    },
  )

  test('help, status and stop do not wait their turn; what changes the conversation does', () => {
    for (const text of ['/help', '/status', '/stop', '/help worktree', '/Status']) expect(laneOf(text)).toBe('at-once')
    for (const text of ['/reset', '/worktree list', '/codebase x', '/statusx', 'stop'])
      expect(laneOf(text)).toBe('turn')
  })
})

describe('help', () => {
  test('is read out of the table, with every command of a chat', async () => {
    const text = await chat.say('/help')
    for (const command of [
      '`/help [command]`',
      '`/status`',
      '`/codebases`',
      '`/codebase <name>`',
      '`/clone <url>`',
      '`/agent [name]`',
      '`/reset`',
      '`/stop`',
      '`/diff [name]`',
      '`/worktree create <branch>`',
      '`/worktree list`',
      '`/worktree remove [name] [--force]`',
      '`/worktree restore [name] [--list]`',
      '`/worktree link <issue-42|pr-99|thread-…|task-…|item-7>`',
      '`/worktree orphans`',
      '`/worktree cleanup merged|stale [--dry-run]`',
    ]) {
      expect(text).toContain(command)
    }
    expect(text).not.toContain('coppice')
    expect(text).not.toContain('\u001b')
  })

  test('of a group and of one command', async () => {
    expect(await chat.say('/help worktree')).toContain('`/worktree orphans`')
    expect(await chat.say('/help worktree')).not.toContain('/reset')
    expect(await chat.say('/worktree')).toBe(await chat.say('/help worktree'))
    const one = await chat.say('/help worktree remove')
    expect(one).toContain('`--force`')
    expect(one).toContain('`/worktree remove issue-42 --force`')
    expect(await chat.say('/worktree remove --help')).toBe(one)
    expect(await chat.say('/help nonsense')).toContain('Unknown command "/nonsense"')
  })
})

describe('what cannot be', () => {
  test.each([
    ['/wroktree list', 'Unknown command "/wroktree".\nDid you mean `/worktree`?'],
    ['/worktree lsit', 'Unknown command "/worktree lsit".\nDid you mean `/worktree list`?'],
    ['/qqqqqqqq', 'Unknown command "/qqqqqqqq".\nRun `/help` for a list of commands.'],
    ['/worktree remove x --forse', 'Unknown option --forse.\nDid you mean `--force`?'],
    ['/worktree list x', 'Unexpected argument "x".\nRun `/help worktree list` for usage.'],
    ['/codebase', 'Missing required argument: `<name>`\nRun `/help codebase` for usage.'],
    ['/worktree create "a', 'Missing closing ".'],
    ['/worktree remove nothing', 'has no worktree "nothing".\nRun `/worktree list` for a list'],
    ['/worktree link x --conversation test:a', 'Unknown option --conversation.'],
    ['/clone --upload-pack=x', 'Unknown option'],
    ['/clone ext::sh', "Can't clone this"],
    ['/worktree cleanup all', 'Unknown cleanup type "all".\nUse `merged` or `stale`'],
  ])('%j is answered in two sentences, in the words of a chat', async (text, expected) => {
    expect(await chat.say(text)).toContain(expected)
  })

  test('without a codebase the way to bind one is told', async () => {
    const unbound = await makeChat(world, { id: 'T2', bound: false })
    for (const text of ['/worktree list', '/worktree create x', '/diff']) {
      expect(await unbound.say(text)).toBe(
        'This conversation has no repository yet.\nChoose one with `/codebase <name>` (registered: project), or clone one with `/clone <url>`.',
      )
    }
    expect(await unbound.say('/status')).toContain('**Repository**: none; choose one with `/codebase <name>`')
    expect(await unbound.say('/codebase nope')).toContain('Unknown codebase "nope".\nRegistered: project. Add another')
  })

  test('whatever is said is answered, in plain text', async () => {
    const words = fc.constantFrom(
      'help',
      'agent',
      'codebase',
      'worktree',
      'worktree remove',
      'worktree link',
      'diff',
      'x',
    )
    await fc.assert(
      fc.asyncProperty(words, fc.string({ unit: 'binary', maxLength: 30 }), async (word, rest) => {
        const answer = await chat.ask(`/${word} ${rest}`)
        expect(answer.kind === 'answer' && answer.text.trim() !== '').toBe(true)
        // eslint-disable-next-line no-control-regex
        expect(answer.kind === 'answer' && answer.text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
      }),
      { numRuns: 150 },
    )
  })

  test('being cancelled is no answer', async () => {
    const controller = new AbortController()
    controller.abort()
    await expect(chat.ask('/worktree create x', controller.signal)).rejects.toSatisfy((error) => isAppError(error))
  })
})

describe('worktree', () => {
  test('create moves the conversation and keeps its session', async () => {
    await chat.startSession('/elsewhere')
    const text = await chat.say('/worktree create my-branch')
    expect(text).toContain('Created `my-branch` for task my-branch')
    const { environmentId } = await chat.conversation()
    const environment = await world.context.store.environments.liveByWork(
      world.codebase.id,
      toWork('task', 'my-branch'),
    )
    expect(environmentId).toBe(environment?.id)
    expect(environment?.createdBy).toBe('test:T1')
    expect(await chat.session()).toMatchObject({ agentSessionId: 'its-own-id', directory: environment?.path })
    expect(await chat.say('/worktree create my-branch')).toContain('Using existing worktree `my-branch`')
  })

  test('create without a branch says what is missing', async () => {
    expect(await chat.say('/worktree create')).toContain(
      'Specify a branch, --issue, --pr, --review, --thread or --task.',
    )
  })

  test('list marks the own one, in a block of code', async () => {
    await chat.say('/worktree create one')
    await chat.say('/worktree create two')
    const text = await chat.say('/worktree list')
    expect(text).toMatch(/^```\n/)
    expect(text).toMatch(/^\* {2}two /m)
    expect(text).toMatch(/^ +one /m)
    // What it names has to be a command of a chat: --json is none.
    expect(text).toContain("2 worktrees of project (limit 25); this conversation's path: /status")
    expect(text).not.toContain('--json')
    expect(text).not.toContain('**')
  })

  test('remove without a name is the own one, and ends the session', async () => {
    expect(await chat.say('/worktree remove')).toContain(
      'This conversation has no worktree.\nSpecify one: `/worktree remove <name>`. Run `/worktree list` for a list.',
    )
    await chat.say('/worktree create mine')
    const { environmentId } = await chat.conversation()
    const environment = environmentId && (await world.context.store.environments.get(environmentId))
    await chat.startSession(environment ? environment.path : '')
    expect(await chat.say('/worktree remove')).toMatch(
      /^Removed `mine` \(kept for 30 days: \/worktree restore mine\)\n {2}branch deleted/,
    )
    expect((await chat.conversation()).environmentId).toBeUndefined()
    expect(await chat.session()).toBeUndefined()
  })

  test('a refusal names the ways out, and --force keeps what there was', async () => {
    await chat.say('/worktree create mine')
    const path = await ownPath()
    writeFileSync(join(path, 'new'), 'text')
    const refused = await chat.say('/worktree remove')
    expect(refused).toContain('Cannot remove worktree `mine`: 1 untracked')
    expect(refused).toContain('`/worktree remove mine --force`   (kept for 30 days: `/worktree restore mine`)')
    expect(await chat.session()).toBeUndefined()
    expect(await chat.say('/worktree remove --force')).toContain('Removed `mine`')
    const restored = await chat.say('/worktree restore')
    expect(restored).toBe('Restored `mine` for task mine\nThis conversation now works there.')
    expect((await chat.conversation()).environmentId).toBeDefined()
    expect(await chat.say('/diff')).toContain('new  untracked')
  })

  test('what is restored does not take a conversation out of its own worktree', async () => {
    await chat.say('/worktree create first')
    await chat.say('/worktree remove')
    await chat.say('/worktree create second')
    const { environmentId } = await chat.conversation()
    expect(await chat.say('/worktree restore first')).toBe('Restored `first` for task first')
    expect((await chat.conversation()).environmentId).toBe(environmentId)
  })

  test('link shares the worktree, and a forced removal tells the others', async () => {
    await chat.say('/worktree create shared')
    const other = await makeChat(world, { id: 'T2' })
    await other.startSession('/elsewhere')
    expect(await other.say('/worktree link shared')).toBe(
      'Linked this conversation to `shared` of `project`. It now works there.\nShared by test:T1, test:T2.',
    )
    expect(await other.session()).toBeUndefined()
    await other.startSession(await ownPath())
    expect(await chat.say('/worktree remove')).toContain('test:T2 is using it')
    await chat.say('/worktree remove --force')
    expect(await toldIn(world, 'T2')).toEqual([
      'Worktree `shared` was removed (by test:T1). Restore it with `/worktree restore shared`.',
    ])
    const [told] = await world.context.store.outbox.ofConversation({ platform: 'test', conversationId: 'T2' }, 1)
    expect(told?.actions).toEqual([{ label: 'Restore', command: '/worktree restore shared' }])
    expect(await toldIn(world, 'T1')).toEqual([])
    expect((await other.conversation()).environmentId).toBeUndefined()
    expect(await other.session()).toBeUndefined()
  })

  test('an adopted one is let go of, and who asked is not told a second time', async () => {
    const { path } = world.repo.worktree('by-hand', '-b', 'by-hand')
    await world.provider.adopt(world.codebase, path, { createdBy: 'test', aliases: [] })
    await chat.say('/worktree link by-hand')
    expect(await chat.ask('/worktree remove')).toEqual({
      kind: 'answer',
      text: expect.stringMatching(/^Stopped tracking `by-hand`\. Its files are still at .*\.$/),
    })
    expect(await toldIn(world, 'T1')).toEqual([])
    expect((await chat.conversation()).environmentId).toBeUndefined()
  })

  test('a cleanup ends the sessions of all that it takes a worktree from, and tells the others', async () => {
    await using eager = await makeWorld({ settings: { staleDays: 0 } })
    const [mine, other] = [await makeChat(eager), await makeChat(eager, { id: 'T2' })]
    await mine.say('/worktree create shared')
    await other.say('/worktree link shared')
    await mine.startSession('/x')
    await mine.say('/worktree cleanup stale')
    expect(await toldIn(eager, 'T2')).toEqual([expect.stringContaining('was removed (no activity since')])
    expect(await toldIn(eager, 'T1')).toEqual([])
    expect(await mine.session()).toBeUndefined()
  })

  test('cleanup and orphans answer in the words of a chat', async () => {
    // `adopt` takes the branch, so it is never cut.
    const long = `by-hand-${'x'.repeat(40)}`
    world.repo.worktree('by-hand', '-b', long)
    await chat.say('/worktree create mine')
    const lines = (await chat.say('/worktree orphans')).split('\n')
    expect(lines[1]).toMatch(/^BRANCH +TRACKED AS$/)
    expect(lines.slice(2, 5)).toEqual([
      expect.stringMatching(/^main +\(main working tree\)$/),
      `${long}  not tracked`,
      expect.stringMatching(/^mine +task mine$/),
    ])
    expect(lines.at(-1)).toBe('Track one: `/worktree adopt <branch>`')
    expect(await chat.say('/worktree cleanup merged')).toContain('project: 0 worktrees removed.')
  })

  test("adopt tracks what git lists for the conversation's repository, by branch or path, and nothing else", async () => {
    const { path } = world.repo.worktree('by-hand', '-b', 'by-hand')
    const { environments } = world.context.store
    const adopted = async () => (await environments.live(world.codebase.id)).map(({ branch, owned }) => [branch, owned])
    const elsewhere = world.box.repo('elsewhere')
    const refused: [string, string][] = [
      [world.repo.path, 'the main working tree of project'],
      ['main', 'the main working tree of project'],
      [elsewhere.path, 'lists no worktree'],
      [elsewhere.worktree('theirs', '-b', 'theirs').path, 'lists no worktree'],
      ['theirs', 'lists no worktree'],
      [world.box.path('nothing-there'), 'lists no worktree'],
      [`${path}/../by-hand`, 'lists no worktree'],
      ['/etc', 'lists no worktree'],
      [world.repo.worktree('adrift', '--detach').path, 'has no branch checked out'],
    ]
    for (const [ref, why] of refused) expect(await chat.say(`/worktree adopt ${ref}`)).toContain(why)
    expect(await adopted()).toEqual([])
    expect(await chat.say('/worktree adopt by-hand')).toMatch(
      /^Adopted `by-hand` for task by-hand\n {2}Coppice won't delete .*by-hand\n {2}to work there: `\/worktree link by-hand`$/,
    )
    expect(await adopted()).toEqual([['by-hand', false]])
    await chat.say('/worktree create mine')
    await chat.say(`/worktree adopt ${await ownPath()}`)
    expect(await adopted()).toContainEqual(['mine', false])
    expect((await chat.conversation()).environmentId, 'adopting one moves nobody').not.toBeUndefined()
  })

  test('the limit is told as everywhere', async () => {
    await using small = await makeWorld({ settings: { worktreesPerCodebase: 1 } })
    const inSmall = await makeChat(small)
    await inSmall.say('/worktree create one')
    expect(await inSmall.say('/worktree create two')).toBe(
      [
        'You have 1 active worktree for **project** (limit reached).',
        ' 0 merged   0 stale (no activity in 14+ days)   1 active',
        ' `/worktree list` · `/worktree remove <name>`',
      ].join('\n'),
    )
  })

  test('a branch with a backtick cannot break out of its code', async () => {
    expect(await chat.say("/worktree create 'a`b'")).toContain('Created `` a`b `` for')
  })
})

describe('status', () => {
  test('and list count what is merged, but held, as held', async () => {
    const held = await issue(world, 7)
    inside(world, held).commit('a', 'a\n')
    inside(world, held).write('draft', 'mine\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-7')
    expect(await chat.say('/status')).toContain(
      '1 of 25: 0 merged, 0 stale (no activity in 14+ days), 1 held (merged or stale, but in use or with work to keep), 0 active',
    )
    const list = await chat.say('/worktree list')
    expect(list).toContain('yes, held: ancestor of main')
    expect(list).toContain('cleanup: 1 held (merged or stale, but in use or with work to keep)')
  })

  test('names codebase, environment, branch, session, agent and how many worktrees there are', async () => {
    expect(await chat.say('/status')).toContain('**Worktree**: none yet; the first message creates one')
    await chat.say('/worktree create mine')
    await chat.startSession(await ownPath())
    const text = await chat.say('/status')
    expect(text).toContain('**Repository**: `project`')
    expect(text).toContain('**Worktree**: task mine, `')
    expect(text).toContain('**Branch**: `mine`')
    expect(text).toContain('**Session**: demo, last used just now')
    expect(text).toContain('**Worktrees**: 1 of 25: 0 merged, 0 stale (no activity in 14+ days), 1 active')
    expect(text).toContain('**Agent**: demo, the first one that is ready')
    expect(text).not.toContain('**Running**')
    const { environmentId = toEnvironmentId('none') } = await chat.conversation()
    const environment = await world.context.store.environments.get(environmentId)
    if (environment === undefined) throw new Error('it has no environment')
    const lease = await acquireLease(world.context, world.codebase, environment, { purpose: 'agent run for test:T1' })
    expect(await chat.say('/status')).toContain('**Running**: agent run for test:T1')
    await lease.release()
    await world.context.store.environments.transition(environmentId, 'active', 'released')
    await world.context.store.codebases.remove(world.codebase.id)
    expect(await chat.say('/status')).toContain(
      '**Repository**: `project`, no longer registered; choose one with `/codebase',
    )
  })

  test('says which codebase is meant as messages do: also one on another host, and one that is registered again', async () => {
    const { codebases } = world.context.store
    const answers = async () => [await chat.say('/status'), await chat.say('/worktree list')]
    const gone = (why: string) => [
      expect.stringContaining(`**Repository**: \`project\`, ${why}; choose one`),
      expect.stringContaining(`This conversation's repository is ${why}.`),
    ]
    await codebases.remove(world.codebase.id)
    expect(await answers()).toEqual(gone('no longer registered'))
    await codebases.insert({ ...world.codebase, host: 'another-host' })
    expect(await answers()).toEqual(gone('on another host'))
    await codebases.remove(world.codebase.id)
    await codebases.insert(world.codebase)
    expect(await answers()).toEqual([
      expect.stringContaining('**Repository**: `project`\n'),
      expect.stringContaining('project has no worktrees yet'),
    ])
  })
})

describe('codebase', () => {
  test('binding another one ends the session and lets go of the environment, which stays', async () => {
    const other = world.box.repo('other')
    world.box.raw(world.box.root, 'clone', '-q', '--bare', other.path, world.box.path('remote.git'))
    await chat.say('/worktree create mine')
    const { environmentId } = await chat.conversation()
    await chat.startSession(await ownPath())
    // A public address whose ssh runs here.
    const ssh = join(world.box.home, 'ssh.sh')
    writeFileSync(ssh, '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n', { mode: 0o700 })
    appendFileSync(join(world.box.home, '.gitconfig'), `[core]\n\tsshCommand = ${ssh}\n[ssh]\n\tvariant = simple\n`)
    const cloned = await chat.say(`/clone ssh://git@203.0.113.7${world.box.path('remote.git')}`)
    expect(cloned).toBe('Cloned `remote`. This conversation now uses it.')
    expect(await chat.session()).toBeUndefined()
    expect((await chat.conversation()).environmentId).toBeUndefined()
    expect((await world.context.store.environments.get(environmentId ?? ('' as never)))?.status).toBe('active')
    expect(await chat.say('/codebases')).toMatch(/^```\n[\s\S]*project[\s\S]*remote/)
    expect(await chat.say('/codebase project')).toContain('This conversation now uses `project`')
    expect(await chat.say('/codebase project')).toBe('This conversation already uses `project`.')
    expect(await chat.say('/codebase list')).toBe(await chat.say('/codebases'))
  })

  test.each(['file:///etc', '/etc', 'https://127.0.0.1/a/b', 'https://localhost/a/b', 'git@10.0.0.1:a/b'])(
    'a chat clones nothing of this machine or its network: %s',
    async (url) => {
      expect(await chat.say(`/clone ${url}`)).toMatch(/^This can't be cloned from a chat/)
      expect(await world.context.store.codebases.list(world.context.host)).toHaveLength(1)
    },
  )

  test('the same one again changes nothing', async () => {
    await chat.say('/worktree create mine')
    await chat.startSession(await ownPath())
    await chat.say('/codebase project')
    expect(await chat.session()).toBeDefined()
    expect((await chat.conversation()).environmentId).toBeDefined()
  })
})

describe('agent, reset and stop', () => {
  test('another agent ends the session, the same one does not', async () => {
    await chat.startSession('/x')
    expect(await chat.say('/agent')).toContain('This conversation uses `demo`: the first one that is ready.')
    expect(await chat.say('/agent demo')).toBe('This conversation now uses `demo`.')
    expect(await chat.session()).toBeDefined()
    expect(await chat.say('/agent other')).toBe('This conversation now uses `other`.')
    expect(await chat.session()).toBeUndefined()
    expect((await chat.conversation()).agent).toBe('other')
  })

  test('an unknown agent gets the list, and changes nothing', async () => {
    await chat.startSession('/x')
    expect(await chat.say('/agent demp')).toBe('Unknown agent "demp".\nDid you mean demo? Available: demo, other.')
    expect((await chat.conversation()).agent).toBeUndefined()
    expect(await chat.session()).toBeDefined()
  })

  test('an agent that cannot work says what it lacks', async () => {
    const missing = await makeChat(world, { id: 'T3', agents: [missingAgent('claude'), readyAgent('demo')] })
    expect(await missing.say('/agent claude')).toBe(
      "This conversation now uses `claude`.\nIt isn't ready: claude is not installed. Install claude.",
    )
  })

  test('reset ends the session and nothing else', async () => {
    await chat.say('/worktree create mine')
    await chat.startSession(await ownPath())
    expect(await chat.say('/reset')).toContain('Session ended.')
    expect(await chat.session()).toBeUndefined()
    expect((await chat.conversation()).environmentId).toBeDefined()
    expect(await chat.say('/reset')).toContain('No active session')
  })

  test('stop asks whoever runs it', async () => {
    expect(await chat.say('/stop')).toBe('Nothing is running here.')
    const running = await makeChat(world, { id: 'T4', running: true })
    expect(await running.say('/stop')).toContain('Stopped')
    expect(running.stops).toEqual(['T4'])
  })
})

describe('diff', () => {
  test('shows what was committed and what was not', async () => {
    await chat.say('/worktree create mine')
    expect(await chat.say('/diff')).toBe('`mine`: no changes since `main`.')
    const path = await ownPath()
    const write = (file: string, text: string | Buffer): void => writeFileSync(join(path, file), text)
    write('committed', 'a\nb\n')
    write('picture', Buffer.from([0, 1, 2, 3]))
    world.box.raw(path, 'add', '.')
    world.box.raw(path, 'commit', '-q', '-m', 'work')
    write('README', 'changed\n')
    write('new', 'x')
    // Base has moved on: that is not the environment's doing.
    world.repo.commit('elsewhere', 'text')
    const text = await chat.say('/diff')
    expect(text).toBe(
      [
        '`mine`: 4 files changed since `main`, +3 -1',
        '```',
        '+1  -1  README     uncommitted',
        '+2  -0  committed',
        '        picture',
        '        new        untracked',
        '```',
      ].join('\n'),
    )
  })

  test('is cut where nobody would read on', async () => {
    await chat.say('/worktree create mine')
    const path = await ownPath()
    for (let i = 0; i < 60; i++) writeFileSync(join(path, `file-${i}`), '')
    const text = await chat.say('/diff')
    expect(text).toContain('60 files')
    expect(text).toContain('… and 10 more files')
  })
})

const ownPath = async (): Promise<string> => {
  const { environmentId } = await chat.conversation()
  const environment = environmentId && (await world.context.store.environments.get(environmentId))
  if (!environment) throw new Error('the conversation has no environment')
  return environment.path
}

/** What was recorded to be said there. */
const toldIn = async (of: World, conversationId: string): Promise<string[]> =>
  (await of.context.store.outbox.ofConversation({ platform: 'test', conversationId }, 10)).map(({ text }) => text)
