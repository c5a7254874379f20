import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hookKeys, type HookSettings } from '../../src/domain/config/hooks.ts'
import type { FleetEvent } from '../../src/domain/fleet/event.ts'
import type { Item } from '../../src/domain/fleet/item.ts'
import { createHooks, deliverOnce } from '../../src/fleet/events/hooks.ts'
import type { HookContext } from '../../src/fleet/events/hook.ts'
import { recordEvent } from '../../src/fleet/events/record.ts'
import { hookContext } from '../../src/main/hooks.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import { identifySync } from '../../src/process/identity.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { fleetIn } from '../helpers/fleet.ts'
import { isAlive } from '../helpers/server-process.ts'
import { makeWorld, type World } from '../helpers/world.ts'

/** Hooks over a real store, with real commands and a real HTTP server. */
let world: World
let shift = 0
let logged: string[] = []

beforeEach(async () => {
  shift = 0
  logged = []
  const secrets = createSecrets(['hunter2-hunter2'])
  const clock = (): number => Date.now() + shift
  const log = createLogger({ write: (line) => logged.push(line), level: 'debug', clock, redact: secrets.redact })
  world = await makeWorld({ context: { clock, log, secrets } })
})
afterEach(() => world[Symbol.asyncDispose]())

type Written = Readonly<Record<string, unknown>>

/** As they are written in `config.yaml`. */
const read = (...written: readonly Written[]): readonly HookSettings[] => {
  const { keys, finish } = hookKeys()
  const entries = written.map(
    (entry) => new Map(Object.entries(entry).map(([key, value]) => [key, keys.get(key)?.read(value)])),
  )
  const finished = finish(entries)
  if ('problem' in finished) throw new Error(finished.problem)
  return finished.value
}

const contextOf = async (...written: readonly Written[]): Promise<HookContext> => {
  const isolation = { ...world.context, settings: { ...world.context.settings, hooks: read(...written) } }
  const { redact } = isolation.secrets
  const fleet = async () => ({
    ...fleetIn(isolation, world.box.env),
    redact,
    notify: (store: typeof isolation.store, event: FleetEvent) => recordEvent({ isolation, redact }, store, event),
  })
  const context = await hookContext({ context: isolation, fleet, platforms: async () => knownPlatforms })
  return context ?? expect.unreachable()
}

const item = (change: Partial<Item> = {}): Item => ({
  id: 7,
  codebaseId: world.codebase.id,
  title: 'Fix login',
  body: '',
  priority: 2,
  state: 'parked',
  after: [],
  environmentId: undefined,
  source: undefined,
  parked: undefined,
  pullRequest: undefined,
  createdBy: 'cli',
  createdAt: 0,
  updatedAt: 0,
  ...change,
})

const record = async (...events: FleetEvent[]): Promise<void> => {
  const { store, secrets } = world.context
  for (const event of events) {
    await store.transaction((inside) =>
      recordEvent({ isolation: world.context, redact: secrets.redact }, inside, event),
    )
  }
}

const landed = (title = 'Fix login'): FleetEvent => ({ kind: 'landed', item: item({ title }) })
const asked = (note: string, title?: string): FleetEvent => ({
  kind: 'parked',
  item: item(title === undefined ? {} : { title }),
  reason: { kind: 'asked', note },
})

const deliver = (context: HookContext, from: number | 'now' = 0): Promise<void> =>
  deliverOnce(context, { from: from === 'now' ? undefined : from, signal: new AbortController().signal })

const homeFile = (name: string): string => join(world.context.home, name)
const linesOf = (name: string): string[] =>
  existsSync(homeFile(name)) ? readFileSync(homeFile(name), 'utf8').split('\n').slice(0, -1) : []
const kindsRecorded = async (): Promise<string[]> =>
  (await world.context.store.events.page({ after: 0, limit: 100 })).map(({ kind }) => kind)
const positions = async (): Promise<number[]> =>
  (await world.context.store.hooks.list(world.context.host)).map(({ position }) => position)

type Received = { readonly headers: IncomingMessage['headers']; readonly body: string; readonly path: string }

