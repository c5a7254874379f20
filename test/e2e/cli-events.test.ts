import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { eventFilters } from '../../src/domain/fleet/event-record.ts'
import { type CliWorld, ended, main, makeCliWorld, project } from '../helpers/cli.ts'
import { isAlive } from '../helpers/server-process.ts'
import type { TestRepo } from '../helpers/repo.ts'

let world: CliWorld
let repo: TestRepo
const children: ChildProcess[] = []

beforeEach(() => {
  world = makeCliWorld()
  repo = project(world)
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await ended(child)
  }
  world[Symbol.dispose]()
})

const coppice = async (...args: string[]): Promise<string> => {
  const { code, out, err } = await world.run(repo.path, ...args)
  expect({ code, err }).toMatchObject({ code: 0 })
  return out
}
const parkedItem = async (title: string, note: string): Promise<void> => {
  const { id } = await world.json<{ id: number }>(repo.path, 0, 'item', 'add', title)
  await coppice('item', 'park', String(id), note)
}
const configure = (text: string): void =>
  writeFileSync(join(world.home, 'config.yaml'), `worktrees: { spares: 0 }\n${text}`)
const linesOf = (name: string): string[] => {
  const file = join(world.home, name)
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
}

/** What a process prints, while it runs. */
const started = (
  child: ChildProcess,
): { readonly child: ChildProcess; readonly printed: () => string; readonly end: ReturnType<typeof ended> } => {
  children.push(child)
  let printed = ''
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  return { child, printed: () => printed, end: ended(child) }
}

describe('coppice events', () => {
  test('prints a line for each event that fits the terminal, or an object with --json', async () => {
    await parkedItem(
      'A title that is much too long for one line of a terminal',
      'Which of the many APIs should it use?',
    )
    await parkedItem('Fix login', 'Which API?')
    await coppice('item', 'close', '2')
    Object.assign(world.env, { COLUMNS: '80' })
    const lines = (await coppice('events')).trimEnd().split('\n')
    expect(lines).toEqual([
      expect.stringMatching(/^[A-Z][a-z]{2} \d\d \d\d:\d\d {2}Item 1 \(A title .*…$/),
      expect.stringMatching(/ {2}Item 2 \(Fix login\) needs you: Which API\?$/),
      expect.stringMatching(/ {2}Item 2 \(Fix login\) is closed\.$/),
    ])
    expect(lines.map((line) => line.length)).toEqual([80, expect.any(Number), expect.any(Number)])
    const json = async (...args: string[]): Promise<unknown[]> =>
      (await coppice('events', '--json', ...args))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown)
    expect(await json()).toMatchObject([
      { number: 1, kind: 'parked', needsYou: true, codebase: 'project', item: 1 },
      { number: 2, kind: 'parked', title: 'Fix login', message: 'Item 2 (Fix login) needs you: Which API?' },
      { number: 3, kind: 'closed', needsYou: false, item: 2, details: {} },
    ])
    expect(await json('--after', '2')).toMatchObject([{ number: 3 }])
    expect(await json('--kind', 'needs-you', '--kind', 'landed')).toMatchObject([{ number: 1 }, { number: 2 }])
    expect(await coppice('events', '--json', '--after', '3')).toBe('')
  })

  test('says what is wrong, and lists all kinds in its help', async () => {
    expect((await world.run('/', 'events', '--kind', 'lunch')).err).toContain('unknown kind "lunch"')
    expect((await world.run('/', 'events', '--after', 'x')).err).toContain('invalid --after "x"')
    expect((await world.run('/', 'events', '--after', '-1')).code).toBe(2)
    const help = (await coppice('events', '--help')).replaceAll('\n', ' ')
    for (const kind of eventFilters) expect(help).toContain(kind)
  })

  test('--follow goes on with and without a server, which delivers to hooks, and ends cleanly with Ctrl-C', async () => {
    configure('hooks:\n  - on: [parked, reopened]\n    command: echo "$COPPICE_EVENT_NUMBER $PPID" >> log\n')
    await parkedItem('One', 'now?')
    const follower = started(world.start(repo.path, 'events', '--follow', '--json'))
    const seen = (): number[] =>
      follower
        .printed()
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => (JSON.parse(line) as { number: number }).number)
    await expect.poll(seen).toEqual([1])
    await coppice('item', 'reopen', '1')
    await expect.poll(seen).toEqual([1, 2])
    const server = started(world.start('/', 'serve', '--port', '0'))
    await expect.poll(server.printed).toContain('listening on')
    await coppice('item', 'park', '1', 'and now?')
    await expect.poll(seen).toEqual([1, 2, 3])
    await coppice('item', 'reopen', '1')
    await expect.poll(seen).toEqual([1, 2, 3, 4])
    // Its own process has delivered them.
    await expect.poll(() => linesOf('log').slice(2)).toEqual([`3 ${server.child.pid}`, `4 ${server.child.pid}`])
    server.child.kill('SIGTERM')
    await server.end
    await coppice('item', 'close', '1')
    await expect.poll(seen).toEqual([1, 2, 3, 4, 5])
    follower.child.kill('SIGINT')
    expect(await follower.end).toMatchObject({ code: 0, err: '' })
  })

  test('--follow ends when the reader of a pipe closes it', async () => {
    await parkedItem('One', 'now?')
    const script = '"$0" "$@" events --follow | head -n 1; echo "status ${PIPESTATUS[0]}"'
    const child = spawn('bash', ['-c', script, process.execPath, main], { cwd: repo.path, env: world.env })
    const piped = started(child)
    await expect.poll(piped.printed).toContain('needs you: now?')
    // The next event doesn't fit through.
    await coppice('item', 'close', '1')
    expect((await piped.end).out).toContain('status 0')
  })
})

