import { execFileSync, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, chmodSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { makeSandbox, type Sandbox } from '../../../test/helpers/repo.ts'
import type { FleetSession } from '../../domain/fleet/agent.ts'
import { createRepositoryLock } from '../../isolation/lock/lock.ts'
import { liveness } from '../../process/identity.ts'
import { killRun } from '../../process/kill.ts'
import { createLogger } from '../../process/log.ts'
import { makeCgroup, writableCgroup } from '../../process/cgroup.ts'
import { type RunMark, runMarkId } from '../../process/run-mark.ts'
import { runProgram } from '../../process/spawn.ts'
import { agentDirectory } from './paths.ts'
import { endProcesses } from './prepare.ts'
import { exitCodeIn } from './running.ts'
import type { SessionKindRules } from './session.ts'
import { createTmuxSessions } from './tmux-sessions.ts'
import { tmuxSocket } from './tmux-socket.ts'
import { testInTmux } from '../../../test/helpers/tmux.ts'

let box: Sandbox
let marks: RunMark[] = []
beforeEach(() => {
  box = makeSandbox()
})
afterEach(async () => {
  await endProcesses({ clock: Date.now }, { root: undefined, marks, graceMs: 0 })
  marks = []
  spawnSync('tmux', ['-S', tmuxSocket(home()), 'kill-server'])
  box[Symbol.dispose]()
})

const home = (): string => box.path('state')
const tmux = (...args: readonly string[]): string =>
  execFileSync('tmux', ['-S', tmuxSocket(home()), ...args], { encoding: 'utf8' }).trim()
const serverPid = (): number => Number(tmux('display-message', '-p', '#{pid}'))

const sessionsHere = (path = box.env['PATH']) =>
  createTmuxSessions({
    home: home(),
    clock: Date.now,
    env: { ...box.env, PATH: path, CANARY: 'of-ours' },
    lock: createRepositoryLock({ clock: Date.now, random: Math.random }),
    log: createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text }),
  })

const start = async (name: string, script: string, path?: string) => {
  const sessions = sessionsHere(path)
  const mark = { id: `test.${randomUUID()}`, cgroup: undefined }
  marks.push(mark)
  const command = ['sh', '-c', script] as const
  const variables = { PATH: box.env['PATH'] ?? '' }
  const session = await sessions.start({ name, directory: box.root, command, variables, mark }, async () => undefined)
  return { sessions, session, mark }
}

const echo = 'while read -r line; do echo "got: $line"; done'

testInTmux('a message goes to the program, not to a window that a person has opened beside it', async () => {
  const { sessions, session } = await start('alder', echo)
  tmux('new-window', '-t', '=coppice-alder', 'sh')
  tmux('split-window', '-b', '-t', '=coppice-alder:0', 'sh')
  await sessions.send(session, `touch ${box.path('typed')}`)
  await sessions.send(session, 'a longer text\nof two lines')
  await expect.poll(() => sessions.peek(session, 5)).toContain('got: of two lines')
  expect(await sessions.peek(session, 5)).toContain(`got: touch ${box.path('typed')}`)
  expect(existsSync(box.path('typed'))).toBe(false)
  // And the session is still one.
  expect(await sessions.list()).toMatchObject([{ name: 'alder', root: session.root, dead: false }])
})

testInTmux('a semicolon at the end stays part of a message, and of a command', async () => {
  const { sessions, session } = await start('alder', `printf '%s\\n' one\\;; ${echo} ;:\\;`)
  for (const text of ['do this;', 'and \\;', ';']) await sessions.send(session, text)
  await expect.poll(() => sessions.peek(session, 9)).toMatch(/got: ;$/m)
  const seen = await sessions.peek(session, 9)
  expect(seen).toContain('got: do this;')
  expect(seen).toContain(String.raw`got: and \;`)
  expect(seen).toContain('one;')
})

testInTmux('a message to a program that has ended is an error', async () => {
  const { sessions, session } = await start('alder', 'read -r line')
  await sessions.send(session, 'end')
  await expect.poll(() => exitCodeIn(agentDirectory(home(), 'alder'))).toBe(0)
  await expect.poll(async () => (await sessions.list()).map(({ dead }) => dead)).toEqual([true])
  await expect(sessions.send(session, 'more')).rejects.toThrow('its program has ended')
  await sessions.clear('alder')
  await expect(sessions.send(session, 'more')).rejects.toMatchObject({ code: 'program-failed' })
})

testInTmux('messages that are sent at once arrive one by one, in order', async () => {
  // Not on the screen, where the terminal's echo of a message may come between.
  const { sessions, session } = await start('alder', 'while read -r line; do echo "$line" >>got; done')
  const texts = Array.from({ length: 9 }, (_, n) => `message ${n}`)
  await Promise.all(texts.map((text) => sessions.send(session, text)))
  const got = (): string => (existsSync(box.path('got')) ? readFileSync(box.path('got'), 'utf8') : '')
  await expect.poll(got).toBe(`${texts.join('\n')}\n`)
})

const attachTo = (sessions: SessionKindRules, session: FleetSession) =>
  sessions.attachCommand?.(session) ?? expect.unreachable('nobody can attach to it')

