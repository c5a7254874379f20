import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parsePsReading } from './identity-darwin.ts'
import { identifySync, liveness, selfIdentity } from './identity.ts'
import { parseStat } from './proc.ts'

test('a running process is alive by its identity, and dead once it has ended', async () => {
  const child = spawn('sleep', ['60'])
  const identity = identifySync(child.pid ?? 0)
  if (identity === undefined) throw new Error('not identified')
  expect(liveness(identity)).toBe('alive')
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(liveness(identity)).toBe('dead')
  expect(identifySync(identity.pid)).toBeUndefined()
})

test('the same pid with another start time is another process, so ours is dead', () => {
  const self = selfIdentity()
  expect(liveness(self)).toBe('alive')
  expect(liveness({ ...self, startTime: `${self.startTime}0` })).toBe('dead')
})

test('a process of an earlier boot is dead, whatever has its pid now', () => {
  const self = selfIdentity()
  const otherBoot = self.startTime.replace(/^[^:]+/, '00000000-0000-0000-0000-000000000000')
  expect(otherBoot).not.toBe(self.startTime)
  expect(liveness({ pid: self.pid, startTime: otherBoot })).toBe('dead')
})

test('a zombie is dead', async () => {
  // The shell starts a child and becomes a program that never waits for it.
  const parent = spawn('/bin/sh', ['-c', 'sleep 0.01 & echo $!; exec sleep 60'])
  const [line] = (await once(parent.stdout, 'data')) as [Buffer]
  const zombie = Number(line.toString())
  const identity = identifySync(zombie)
  if (identity === undefined) throw new Error('not identified')
  while (!/\) Z /.test(readFileSync(`/proc/${zombie}/stat`, 'latin1'))) await new Promise(setImmediate)
  expect(identifySync(zombie)).toEqual(identity)
  expect(liveness(identity)).toBe('dead')
  parent.kill('SIGKILL')
  await once(parent, 'exit')
})

test.each([0, -1, 1.5, Number.NaN])('%s is nobody', (pid) => {
  expect(identifySync(pid)).toBeUndefined()
  expect(liveness({ pid, startTime: 'x' })).toBe('dead')
})

const statLine = (command: string, state: string, threads: number) =>
  `42 (${command}) ${state} 7 42 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 ${threads} 0 987654 1000 2000`

test.each(['sleep', 'a b', 'x) Z 1 (y', ') R 1 2 3', '((', ''])(
  'the command %j does not confuse the fields',
  (command) => {
    expect(parseStat(statLine(command, 'S', 1))).toEqual({
      pid: 42,
      command,
      zombie: false,
      stopped: false,
      kernelThread: false,
      thread: false,
      parentPid: 7,
      processGroup: 42,
      session: 41,
      terminal: false,
      cpuTicks: 5 + 6 + 7 + 8,
      startTicks: '987654',
    })
  },
)

test('a main thread that ended while others run is not a dead process', () => {
  expect(parseStat(statLine('x', 'Z', 3))?.zombie).toBe(false)
  expect(parseStat(statLine('x', 'Z', 1))?.zombie).toBe(true)
  expect(parseStat(statLine('x', 'X', 1))?.zombie).toBe(true)
})

test('what is no stat line is not guessed at', () => {
  expect(parseStat('')).toBeUndefined()
  expect(parseStat('42 (x')).toBeUndefined()
  expect(parseStat('42 (x) S 1 2')).toBeUndefined()
})

test('on macOS ps tells start and state, silence is nobody, and a complaint is "cannot tell"', () => {
  expect(parsePsReading('Ss   Sat Mar  1 09:05:07 2025\n', '')).toEqual({
    kind: 'there',
    startTime: 'Sat Mar 1 09:05:07 2025',
    zombie: false,
  })
  expect(parsePsReading('Z    Sat Mar  1 09:05:07 2025\n', '')).toMatchObject({ zombie: true })
  expect(parsePsReading('', '')).toEqual({ kind: 'gone' })
  expect(parsePsReading('', 'ps: out of memory')).toEqual({ kind: 'cannot-tell' })
})
