import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { toCodebaseId } from '../src/domain/names.ts'
import { furnish } from './furnished.ts'
import { count, interleaved, median, type Row } from './measure.ts'
import { plainGit } from './plain-git.ts'
import type { SendAnswer, SendRequest } from './sender.ts'
import type { ServingKind, ServingSays } from './serving.ts'
import { openWorld, type Bench, type Stage, type World } from './stage.ts'

const conversations = 1_000
const connections = 64

export const accept: Bench = {
  name: 'accept',
  title: 'accepting messages',
  inside:
    '*Accepted per second*: `POST /api/conversations/{id}/messages` of a server process, 4,000 messages a round to 1,000 conversations, from another process over 64 connections that stay open, one request in flight on each: all guards (Host, Origin, token, rate, body), validation, and the row written durably (SQLite, `synchronous=full`, messages that arrive during one flush share the next). The messages aren’t processed in the meantime. Against: the same server with the same route and the same guards, whose `accept` answers without the store. The sending process writes prepared bytes to plain sockets, so that only the server is measured. The cost of a flush depends on the disk: see the file system below.\n\n' +
    '*Drained*: 1,000 conversations, each bound to its own environment beforehand, get 10 messages each over the same connections while the server processes them, 10 at once. The agent echoes the message and starts no process, and the codebase is a bare repository, which has no shared checkout to watch: this measures the queue, the leases, the sessions and the outbox. Verified at the end, off the clock: the agent got each message once, in order within its conversation, and each conversation has its 10 replies, sent once, in order. One run, since only counts matter.',
  measure: async (stage) => [await acceptedRow(stage), await drainedRow(stage)],
}

const acceptedRow = async (stage: Stage): Promise<Row> => {
  await using writes = await startServing('accepts', stage.copy(3_000))
  await using answers = await startServing('answers', stage.copy(3_000))
  await using sender = await startSender()
  const side = (serving: Serving) => ({
    run: async (round: number) => {
      await sender.send({ ...serving, connections, conversations, each: 4, round: `r${round}` })
    },
  })
  const { ours, raw } = await interleaved({ ours: side(writes), raw: side(answers) }, { rounds: 7 })
  const ratio = median(raw) / median(ours)
  const perSecond = (samples: readonly number[]): string =>
    count(Math.round((conversations * 4) / (median(samples) / 1000)))
  return {
    figure: '4,000 messages accepted durably, against answering without writing',
    ours,
    raw,
    result: `${ratio.toFixed(2)}× the rate (${perSecond(ours)}/s against ${perSecond(raw)}/s)`,
    toReach: '≥ 0.3× the rate',
    reached: ratio >= 0.3,
  }
}

const each = 10

const drainedRow = async (stage: Stage): Promise<Row> => {
  const root = stage.copy(3_000)
  {
    await using world = await bareWorld(stage, root)
    await furnish(stage, world, 1, conversations + 1)
    await bindAll(world)
  }
  await using serving = await startServing('works', root)
  await using sender = await startSender()
  await using world = await openWorld(stage.box, root)
  const began = performance.now()
  const { ms } = await sender.send({ ...serving, connections, conversations, each, round: 'r' })
  await untilDrained(world)
  const took = performance.now() - began
  const wrong = await wrongs(world, await serving.prompts())
  for (const what of wrong.slice(0, 10)) stage.log(`  ${what}`)
  const all = conversations * each
  return {
    figure: '1,000 conversations with 10 messages each drain',
    ours: [took],
    raw: undefined,
    result: `${wrong.length} lost, doubled or out of order; accepted in ${(ms / 1000).toFixed(1)} s while it works, all ${count(all)} answered at ${count(Math.round(all / (took / 1000)))}/s`,
    toReach: 'none lost, none doubled, in order',
    reached: wrong.length === 0,
  }
}

