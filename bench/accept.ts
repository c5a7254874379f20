import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { toCodebaseId } from '../src/domain/names.ts'
import { populate } from './populate.ts'
import { count, interleaved, median, type Row } from './measure.ts'
import { plainGit } from './plain-git.ts'
import type { SendResult, SendRequest } from './accept-sender.ts'
import type { ServerKind, ServerMessage } from './accept-server.ts'
import { openWorld, type Bench, type Stage, type World } from './stage.ts'

const conversations = 1_000
const connections = 64

export const accept: Bench = {
  name: 'accept',
  title: 'accepting messages',
  description:
    '*Accepted per second*: `POST /api/conversations/{id}/messages` to a server process, 4,000 messages per round to 1,000 conversations, from another process over 64 persistent connections with one request in flight on each. Includes all guards (Host, Origin, token, rate, body), validation and the durable write (SQLite, `synchronous=full`; messages that arrive during one flush share the next). Nothing processes the messages meanwhile. Baseline: the same server, route and guards, with an `accept` that answers without the store. The client writes prepared bytes to plain sockets, so the server is what is measured. The cost of a flush depends on the disk: see the file system below.\n\n' +
    '*Drained*: 1,000 conversations, each attached to its own environment beforehand, get 10 messages each over the same connections while the server processes them, 10 at a time. The agent echoes its prompt and starts no process, and the codebase is a bare repository without a shared checkout to watch: this measures the queue, leases, sessions and outbox. Checked afterwards, untimed: the agent got each message once, in order within its conversation, and each conversation has its 10 replies, sent once, in order. One run, since it is about counts.',
  measure: async (stage) => [await acceptedRow(stage), await drainedRow(stage)],
}

const acceptedRow = async (stage: Stage): Promise<Row> => {
  await using writes = await startAcceptServer('accepts', stage.copy(3_000))
  await using answers = await startAcceptServer('answers', stage.copy(3_000))
  await using sender = await startSender()
  const side = (serving: AcceptServer) => ({
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
    await populate(stage, world, 1, conversations + 1)
    await bindAll(world)
  }
  await using serving = await startAcceptServer('works', root)
  await using sender = await startSender()
  await using world = await openWorld(stage.box, root)
  const began = performance.now()
  const { ms } = await sender.send({ ...serving, connections, conversations, each, round: 'r' })
  await untilDrained(world)
  const took = performance.now() - began
  const problems = await findProblems(world, await serving.prompts())
  for (const what of problems.slice(0, 10)) stage.log(`  ${what}`)
  const all = conversations * each
  return {
    figure: 'drain 1,000 conversations with 10 messages each',
    ours: [took],
    raw: undefined,
    result: `${problems.length} lost, duplicated or out of order; accepted in ${(ms / 1000).toFixed(1)} s during processing, all ${count(all)} answered at ${count(Math.round(all / (took / 1000)))}/s`,
    toReach: 'none lost or duplicated, in order',
    reached: problems.length === 0,
  }
}

/** The same repository without a checkout, registered under another name. */
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

const findProblems = async ({ context: { store } }: World, prompts: readonly string[]): Promise<string[]> => {
  const given = Map.groupBy(prompts, (prompt) => prompt.split(' ')[0] ?? '')
  const expected = Array.from({ length: each }, (_, n) => `m${n + 1}`).join()
  const numbers = (texts: readonly string[]): string => texts.map((text) => text.split(' ')[1]).join()
  const problems: string[] = []
  for (let i = 0; i < conversations; i += 1) {
    const name = `c${i}`
    const runs = numbers(given.get(name) ?? [])
    if (runs !== expected) problems.push(`${name}: the agent was given ${runs}`)
    const said = await store.outbox.ofConversation({ platform: 'web', conversationId: name }, 100)
    const replies = said.filter(({ role }) => role === 'agent')
    const sent = numbers(replies.filter(({ state }) => state === 'sent').map(({ text }) => text))
    if (sent !== expected || replies.length !== each) problems.push(`${name}: ${replies.length} replies, sent ${sent}`)
    // Each conversation is told once where it works; one that waits for 30 seconds is told that, too.
    const notices = said.filter(({ role, key }) => role !== 'agent' && key !== 'waiting')
    if (notices.length !== 1) problems.push(`${name}: ${notices.length} notices instead of one`)
    if (replies.some(({ text }) => !text.startsWith(`${name} `)))
      problems.push(`${name}: a reply from another conversation`)
  }
  return problems
}

type AcceptServer = AsyncDisposable & {
  readonly port: number
  readonly token: string
  prompts(): Promise<readonly string[]>
}

const startAcceptServer = async (kind: ServerKind, root: string): Promise<AcceptServer> => {
  const child = fork(fileURLToPath(new URL('accept-server.ts', import.meta.url)), [root, kind])
  const first = await nextMessage<ServerMessage>(child)
  if (!('port' in first)) throw new Error('unexpected message from the server')
  return {
    port: first.port,
    token: first.token,
    prompts: async () => {
      child.send('prompts')
      const answer = await nextMessage<ServerMessage>(child)
      return 'prompts' in answer ? answer.prompts : []
    },
    [Symbol.asyncDispose]: async () => {
      child.send('stop')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}

type Sender = AsyncDisposable & { send(request: SendRequest): Promise<SendResult> }

const startSender = async (): Promise<Sender> => {
  const child = fork(fileURLToPath(new URL('accept-sender.ts', import.meta.url)))
  await nextMessage(child)
  return {
    send: async ({ port, token, ...request }) => {
      child.send({ port, token, ...request })
      const answer = await nextMessage<SendResult>(child)
      const wanted = request.conversations * request.each
      if (answer.accepted !== wanted) throw new Error(`${answer.accepted} of ${wanted} accepted: ${answer.refused[0]}`)
      return answer
    },
    [Symbol.asyncDispose]: async () => void child.kill(),
  }
}

const nextMessage = <T>(child: ChildProcess): Promise<T> =>
  new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('a benchmark process exited early'))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(message as T)
    })
  })