describe('hooks without a server', () => {
  test('are served by the command that recorded the event, but never in the session of an agent', async () => {
    configure('hooks:\n  - on: [parked, reopened, closed]\n    command: echo "$COPPICE_EVENT_NUMBER" >> log\n')
    await parkedItem('One', 'now?')
    expect(linesOf('log')).toEqual(['1'])
    Object.assign(world.env, { COPPICE_SPAWN: 'spawn', COPPICE_AGENT: 'alder' })
    await coppice('item', 'reopen', '1')
    expect(linesOf('log')).toEqual(['1'])
    delete world.env['COPPICE_SPAWN']
    delete world.env['COPPICE_AGENT']
    world.env['COPPICE_RUN'] = 'run'
    await coppice('item', 'park', '1', 'again')
    expect(linesOf('log')).toEqual(['1'])
    delete world.env['COPPICE_RUN']
    // The mark of a run, which its processes can't lose by accident.
    const marked = `ulimit -S -w ${2 ** 40 + 5} || ulimit -S -x ${2 ** 40 + 5}; exec "$0" "$@"`
    const inside = spawn('sh', ['-c', marked, process.execPath, main, 'item', 'reopen', '1'], {
      cwd: repo.path,
      env: world.env,
    })
    expect((await started(inside).end).code).toBe(0)
    expect(linesOf('log')).toEqual(['1'])
    await coppice('item', 'close', '1')
    expect(linesOf('log')).toEqual(['1', '2', '3', '4', '5'])
  })

  test('a process that is killed between delivery and recording it loses nothing, and delivers at most twice', async () => {
    // The parent of the command's shell is the process that delivers.
    configure(`hooks:
  - on: [parked, closed]
    command: |
      echo "$COPPICE_EVENT_NUMBER" >> log
      [ -e killed ] || { touch killed; kill -9 $PPID; echo $$ > pid; exec sleep 600; }
`)
    const { id } = await world.json<{ id: number }>(repo.path, 0, 'item', 'add', 'One')
    const child = world.start(repo.path, 'item', 'park', String(id), 'now?')
    await ended(child)
    expect(child.signalCode).toBe('SIGKILL')
    await expect.poll(() => linesOf('pid')).toHaveLength(1)
    expect(linesOf('log')).toEqual(['1'])
    const left = Number(linesOf('pid')[0])
    expect(isAlive(left)).toBe(true)
    await coppice('item', 'close', '1')
    expect(linesOf('log')).toEqual(['1', '1', '2'])
    expect(isAlive(left)).toBe(false)
  })

  test('doctor says which hook fails, and which cannot work', async () => {
    configure('hooks:\n  - on: parked\n    command: exit 7\n  - conversation: pigeon:7\n')
    await parkedItem('One', 'now?')
    const { out } = await world.run(repo.path, 'doctor')
    expect(out).toContain('hook 1 (command) failed just now: it failed with exit code 7')
    expect(out).toContain('hook 2 (message to pigeon:7): unknown platform')
  })
})
