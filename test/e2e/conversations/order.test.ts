import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { EnvironmentJson } from '../../helpers/cli.ts'
import { isAlive, makeServerWorld, onDatabase, type ServerWorld, textsOf, until } from '../../helpers/server-process.ts'

const CAP = 2
/** Twice as many as are worked on at once, and enough messages to get into the wrong order; the benchmark has 10,000. */
const CONVERSATIONS = 4
const MESSAGES = 3

/** Appends to a file of its tree, and writes down outside of it when it began and ended. */
const appending = (log: string): string =>
  [
    'message=$(cat)',
    `echo "begin $COPPICE_CONVERSATION $message" >> '${log}'`,
    'echo "$message" >> said.txt',
    // The first of all waits until another one runs beside it; the others wait long enough to get in each other's way.
    'tries=0',
    `while [ "$(grep -c ^begin '${log}')" -lt 2 ] && [ $tries -lt 300 ]; do tries=$((tries + 1)); sleep 0.1; done`,
    'sleep 0.05',
    `echo "end $COPPICE_CONVERSATION $message" >> '${log}'`,
    'echo "heard $message"',
  ].join('\n')

type Entry = { readonly what: string; readonly conversation: string; readonly message: string }

const entriesIn = (log: string): Entry[] =>
  readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [what = '', conversation = '', message = ''] = line.split(' ')
      return { what, conversation, message }
    })

onDatabase('sqlite', (database) => {
  test('four conversations with three messages each at once: each in order, one at a time, never more than the cap', async () => {
    const world = makeServerWorld({ env: { MAX_CONCURRENT_CONVERSATIONS: String(CAP), ...(await database()) } })
    await using _ = world
    const log = world.box.path('runs.log')
    const repo = await world.project()
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: appending(log) } })
    const names = Array.from({ length: CONVERSATIONS }, (_none, n) => `c${n}`)
    const messages = Array.from({ length: MESSAGES }, (_none, n) => `m${n}`)
    const sayAll = (name: string): Promise<{ outcome: string }[]> =>
      messages.reduce(
        async (before, message) => [...(await before), await server.say(name, message, { deliveryId: message })],
        Promise.resolve<{ outcome: string }[]>([]),
      )
    await Promise.all(names.map(sayAll))
    // The platform delivers all of it once more while it is being worked on.
    const again = (await Promise.all(names.map(sayAll))).flat()
    expect(again.every(({ outcome }) => outcome === 'duplicate')).toBe(true)
    await server.quiet()

    const entries = entriesIn(log)
    expect(entries).toHaveLength(2 * CONVERSATIONS * MESSAGES)
    for (const name of names) {
      const own = entries.filter(({ conversation }) => conversation === `test:${name}`)
      const expected = messages.flatMap((message) => [`begin ${message}`, `end ${message}`])
      expect(own.map(({ what, message }) => `${what} ${message}`)).toEqual(expected)
    }
    let running = 0
    const at = entries.map(({ what }) => (running += what === 'begin' ? 1 : -1))
    expect(Math.max(...at)).toBeLessThanOrEqual(CAP)
    expect(Math.max(...at), 'they do run beside each other').toBeGreaterThan(1)

    const trees = await world.json<(EnvironmentJson & { conversations: string[] })[]>(repo.path, 'worktree', 'list')
    expect(trees).toHaveLength(CONVERSATIONS)
    for (const { path } of trees)
      expect(readFileSync(join(path, 'said.txt'), 'utf8')).toBe(messages.map((message) => `${message}\n`).join(''))
    for (const name of names) {
      const agent = (await server.messages(name)).filter(({ role }) => role === 'agent')
      expect(textsOf(agent).map((text) => text.trim())).toEqual(messages.map((message) => `heard ${message}`))
    }
    const metrics = await server.metrics()
    expect(metrics.get('coppice_messages_accepted_total{platform="test"}')).toBe(CONVERSATIONS * MESSAGES)
    expect(metrics.get('coppice_messages_duplicate_total{platform="test"}')).toBe(CONVERSATIONS * MESSAGES)

    await server.stop('SIGKILL')
    const next = await world.serve({ env: { COPPICE_AGENT_COMMAND: appending(log) } })
    expect((await next.say('c0', 'm0', { deliveryId: 'm0' })).outcome).toBe('duplicate')
    await next.quiet()
    expect(entriesIn(log), 'known after a restart too').toHaveLength(2 * CONVERSATIONS * MESSAGES)
  })
})

