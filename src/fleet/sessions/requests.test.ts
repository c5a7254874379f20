import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeSandbox, type Sandbox } from '../../../test/helpers/repo.ts'
import { answersDirectory, requestsDirectory } from './paths.ts'
import { askSession, giveAnswer, type SessionAnswer, type SessionRequest, takeRequest } from './requests.ts'

let box: Sandbox
let directory: string
let requests: string
beforeEach(() => {
  box = makeSandbox()
  directory = box.path('alder')
  requests = requestsDirectory(directory)
  for (const place of [requests, answersDirectory(directory)]) mkdirSync(place, { recursive: true })
})
afterEach(() => box[Symbol.dispose]())

const running = new AbortController().signal
const asking = (request: SessionRequest, signal: AbortSignal): Promise<SessionAnswer> =>
  askSession(requests, request, { id: randomUUID(), signal })
const answer: SessionAnswer = { text: 'Done.', json: { done: true }, exitCode: 0 }

/** The shell around a program, which only listens. */
const listen = async (): Promise<ChildProcess> => {
  execFileSync('mkfifo', [join(requests, 'bell')])
  const shell = spawn('sh', ['-c', 'exec cat <>"$0" >"$1"', join(requests, 'bell'), heard()])
  await expect.poll(() => existsSync(heard())).toBe(true)
  return shell
}
const heard = (): string => box.path('heard')

/** The next request, once its name was heard. */
const nextName = async (): Promise<string> => {
  const names = (): string[] => readdirSync(requests).filter((name) => name !== 'bell')
  await expect.poll(() => readFileSync(heard(), 'utf8').trim().split('\n').at(-1)).toBe(names()[0] ?? 'a name')
  return names()[0] ?? ''
}

describe('a command asks its session', () => {
  test('and gets the answer; nothing is left of either', async () => {
    const shell = await listen()
    const asked = asking({ command: 'done', mode: 'push' }, running)
    const name = await nextName()
    expect(takeRequest(directory, name)).toEqual({ command: 'done', mode: 'push' })
    await giveAnswer(directory, name, answer)
    expect(await asked).toEqual(answer)
    expect([readdirSync(requests), readdirSync(answersDirectory(directory))]).toEqual([['bell'], []])
    shell.kill('SIGKILL')
  })

  test('that fails without an answer, or ends', async () => {
    const shell = await listen()
    const failing = asking({ command: 'prime' }, running)
    writeFileSync(join(answersDirectory(directory), await nextName()), '{}\n')
    await expect(failing).rejects.toThrow('the session failed')
    const left = asking({ command: 'prime' }, running)
    await nextName()
    shell.kill('SIGKILL')
    await expect(left).rejects.toThrow('the session has ended')
  })

  test('and is interrupted', async () => {
    const shell = await listen()
    const abort = new AbortController()
    const asked = asking({ command: 'prime' }, abort.signal)
    await nextName()
    abort.abort()
    await expect(asked).rejects.toMatchObject({ code: 'cancelled' })
    expect(readdirSync(requests)).toEqual(['bell'])
    shell.kill('SIGKILL')
  })

  test('that listens no more', async () => {
    execFileSync('mkfifo', [join(requests, 'bell')])
    await expect(asking({ command: 'prime' }, running)).rejects.toMatchObject({ code: 'program-failed' })
    expect(readdirSync(requests)).toEqual(['bell'])
  })
})

describe('an agent may write any request', () => {
  const write = (name: string, content: string): void => writeFileSync(join(requests, name), content)

  test.each([
    ['another command', '{"command":"serve"}'],
    ['another one with words', '{"command":"fleet down","words":[]}'],
    ['a command about others without words', '{"command":"nudge"}'],
    ['more than it may say', '{"command":"done","agent":"beech"}'],
    ['no words', '{"command":"done","mode":7}'],
    ['no JSON', 'done'],
    ['nothing', ''],
    ['too much', `{"command":"done","mode":"${'x'.repeat(20_000)}"}`],
  ])('%s is refused', (_what, content) => {
    write('0-1', content)
    expect(() => takeRequest(directory, '0-1')).toThrow('invalid request')
  })

  test.each(['../secret', 'A', '0 1', '0'.repeat(65)])('the name %j is refused, whatever it says', (name) => {
    write(name, '{"command":"prime"}')
    expect(() => takeRequest(directory, name)).toThrow('invalid request')
  })

  test('a link or a FIFO is no request', () => {
    writeFileSync(box.path('elsewhere'), '{"command":"prime"}')
    symlinkSync(box.path('elsewhere'), join(requests, '0-1'))
    execFileSync('mkfifo', [join(requests, '0-2')])
    for (const name of ['0-1', '0-2']) expect(() => takeRequest(directory, name)).toThrow('invalid request')
  })

  test('an answer that nobody reads holds up nobody for long', async () => {
    write('0-1', '{"command":"prime"}')
    const begun = performance.now()
    await giveAnswer(directory, '0-1', answer)
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(readdirSync(answersDirectory(directory))).toEqual([])
  })
})
