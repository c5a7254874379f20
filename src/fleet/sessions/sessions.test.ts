import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeSandbox, type Sandbox } from '../../../test/helpers/repo.ts'
import type { FleetSession } from '../../domain/fleet/agent.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { createRepositoryLock } from '../../isolation/lock/lock.ts'
import { argumentsOf } from '../../process/arguments.ts'
import { identifySync, liveness } from '../../process/identity.ts'
import { createLogger } from '../../process/log.ts'
import { processesOfRuns } from '../../process/run-processes.ts'
import { tailOf } from './log.ts'
import { agentDirectory, logFile } from './paths.ts'
import { endProcesses } from './prepare.ts'
import { createProcessSessions } from './process-sessions.ts'
import { exitCodeIn, programIn } from './running.ts'
import type { NewSession } from './session.ts'
import { createTmuxSessions } from './tmux-sessions.ts'
import { hasTmux, runnableKinds } from '../../../test/helpers/tmux.ts'

let box: Sandbox
let ended: (() => Promise<unknown>)[] = []
beforeEach(() => {
  box = makeSandbox()
})
afterEach(async () => {
  for (const end of ended) await end()
  ended = []
  box[Symbol.dispose]()
})

const contextOf = () => ({
  home: box.path('state'),
  clock: Date.now,
  env: { ...box.env, CANARY: 'of-ours' },
  lock: createRepositoryLock({ clock: Date.now, random: Math.random }),
  log: createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text }),
})

const factories = { tmux: createTmuxSessions, process: createProcessSessions } as const