onDatabase('postgres', (database) => {
  test('/help, /status and /stop are answered while the agent runs, and /stop ends its whole process tree', async () => {
    const world = makeServerWorld({ env: { MAX_CONCURRENT_CONVERSATIONS: '1', ...(await database()) } })
    await using _ = world
    await world.project()
    const { script, pids } = stubborn(world)
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: `sh '${script}'` } })
    await server.say('slow', 'take your time')
    const family = await until('agent, child and grandchild run', async () => {
      const found = ['agent', 'child', 'grandchild'].map((name) => pidIn(join(pids, name)))
      return found.every((pid) => pid !== undefined) ? found.filter((pid) => pid !== undefined) : undefined
    })
    const replies = async (marker: RegExp): Promise<string> =>
      until(`${marker} is answered`, async () =>
        textsOf(await server.messages('slow')).find((text) => marker.test(text)),
      )

    await server.say('slow', '/help')
    expect(await replies(/\/worktree create/)).toMatch(/\/stop/)
    await server.say('slow', '/status')
    expect(await replies(/Worktrees/)).toMatch(/Repository.*`project`/)
    expect(family.every(isAlive), 'neither of them disturbed it').toBe(true)
    // This one changes the conversation: it keeps its place, behind what runs.
    await server.say('slow', '/reset')
    await server.say('slow', '/stop')
    expect(await replies(/^Stopped: /)).toBe('Stopped: the agent and all processes it started have ended.')
    expect(family.filter(isAlive)).toEqual([])
    await server.quiet()
    const heard = textsOf((await server.messages('slow')).filter(({ role }) => role !== 'user'))
    const ended = heard.indexOf('Stopped. The work so far is in the worktree.')
    expect(ended).toBeGreaterThan(0)
    // `/stop` answers once it has looked for what is left, beside whatever comes next.
    expect(
      heard.findLastIndex((text) => /session/i.test(text)),
      'the reset had to wait',
    ).toBeGreaterThan(ended)
    expect((await server.metrics()).get('coppice_messages_handled_total{outcome="stopped"}')).toBe(1)
    expect(textsOf(await server.ask('slow', '/stop'))).toEqual(['Nothing is running here.'])
  })
})

describe('while it waits', () => {
  test('a message in a tree that another conversation works in is told so, and comes next', async () => {
    await using world = makeServerWorld()
    await world.project()
    const gate = world.box.path('gate')
    mkdirSync(gate)
    const agent = `message=$(cat); touch '${gate}'/began-$message; while [ -d '${gate}' ] && [ ! -e '${gate}/'go-$message ]; do sleep 0.02; done; echo "did $message"`
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    const hints = { workflowType: 'issue', workflowId: '7' } as const
    await server.say('one', 'first', { hints })
    await until('the first one runs', async () => existsSync(join(gate, 'began-first')) || undefined)
    await server.say('two', 'second', { hints })
    const busy = 'Another conversation is using `issue-7`. Your message runs next.'
    await until('the second is told', async () => textsOf(await server.messages('two')).includes(busy) || undefined)
    expect(existsSync(join(gate, 'began-second'))).toBe(false)
    for (const name of ['first', 'second']) writeFileSync(join(gate, `go-${name}`), '')
    await server.quiet()
    expect(
      textsOf(await server.messages('two'))
        .at(-1)
        ?.trim(),
    ).toBe('did second')
  })
})

/** A shell whose child and grandchild go on whatever they are asked to do. */
const stubborn = (world: ServerWorld): { script: string; pids: string } => {
  const pids = world.box.path('pids')
  mkdirSync(pids)
  const note = (name: string): string => `echo $$ > '${pids}/${name}.new'; mv '${pids}/${name}.new' '${pids}/${name}'`
  // Until the sandbox is gone: a test that fails must not leave them behind.
  const wait = `while [ -e '${pids}' ]; do sleep 0.1; done`
  const write = (name: string, lines: string[]): string => {
    const path = world.box.path(`${name}.sh`)
    writeFileSync(path, `${lines.join('\n')}\n`)
    return path
  }
  const grandchild = write('grandchild', [`trap '' TERM HUP INT`, note('grandchild'), wait])
  const child = write('child', [`trap '' TERM HUP INT`, note('child'), `sh '${grandchild}' &`, wait])
  const script = write('agent', [note('agent'), 'cat > asked.txt', `sh '${child}' &`, 'echo began', wait])
  return { script, pids }
}

const pidIn = (path: string): number | undefined => (existsSync(path) ? Number(readFileSync(path, 'utf8')) : undefined)