testInTmux('attaching when the server has ended starts none with the user’s settings and variables', async () => {
  const { sessions, session } = await start('alder', 'read -r line')
  writeFileSync(join(box.home, '.tmux.conf'), 'set -g exit-empty off\n')
  process.kill(serverPid(), 'SIGKILL')
  await expect.poll(() => liveness(session.root)).toBe('dead')
  const { command, env } = attachTo(sessions, session)
  expect(env).not.toHaveProperty('CANARY')
  spawnSync(command[0], command.slice(1), { env })
  await expect.poll(() => spawnSync('tmux', ['-S', tmuxSocket(home()), 'show-environment', '-g']).status).not.toBe(0)
})

testInTmux('a server whose socket was deleted is found again, and no second one is started', async () => {
  const { sessions, session } = await start('alder', echo)
  const server = serverPid()
  rmSync(dirname(tmuxSocket(home())), { recursive: true })
  expect(await sessions.list()).toMatchObject([{ name: 'alder', root: session.root, dead: false }])
  await sessions.send(session, 'still there')
  await expect.poll(() => sessions.peek(session, 3)).toContain('got: still there')
  rmSync(tmuxSocket(home()))
  execFileSync('mkfifo', [tmuxSocket(home())])
  await start('beech', 'read -r line')
  expect(serverPid()).toBe(server)
  expect((await sessions.list()).map(({ name }) => name)).toEqual(['alder', 'beech'])
})

testInTmux('a session starts, although the server was just exiting when it was asked', async () => {
  writeFileSync(
    box.path('tmux'),
    `#!/bin/sh
case "$*" in *new-session*) if mkdir '${box.path('asked')}' 2>/dev/null; then echo 'server exited unexpectedly' >&2; exit 1; fi ;; esac
PATH='${box.env['PATH'] ?? ''}' exec tmux "$@"`,
    { mode: 0o755 },
  )
  const { sessions, session } = await start('alder', echo, `${box.root}:${box.env['PATH'] ?? ''}`)
  expect(existsSync(box.path('asked'))).toBe(true)
  expect(await sessions.list()).toMatchObject([{ name: 'alder', root: session.root, dead: false }])
})

testInTmux('a socket outside the home is in a directory that only we can enter', () => {
  const long = box.path('x'.repeat(120))
  const directory = dirname(tmuxSocket(long))
  try {
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    chmodSync(directory, 0o750)
    expect(() => tmuxSocket(long)).toThrow("isn't a private directory")
    rmSync(directory, { recursive: true })
    symlinkSync(box.root, directory)
    expect(() => tmuxSocket(long)).toThrow("isn't a private directory")
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

testInTmux('through a link nobody’s server is commanded', async () => {
  const theirs = ['-S', box.path('theirs'), '-f', '/dev/null'] as const
  execFileSync('tmux', [...theirs, 'new-session', '-d', '-s', 'coppice-alder', 'sleep 1000'], { env: box.env })
  try {
    mkdirSync(dirname(tmuxSocket(home())), { recursive: true })
    symlinkSync(box.path('theirs'), tmuxSocket(home()))
    const sessions = sessionsHere()
    for (const attempt of [sessions.list(), sessions.clear('alder'), start('beech', 'read -r line')]) {
      await expect(attempt).rejects.toThrow('is a symbolic link')
    }
    expect(execFileSync('tmux', [...theirs, 'list-sessions', '-F', '#S'], { encoding: 'utf8' })).toBe('coppice-alder\n')
  } finally {
    execFileSync('tmux', [...theirs, 'kill-server'])
    rmSync(tmuxSocket(home()))
  }
})

const base = writableCgroup()
const withCgroup = base === undefined ? [] : ([['in a cgroup', base]] as const)

testInTmux.each([['in none', undefined], ...withCgroup] as const)(
  'the server survives the end of an agent, %s, that has started it for another one',
  async (_how, parent) => {
    const id = runMarkId(home(), randomUUID(), 1)
    const cgroup = parent && join(parent, `coppice-${id}`)
    const mark: RunMark = { id, cgroup: cgroup !== undefined && makeCgroup(cgroup) ? cgroup : undefined }
    const inside = {
      home: home(),
      sessions: resolve(import.meta.dirname, 'tmux-sessions.ts'),
      session: {
        name: 'beech',
        directory: box.root,
        command: ['sh', '-c', 'read -r line'],
        variables: { PATH: box.env['PATH'] },
        mark: { id: `test.${randomUUID()}`, cgroup: undefined },
      },
    }
    marks.push(inside.session.mark)
    const script = `
    const { home, sessions, session } = ${JSON.stringify(inside)}
    const { createTmuxSessions } = await import(sessions)
    const { root } = await createTmuxSessions({ home, clock: Date.now, env: process.env, log: console }).start(session, async () => {})
    process.stdout.write(JSON.stringify(root))`
    const started = await runProgram({
      command: process.execPath,
      args: ['--input-type=module', '-e', script],
      cwd: '/',
      env: { ...box.env, COPPICE_RUN: mark.id },
      clock: Date.now,
      outputLimitBytes: 100_000,
      mark,
    })
    const root = JSON.parse(started.stdout) as FleetSession['root']
    expect(await killRun([mark], { graceMs: 0, clock: Date.now })).toEqual({ outcome: 'dead' })
    expect(cgroup !== undefined && existsSync(cgroup)).toBe(false)
    expect(liveness(root)).toBe('alive')
    expect(await sessionsHere().list()).toMatchObject([{ name: 'beech', root, dead: false }])
  },
)