describe.each(runnableKinds)('a session as %s', (kind) => {
  const create = factories[kind]
  const session = (command: readonly [string, ...string[]], change: Partial<NewSession> = {}): NewSession => ({
    name: 'alder',
    directory: box.root,
    command,
    variables: { PATH: box.env['PATH'] ?? '', HOME: box.home, TOKEN: "it's a secret", COPPICE_AGENT: 'alder' },
    mark: { id: `test.${randomUUID()}`, cgroup: undefined },
    ...change,
  })

  const start = async (given: NewSession, change: { readonly longestLogBytes?: number } = {}) => {
    const sessions = create({ ...contextOf(), ...change })
    const roots: ProcessIdentity[] = []
    const end = async (): Promise<boolean> => {
      const dead = await endProcesses({ clock: Date.now }, { root: roots[0], marks: [given.mark], graceMs: 0 })
      await sessions.clear(given.name)
      return dead
    }
    ended.push(end)
    const started = await sessions.start(given, async ({ root }) => void roots.push(root))
    return { sessions, started, roots, end }
  }
  const directory = (): string => agentDirectory(box.path('state'), 'alder')
  const printed = (): string => readFileSync(logFile(box.path('state'), 'alder'), 'utf8')

  test('runs the program in its directory, with exactly its variables, and takes input', async () => {
    const script = 'pwd; echo "${#0}"; env | sort; while read -r line; do echo "got: $line"; done'
    // tmux would expand some of these, and run one.
    const odd = box.path(`c#H ##{pane_id} #(touch ${box.root}/ran) #[x] ##[y] it's "50%;`)
    mkdirSync(odd, { recursive: true })
    const { sessions, started, roots } = await start(
      // tmux takes 16 kB on its own command line.
      session(['sh', '-c', script, "it's; long".repeat(2_000)], { directory: odd }),
    )
    expect(started).toMatchObject({ kind, root: roots[0] })
    expect(liveness(programIn(directory()) ?? { pid: 0, startTime: '' })).toBe('alive')
    await expect.poll(() => printed()).toContain('TOKEN=it')
    expect(printed()).toMatch(new RegExp(`^${RegExp.escape(odd)}\r?$`, 'm'))
    expect(existsSync(box.path('ran'))).toBe(false)
    expect(printed()).toMatch(/^20000\r?$/m)
    expect(printed()).toContain("TOKEN=it's a secret")
    for (const hidden of ['CANARY', 'TMUX']) expect(printed()).not.toContain(hidden)
    await sessions.send(started, 'first words')
    await sessions.send(started, 'second line\nand $(a third) `one`')
    await expect.poll(() => printed()).toContain('got: and $(a third) `one`')
    expect(printed()).toContain('got: first words')
    expect(await sessions.peek(started, 5)).toContain('got: second line')
    expect(await sessions.list()).toMatchObject([{ name: 'alder', dead: false, root: roots[0] }])
    expect(statSync(logFile(box.path('state'), 'alder')).mode & 0o777).toBe(0o600)
  })

  test('does for its commands what they ask for, and listens no longer than it lasts', async () => {
    const bin = box.path('bin')
    mkdirSync(bin)
    const answer = `[ "$3" = bad ] && exit 1; [ "$3" = 0-2 ] && exit 1; echo "$*" >"${directory()}/answers/$3"`
    writeFileSync(join(bin, 'coppice'), `#!/bin/sh\n${answer}\n`, { mode: 0o755 })
    const asked = ['0-1', '../0-3', '', 'x', '0-2'].map((name) => `echo '${name}' >"${directory()}/requests/bell"`)
    const script = `${asked.join('; ')}; read -r line`
    const variables = { PATH: `${bin}:${box.env['PATH'] ?? ''}` }
    const given = session(['sh', '-c', script], { answersRequests: true, variables })
    const { sessions, started } = await start(given)
    const answers = (): string[] => readdirSync(join(directory(), 'answers')).toSorted()
    await expect.poll(answers).toEqual(['0-1', '0-2'])
    const texts = answers().map((name) => readFileSync(join(directory(), 'answers', name), 'utf8'))
    expect(texts).toEqual(['internal answer 0-1\n', '{}\n'])
    for (const name of ['requests', 'answers']) expect(statSync(join(directory(), name)).mode & 0o777).toBe(0o700)
    await sessions.send(started, 'end')
    await expect.poll(() => exitCodeIn(directory())).toBe(0)
    await expect.poll(async () => (await processesOfRuns([given.mark])).rows).toEqual([])
  })

  test('no variable is on a command line, or in a file once the program runs', async () => {
    const { roots } = await start(session(['sh', '-c', 'echo ready; sleep 100']))
    const root = roots[0]?.pid ?? 0
    expect((await argumentsOf(root))?.join(' ')).not.toContain('secret')
    expect(existsSync(join(directory(), 'environment'))).toBe(false)
  })

  test("the program's end is on disk, also when it was killed", async () => {
    const { sessions, started } = await start(session(['sh', '-c', 'read -r code; exit "$code"']))
    await sessions.send(started, '7')
    await expect.poll(() => exitCodeIn(directory())).toBe(7)
    await expect.poll(async () => (await sessions.list()).map(({ dead }) => dead)).toEqual([true])
    const again = await start(session(['sh', '-c', 'read -r line; kill -9 $$']))
    await again.sessions.send(again.started, 'now')
    await expect.poll(() => exitCodeIn(directory())).toBe(137)
  })

  test.each([
    [['no-such-program-anywhere'], "the agent's program wasn't found"],
    [['/etc/passwd'], "the agent's program couldn't be run"],
  ] as const)('%s is an error, and nothing is left of the session', async (command, message) => {
    const sessions = create(contextOf())
    await expect(sessions.start(session(command), async () => undefined)).rejects.toMatchObject({ message })
    expect((await sessions.list()).filter(({ dead }) => !dead)).toEqual([])
  })

  test('it starts in its directory or not at all', async () => {
    const starting = start(session(['sh', '-c', 'pwd; sleep 100'], { directory: box.path('gone') }))
    await expect(starting).rejects.toMatchObject({ code: 'program-failed' })
    expect(printed()).not.toContain(box.home)
  })

  test('if its first process cannot be recorded, it ends', async () => {
    const sessions = create(contextOf())
    let root: ProcessIdentity | undefined
    const starting = sessions.start(session(['sleep', '100']), async (begun) => {
      root = begun.root
      throw new Error('the store is away')
    })
    await expect(starting).rejects.toThrow('the store is away')
    expect(root && liveness(root)).toBe('dead')
  })

  test('ends with everything that it started, in other sessions too', async () => {
    const pids = box.path('pids')
    const script = `echo $$ >> ${pids}; setsid sh -c 'echo $$ >> ${pids}; trap "" TERM HUP; sleep 100 & wait' & env -i setsid sh -c '(sleep 100 & echo $! >> ${pids})'; sleep 100`
    const { sessions, end } = await start(session(['sh', '-c', script]))
    const all = (): string[] => (existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n') : [])
    await expect.poll(() => all().length).toBe(3)
    expect(await end()).toBe(true)
    for (const pid of all()) expect([pid, existsSync(`/proc/${pid}/exe`)]).toEqual([pid, false])
    expect((await sessions.list()).filter(({ dead }) => !dead)).toEqual([])
  })

  test('a log that is too long is moved aside, and no line in between is missing', async () => {
    const command = ['sh', '-c', 'stty -echo 2>/dev/null; seq 1 1300000; read -r line'] as const
    const { sessions, started } = await start(session(command), { longestLogBytes: 1_000_000 })
    const log = logFile(box.path('state'), 'alder')
    await expect.poll(async () => sessions.peek(started, 3), { timeout: 60_000 }).toContain('1300000')
    await expect.poll(() => tailOf(log, 1)).toBe('1300000')
    const kept = [`${log}.1`, log].map((file) => readFileSync(file, 'utf8')).join('')
    const lines = kept.split(/\r?\n/).slice(1, -1).map(Number)
    expect(lines.length).toBeGreaterThan(100_000)
    expect(lines.filter((line, i) => i > 0 && line !== (lines[i - 1] ?? 0) + 1)).toEqual([])
    expect(lines.at(-1)).toBe(1_300_000)
    for (const file of [log, `${log}.1`]) expect(statSync(file).mode & 0o777).toBe(0o600)
    // What was printed before that is in the other one.
    writeFileSync(log, 'last\n')
    expect(tailOf(log, 2).split('\n')).toEqual([expect.stringMatching(/^\d+$/), 'last'])
    // It isn't read from wherever an agent says.
    rmSync(log)
    symlinkSync('/etc/passwd', log)
    expect(() => tailOf(log, 1)).toThrow(`${log} is a symbolic link`)
  })

  test('a log that can no longer be written stops nobody', async () => {
    const finished = box.path('finished')
    const script = `stty -echo 2>/dev/null; read -r line; seq 1 1300000 && echo done >'${finished}'; read -r line`
    const { sessions, started } = await start(session(['sh', '-c', script]))
    renameSync(dirname(logFile(box.path('state'), 'alder')), box.path('elsewhere'))
    await sessions.send(started, 'go')
    await expect.poll(() => existsSync(finished), { timeout: 20_000 }).toBe(true)
  })

  test('the next session of the same name begins anew, and never in place of one that runs', async () => {
    const first = await start(session(['sh', '-c', 'echo one; read -r code; exit "$code"']))
    const second = start(session(['sh', '-c', 'echo in the way; sleep 100']))
    await expect(second).rejects.toMatchObject({ code: 'busy' })
    await first.sessions.send(first.started, '3')
    await expect.poll(() => exitCodeIn(directory())).toBe(3)
    await expect.poll(async () => (await first.sessions.list()).map(({ dead }) => dead)).toEqual([true])
    const { started } = await start(session(['sh', '-c', 'echo two; sleep 100']))
    expect(exitCodeIn(directory())).toBeUndefined()
    await expect.poll(() => printed()).toContain('two')
    expect((started satisfies FleetSession).kind).toBe(kind)
    expect(printed()).toContain('one')
  })
})

const identified = (pid: number): ProcessIdentity => {
  const identity = identifySync(pid)
  if (identity === undefined) throw new Error(`process ${pid} has ended`)
  return identity
}

describe.runIf(hasTmux)('the terminal of a session in tmux', () => {
  /** Draws what it was given 300 ms later, and takes an Enter before that for a part of it, as input boxes do. */
  const INPUT_BOX = `
    process.stdin.setRawMode(true)
    process.stdout.write('\\x1b[?2004hready')
    let text = '', drawn = ''
    process.stdin.on('data', (data) => {
      for (const key of data.toString().replace(/\\x1b\\[200~/g, '<').replace(/\\x1b\\[201~/g, '>')) {
        if (key === '\\r' && text !== '' && drawn === text) {
          console.log('\\r\\nSUBMITTED ' + JSON.stringify(text))
          text = ''
        }
        else text += key
      }
      setTimeout(() => { drawn = text; process.stdout.write('\\r\\n> ' + drawn.slice(-30)) }, 300)
    })`

  const startTmux = async (command: readonly [string, ...string[]], change: Partial<NewSession> = {}) => {
    const sessions = createTmuxSessions(contextOf())
    const mark = { id: `test.${randomUUID()}`, cgroup: undefined }
    let root: ProcessIdentity | undefined
    ended.push(async () => {
      await endProcesses({ clock: Date.now }, { root, marks: [mark], graceMs: 0 })
      await sessions.clear('alder')
    })
    const variables = { PATH: box.env['PATH'] ?? '', TERM: 'dumb' }
    const given: NewSession = { name: 'alder', directory: box.root, command, variables, mark, ...change }
    const started = await sessions.start(given, async (begun) => void (root = begun.root))
    const shown = (): Promise<string> => sessions.peek(started, 50)
    return { sessions, started, shown }
  }

  const tmux = (...args: string[]): string =>
    execFileSync('tmux', ['-S', join(box.path('state'), 'fleet', 'tmux'), ...args], { encoding: 'utf8', env: box.env })

  test('submits a message once the program shows it', async () => {
    const { sessions, started, shown } = await startTmux([process.execPath, '-e', INPUT_BOX])
    await expect.poll(shown).toContain('ready')
    await sessions.send(started, 'short')
    await expect.poll(shown).toContain('SUBMITTED "<short>"')
    await sessions.send(started, 'of two\nlines')
    await expect.poll(shown).toContain(String.raw`SUBMITTED "<of two\nlines>"`)
  })

  test('a message arrives while somebody who is attached scrolls', async () => {
    const { sessions, started, shown } = await startTmux([
      'sh',
      '-c',
      'echo ready; while read -r line; do echo "got: $line"; done',
    ])
    await expect.poll(shown).toContain('ready')
    tmux('copy-mode', '-t', 'coppice-alder')
    await sessions.send(started, 'words')
    await expect.poll(shown).toContain('got: words')
  })

  test('several at once each get their own message', async () => {
    const { sessions, started, shown } = await startTmux([
      'sh',
      '-c',
      'echo ready; while read -r line; do echo "got: $line"; done',
    ])
    await expect.poll(shown).toContain('ready')
    const script = 'while read -r line; do echo "got: $line"; done'
    const created = ['new-session', '-dPF', '#{pane_pid}', '-s', 'coppice-other', '--', 'sh', '-c', script]
    const other = { ...started, root: identified(Number(tmux(...created))) }
    await Promise.all([sessions.send(started, 'to alder'), sessions.send(other, 'to the other')])
    await expect.poll(shown).toContain('got: to alder')
    await expect.poll(() => sessions.peek(other, 50)).toContain('got: to the other')
    tmux('kill-session', '-t', 'coppice-other')
  })

  test.each([
    ['becomes Escape', true, false, '033'],
    ['stays Ctrl-C in a window of their own', true, true, '003'],
    ['stays Ctrl-C in other programs', false, false, '003'],
  ])('the Ctrl-C of somebody who is attached %s', async (_how, escapeOnInterrupt, inOwnWindow, key) => {
    const script = 'stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | od -An -b; sleep 100'
    const { sessions, started, shown } = await startTmux(['sh', '-c', script], { escapeOnInterrupt })
    await expect.poll(shown).toContain('ready')
    if (inOwnWindow) tmux('new-window', '-t', '=coppice-alder', 'sh', '-c', script)
    const person = (...args: string[]): string =>
      execFileSync('tmux', ['-S', box.path('person'), '-f', '/dev/null', ...args], {
        encoding: 'utf8',
        env: { ...box.env, TERM: 'xterm' },
      })
    person('new-session', '-d', '-s', 'p', '--', ...(sessions.attachCommand?.(started).command ?? []))
    try {
      await expect.poll(() => person('capture-pane', '-p', '-t', 'p')).toContain('ready')
      person('send-keys', '-t', 'p', 'C-c')
      await expect.poll(() => tmux('capture-pane', '-p', '-t', '=coppice-alder:')).toContain(key)
    } finally {
      person('kill-server')
    }
  })

  test('it answers requests, whatever an agent of that name has left in their place', async () => {
    const directory = agentDirectory(box.path('state'), 'alder')
    mkdirSync(join(directory, 'requests', 'bell', 'x'), { recursive: true })
    mkdirSync(join(directory, 'answers'), { recursive: true })
    writeFileSync(join(directory, 'answers', '0-1'), 'an old answer')
    const script =
      'echo 0-1 >"$0/requests/bell"; until [ -s "$0/answers/0-1" ]; do sleep 0.05; done; cat "$0/answers/0-1"; sleep 100'
    const { shown } = await startTmux(['sh', '-c', script, directory], { answersRequests: true })
    // Nobody can answer: there is no `coppice` on its PATH.
    await expect.poll(shown).toContain('{}')
  })

  test("its terminal is tmux's, whatever ours is", async () => {
    const { shown } = await startTmux(['sh', '-c', 'echo "TERM=$TERM"; sleep 100'])
    await expect.poll(shown).toContain('TERM=screen-256color')
  })
})