/** The same repository without a checkout, registered under a name of its own. */
const bareWorld = async ({ box }: Stage, root: string): Promise<World> => {
  const world = await openWorld(box, root)
  const bare = join(root, 'bare.git')
  plainGit(box, root, 'clone', '-q', '--bare', join(root, 'project'), bare)
  const codebase = {
    ...world.codebase,
    id: toCodebaseId('bare'),
    name: 'bare',
    repoPath: bare,
    checkoutPath: undefined,
  }
  await world.context.store.codebases.insert(codebase)
  return {
    ...world,
    checkout: bare,
    codebase,
    raw: (...args) => plainGit(box, bare, ...args),
    // Only the store: the directory is still needed.
    [Symbol.asyncDispose]: () => world.context.store.close(),
  }
}

const bindAll = async ({ context, codebase }: World): Promise<void> => {
  const now = context.clock()
  for (const [i, environment] of (await context.store.environments.live(codebase.id)).entries()) {
    await context.store.conversations.ensure({
      id: context.ids(),
      platform: 'web',
      conversationId: `c${i}`,
      codebaseId: codebase.id,
      environmentId: environment.id,
      persistent: false,
      agent: undefined,
      lastActivityAt: now,
      closedAt: undefined,
      createdAt: now,
    })
  }
}

const untilDrained = async ({ context: { store } }: World): Promise<void> => {
  for (;;) {
    const [inbox, outbox] = [await store.inbox.counts(), await store.outbox.counts()]
    if (inbox.waiting + inbox.running + outbox.waiting === 0) return
    await delay(200)
  }
}

const wrongs = async ({ context: { store } }: World, prompts: readonly string[]): Promise<string[]> => {
  const given = Map.groupBy(prompts, (prompt) => prompt.split(' ')[0] ?? '')
  const expected = Array.from({ length: each }, (_, n) => `m${n + 1}`).join()
  const numbers = (texts: readonly string[]): string => texts.map((text) => text.split(' ')[1]).join()
  const wrong: string[] = []
  for (let i = 0; i < conversations; i += 1) {
    const name = `c${i}`
    const runs = numbers(given.get(name) ?? [])
    if (runs !== expected) wrong.push(`${name}: the agent was given ${runs}`)
    const said = await store.outbox.ofConversation({ platform: 'web', conversationId: name }, 100)
    // Whoever waited for over 30 seconds was told so, which is a reply of ours and not the agent's.
    const replies = said.filter(({ key }) => key !== 'waiting')
    const sent = numbers(replies.filter(({ state }) => state === 'sent').map(({ text }) => text))
    if (sent !== expected || replies.length !== each) wrong.push(`${name}: ${replies.length} replies, sent ${sent}`)
    if (replies.some(({ text }) => !text.startsWith(`${name} `))) wrong.push(`${name}: a reply of another conversation`)
  }
  return wrong
}

type Serving = AsyncDisposable & {
  readonly port: number
  readonly token: string
  prompts(): Promise<readonly string[]>
}

const startServing = async (kind: ServingKind, root: string): Promise<Serving> => {
  const child = fork(fileURLToPath(new URL('serving.ts', import.meta.url)), [root, kind])
  const first = await told<ServingSays>(child)
  if (!('port' in first)) throw new Error('the server said something else')
  return {
    port: first.port,
    token: first.token,
    prompts: async () => {
      child.send('prompts')
      const answer = await told<ServingSays>(child)
      return 'prompts' in answer ? answer.prompts : []
    },
    [Symbol.asyncDispose]: async () => {
      child.send('stop')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}

type Sender = AsyncDisposable & { send(request: SendRequest): Promise<SendAnswer> }

const startSender = async (): Promise<Sender> => {
  const child = fork(fileURLToPath(new URL('sender.ts', import.meta.url)))
  await told(child)
  return {
    send: async ({ port, token, ...request }) => {
      child.send({ port, token, ...request })
      const answer = await told<SendAnswer>(child)
      const wanted = request.conversations * request.each
      if (answer.accepted !== wanted) throw new Error(`${answer.accepted} of ${wanted} accepted: ${answer.refused[0]}`)
      return answer
    },
    [Symbol.asyncDispose]: async () => void child.kill(),
  }
}

const told = <T>(child: ChildProcess): Promise<T> =>
  new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('a process of the bench ended early'))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(message as T)
    })
  })
