import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { chatContext } from '../../test/helpers/chat.ts'
import { handleOne } from '../../test/helpers/send.ts'
import { makeWorld, type World } from '../../test/helpers/world.ts'
import { createAcpAgent } from '../agents/acp/agent.ts'
import { sessionLostNotice, writableNotice } from './notices.ts'

/** A conversation with an agent that speaks the Agent Client Protocol: `test/helpers/acp/agent.ts`. */

const program = fileURLToPath(new URL('../../test/helpers/acp/agent.ts', import.meta.url))

let world: World
beforeEach(async () => {
  world = await makeWorld()
  mkdirSync(world.box.path('traces'))
})
afterEach(() => world[Symbol.asyncDispose]())

/** Says something in the one conversation that there is; answers with what is new in it. */
const talkTo = (behaviour: string): ((text: string) => Promise<string[]>) => {
  const agent = createAcpAgent({
    name: 'tester',
    command: [process.execPath, program, behaviour, world.box.path('traces')],
    variables: {},
    forks: false,
    permissions: 'allow',
    silenceMs: 60_000,
    clock: Date.now,
    ids: randomUUID,
    ownEnvironment: world.box.env,
    contextDirectory: world.box.path('contexts'),
  })
  const context = chatContext(world, [agent])
  const thread = { platform: 'test', conversationId: 'T1' }
  let seen = 0
  return async (text) => {
    await handleOne(context, { ...thread, text })
    const all = await world.context.store.outbox.ofConversation(thread, 50)
    const fresh = all.slice(seen).map((reply) => reply.text)
    seen = all.length
    return fresh
  }
}

const sessions = (): string[] => readFileSync(world.box.path('traces', 'sessions'), 'utf8').trim().split('\n')

test('/worktree create keeps the session: the agent goes on in the new worktree', async () => {
  const say = talkTo('works')
  const [place, first] = await say('remember the heron')
  expect([place, first]).toEqual([expect.stringMatching(/^Working in/), expect.stringContaining('remember the heron')])
  await say('/worktree create other')
  expect(await say('which bird was it?')).toEqual([expect.stringContaining('which bird was it?')])
  expect(sessions(), 'one session, resumed').toHaveLength(1)
  const other = await world.context.store.environments.liveByBranch(world.codebase.id, 'other')
  expect(readFileSync(`${other?.path ?? ''}/done.txt`, 'utf8'), 'where it now works').toBe('which bird was it?')
})

test.each([
  ['keeps its sessions in the directory that they began in', 'stays'],
  ['cannot resume at all', 'forgets'],
])('an agent that %s: the thread is told that it forgot, once', async (_what, behaviour) => {
  const say = talkTo(behaviour)
  await say('remember the heron')
  expect(await say('in the same place'), 'as usual').not.toContain(sessionLostNotice)
  await say('/worktree create other')
  expect(await say('which bird was it?')).toEqual([sessionLostNotice, expect.any(String)])
  expect(await say('and now?')).not.toContain(sessionLostNotice)
})

test.each([
  ['has no read-only mode', 'echoes', true],
  ['has one', 'modes', false],
])(
  'a read-only command with an agent that %s: the thread is told if it could have written',
  async (_, behaviour, told) => {
    world.repo.commit('.coppice/commands/look.md', '---\ntype: read\n---\nLook around.')
    const said = await talkTo(behaviour)('/look')
    expect(said.includes(writableNotice)).toBe(told)
    expect(said.at(-1)).toContain('Look around.')
  },
)