/** A receiver of webhooks. */
const receiver = async (answer: (response: ServerResponse, count: number) => void) => {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      received.push({ headers: request.headers, body, path: request.url ?? '' })
      answer(response, received.length)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    received,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

describe('a command', () => {
  test('gets the events that it asks for, in order, as JSON and in variables', async () => {
    const context = await contextOf({
      on: ['needs-you', 'landed'],
      command: 'cat >> events.jsonl; echo "$COPPICE_EVENT_NUMBER|$COPPICE_EVENT_KIND|$COPPICE_EVENT_TEXT" >> log',
    })
    await record(asked('Which API?'), { kind: 'closed', item: item() }, landed())
    await deliver(context)
    expect(linesOf('log')).toEqual([
      '1|parked|Item 7 (Fix login) needs you: Which API?',
      '3|landed|Item 7 (Fix login) has landed.',
    ])
    expect(linesOf('events.jsonl').map((line) => JSON.parse(line) as unknown)).toMatchObject([
      {
        number: 1,
        kind: 'parked',
        needsYou: true,
        codebase: 'project',
        item: 7,
        title: 'Fix login',
        message: 'Item 7 (Fix login) needs you: Which API?',
        details: { reason: { kind: 'asked', note: 'Which API?' } },
      },
      { number: 3, kind: 'landed', needsYou: false, details: {} },
    ])
    await deliver(context)
    expect(linesOf('log')).toHaveLength(2)
  })

  test("never has an event's text in its command line", async () => {
    const context = await contextOf({ on: 'landed', command: 'printf "%s\\n" "$COPPICE_EVENT_TITLE" >> log' })
    await record(landed('"; touch pwned; `touch pwned` $(touch pwned)\' ; touch pwned #'), landed('a\0b'))
    await deliver(context)
    expect(existsSync(homeFile('pwned'))).toBe(false)
    expect(linesOf('log')).toEqual(['"; touch pwned; `touch pwned` $(touch pwned)\' ; touch pwned #', 'ab'])
  })

  test('gets the allowed variables and no secret', async () => {
    const context = await contextOf({ on: 'landed', command: 'env > variables' })
    const ownEnvironment = { ...world.box.env, GITHUB_TOKEN: 'ghp_canary', COPPICE_DATABASE_URL: 'postgres://canary' }
    await record(landed())
    await deliver({ ...context, isolation: { ...context.isolation, ownEnvironment } })
    const names = linesOf('variables').map((line) => line.split('=')[0] ?? '')
    expect(names).toContain('COPPICE_EVENT_TEXT')
    const shells = ['PWD', 'OLDPWD', 'SHLVL', '_', 'COPPICE_HOME']
    const others = names.filter((name) => !name.startsWith('COPPICE_EVENT_') && !shells.includes(name))
    expect(others.filter((name) => !(name in world.context.programEnvironment))).toEqual([])
    expect(linesOf('variables').join('\n')).not.toContain('canary')
  })

  test('that hangs is ended with all that it started, and delays no other hook', async () => {
    const hanging = `echo $$ >> pids; trap '' TERM; (setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 600' &); sleep 600`
    const context = await contextOf(
      { on: 'landed', command: hanging, timeout: '1s' },
      { on: 'landed', command: 'echo "$COPPICE_EVENT_NUMBER" >> log' },
    )
    const hooks = createHooks(context)
    await hooks.start()
    await record(landed(), landed())
    // Before the time-out of the other: it runs only once.
    await expect.poll(() => linesOf('log')).toEqual(['1', '2'])
    await expect.poll(() => logged.join('')).toContain('it took longer than 1 s')
    await hooks.stop(0)
    const pids = linesOf('pids').map(Number)
    expect(pids).toHaveLength(2)
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
  })

  test('is tried again later, then skipped: the failure is recorded, and the next event is delivered', async () => {
    const context = await contextOf({
      on: ['landed', 'closed'],
      command: 'echo "$COPPICE_EVENT_NUMBER" >> log; echo hunter2-hunter2; [ "$COPPICE_EVENT_KIND" = closed ]',
    })
    await record(landed(), { kind: 'closed', item: item() })
    await deliver(context)
    await deliver(context)
    expect(linesOf('log'), 'not before the pause is over').toEqual(['1'])
    for (let round = 0; round < 6; round += 1) {
      shift += 600_000
      await deliver(context)
    }
    expect(await world.context.store.hooks.list(world.context.host)).toMatchObject([
      { attempts: 7, failure: { error: expect.stringMatching(/^it failed with exit code 1: (?!hunter2)/) as string } },
    ])
    shift += 600_000
    await deliver(context)
    expect(linesOf('log')).toEqual([...Array<string>(8).fill('1'), '2'])
    expect(await kindsRecorded()).toEqual(['landed', 'closed', 'hook-failed'])
    const [failure] = await world.context.store.events.page({ after: 2, limit: 1 })
    expect(failure?.event).toMatchObject({ hook: 'hook 1 (command)', event: 1 })
    expect(JSON.stringify(failure)).toContain('failed with exit code 1')
    const kept = await world.context.store.hooks.list(world.context.host)
    expect(JSON.stringify([failure, logged, kept])).not.toContain('hunter2')
  })

  test('that runs when we stop is ended and delivered again at the next start', async () => {
    const context = await contextOf({ on: 'landed', command: 'echo began >> log; [ -e go ] || sleep 600' })
    const hooks = createHooks(context)
    await hooks.start()
    await record(landed())
    await expect.poll(() => linesOf('log')).toEqual(['began'])
    await hooks.stop(0)
    // That wasn't a failure.
    expect(await world.context.store.hooks.list(world.context.host)).toMatchObject([{ position: 0, attempts: 0 }])
    const again = createHooks(await contextOf({ on: 'landed', command: 'echo began >> log; [ -e go ] || sleep 600' }))
    world.box.raw(world.context.home, 'init', '-q', 'go')
    await again.start()
    await expect.poll(positions).toEqual([1])
    await again.stop(5_000)
    expect(linesOf('log')).toEqual(['began', 'began'])
  })
})

describe('a hook', () => {
  const toLog = { on: 'landed', command: 'echo "$COPPICE_EVENT_NUMBER" >> log' }

  test('that is new starts now, goes on where it was after a restart, and starts anew once it was gone', async () => {
    await record(landed())
    await deliver(await contextOf(toLog), 'now')
    await record(landed())
    // Its place in the file and its events don't matter.
    await deliver(await contextOf({ command: 'true' }, { ...toLog, on: ['landed', 'closed'] }), 'now')
    expect(linesOf('log')).toEqual(['2'])
    await deliver(await contextOf({ command: 'true' }), 'now')
    await record(landed())
    await deliver(await contextOf(toLog), 'now')
    expect(linesOf('log')).toEqual(['2'])
    await record(landed())
    await deliver(await contextOf(toLog), 'now')
    expect(linesOf('log')).toEqual(['2', '4'])
  })

  test('is served by one process at a time; after its death by another', async () => {
    const context = await contextOf(toLog)
    const { store, host } = world.context
    await record(landed())
    const other = spawn('sleep', ['600'])
    await once(other, 'spawn')
    const holder = identifySync(other.pid ?? 0)
    const [key = ''] = await (async () => {
      await deliver(context, 1)
      return (await store.hooks.list(host)).map((hook) => hook.key)
    })()
    await store.hooks.claim(host, key, undefined, holder)
    await record(landed())
    await deliver(context)
    expect(linesOf('log')).toEqual([])
    other.kill('SIGKILL')
    await once(other, 'exit')
    await deliver(context)
    expect(linesOf('log')).toEqual(['2'])
  })

  test('delivers what other processes of this home have recorded, when it is told to look', async () => {
    const context = await contextOf(toLog)
    const hooks = createHooks(context)
    await hooks.start()
    await record(landed())
    await expect.poll(() => linesOf('log')).toEqual(['1'])
    hooks.kick()
    await record(landed())
    await expect.poll(() => linesOf('log')).toEqual(['1', '2'])
    await hooks.stop(5_000)
    await record(landed())
    hooks.kick()
    expect(linesOf('log')).toEqual(['1', '2'])
  })
})

describe('a webhook', () => {
  test('gets signed JSON, again with the same number until it accepts', async () => {
    await using server = await receiver((response, count) => response.writeHead(count === 1 ? 500 : 204).end())
    const context = await contextOf({ on: 'landed', webhook: `${server.url}/hook?token=t0ken-t0ken`, secret: 's3cret' })
    await record(landed(), landed('Second'))
    await deliver(context)
    shift += 10_000
    await deliver(context)
    expect(server.received.map(({ headers }) => headers['x-coppice-delivery'])).toEqual(['1', '1', '2'])
    const [first] = server.received
    expect(first?.path).toBe('/hook?token=t0ken-t0ken')
    expect(JSON.parse(first?.body ?? '')).toMatchObject({ number: 1, kind: 'landed', item: 7 })
    const signature = createHmac('sha256', 's3cret')
      .update(first?.body ?? '')
      .digest('hex')
    expect(first?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-coppice-event': 'landed',
      'x-coppice-signature-256': `sha256=${signature}`,
    })
    const kept = JSON.stringify([logged, await world.context.store.hooks.list(world.context.host)])
    expect(kept).toContain('status 500')
    expect(kept).not.toMatch(/t0ken|s3cret/)
  })

  test("isn't followed to another place", async () => {
    await using elsewhere = await receiver((response) => response.writeHead(200).end())
    await using server = await receiver((response) => response.writeHead(307, { location: elsewhere.url }).end())
    await record(landed())
    await deliver(await contextOf({ on: 'landed', webhook: server.url }))
    expect([server.received.length, elsewhere.received.length]).toEqual([1, 0])
    expect(await positions()).toEqual([0])
    expect(logged.join('')).toContain('a redirect, which is not followed')
  })

  test('that hangs, in its head or in its body, or that is not there, counts as failed', async () => {
    await using silent = await receiver(() => undefined)
    await using endless = await receiver((response) => void response.writeHead(200).write('x'))
    await record(landed())
    const closed = await receiver(() => undefined)
    await closed[Symbol.asyncDispose]()
    const unreachable = `${closed.url}/secret-path`
    await deliver(
      await contextOf(
        { on: 'landed', webhook: silent.url, timeout: '1s' },
        { on: 'landed', webhook: endless.url, timeout: '1s' },
        { on: 'landed', webhook: unreachable },
      ),
    )
    // Whatever it answers isn't read: the status is enough.
    expect((await positions()).toSorted((a, b) => a - b)).toEqual([0, 0, 1])
    const failures = (await world.context.store.hooks.list(world.context.host)).map(({ failure }) => failure?.error)
    expect(new Set(failures)).toEqual(
      new Set(["it couldn't be reached (ECONNREFUSED)", 'it took longer than 1 s', undefined]),
    )
    expect(logged.join('')).not.toContain('secret-path')
  })
})

describe('a message into a conversation', () => {
  const to = { platform: 'slack', conversationId: 'C123:456' }
  const messages = async (): Promise<string[]> =>
    (await world.context.store.outbox.ofConversation(to, 100)).map(({ text }) => text)

  test('is put into the outbox once, together with the position', async () => {
    const context = await contextOf({ conversation: 'slack:C123:456' })
    await record(asked('the password is hunter2-hunter2'), landed(), asked('Which API?'))
    const crashed = { ...context, post: async () => Promise.reject(new Error('crashed')) }
    await expect(deliver(crashed)).rejects.toThrow('crashed')
    expect([await messages(), await positions()]).toEqual([[], [0]])
    await deliver(context)
    await deliver(context)
    expect(await messages()).toEqual([
      expect.stringMatching(/^Item 7 \(Fix login\) needs you: the password is (?!hunter2)/),
      'Item 7 (Fix login) needs you: Which API?',
    ])
    expect(await positions()).toEqual([3])
  })

  test('on a platform that is unknown is a failure', async () => {
    await record(asked('Which API?'))
    await deliver(await contextOf({ conversation: 'carrier-pigeon:7' }))
    expect(logged.join('')).toContain('unknown platform \\"carrier-pigeon\\"')
  })
})
