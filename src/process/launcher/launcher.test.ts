import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { identifySync, liveness } from '../identity.ts'
import { parentOf } from '../identity-linux.ts'
import { alwaysLaunched, launchedBy, openLauncher } from '../../../test/helpers/launcher.ts'
import { createLauncher, type Launch, type Launched } from './launcher.ts'

const shell = (text: string, change: Partial<Launch> = {}): Launch => ({
  program: '/bin/sh',
  args: ['-c', text],
  cwd: '/',
  env: { PATH: process.env['PATH'] ?? '' },
  stdin: undefined,
  stderrLimit: 1_000,
  ...change,
})

const known = async <T>(value: Promise<T | 'lost'> | T | 'lost'): Promise<T> => {
  const found = await value
  if (found === 'lost') throw new Error('the small process has died')
  return found
}

const outcome = async ({ started, ended }: Launched) => ({ identity: await known(started), end: await known(ended) })

const temporaryDirectory = () => {
  const path = mkdtempSync(join(tmpdir(), 'coppice-launcher-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) }
}

test('a program gets its input, directory and environment, and nothing of ours', async () => {
  const launcher = createLauncher(alwaysLaunched)
  const what = shell('cat; pwd >&2; env >&2', { cwd: '/usr', env: { ONLY: 'this' }, stdin: 'grüße' })
  const { identity, end } = await outcome(await launchedBy(launcher, what))
  const { exitCode, signal, stdout, stderr } = end
  expect({ exitCode, signal }).toEqual({ exitCode: 0, signal: null })
  expect(Buffer.from(stdout).toString()).toBe('grüße')
  expect(
    Buffer.from(stderr)
      .toString()
      .split('\n')
      .filter((line) => !/^(?:PWD|OLDPWD|_|SHLVL)=/.test(line)),
  ).toEqual(['/usr', 'ONLY=this', ''])
  expect(liveness(identity)).toBe('dead')
})

test('while it runs it is known by its identity, leads its own session, and is a child of the small process', async () => {
  const launcher = await openLauncher()
  const { started, ended } = await launchedBy(launcher, shell('exec sleep 60'))
  const identity = await known(started)
  expect(identity).toEqual(identifySync(identity.pid))
  const fields = readFileSync(`/proc/${identity.pid}/stat`, 'utf8').split(' ')
  expect(Number(fields[5])).toBe(identity.pid)
  process.kill(identity.pid, 'SIGTERM')
  expect(await ended).toMatchObject({ exitCode: null, signal: 'SIGTERM' })
})

test('of long error output, the start and the end are kept', async () => {
  const launcher = createLauncher(alwaysLaunched)
  const { end } = await outcome(await launchedBy(launcher, shell('seq 1 100000 >&2; seq 1 50000; exit 3')))
  const { exitCode, stdout, stderr } = end
  expect(exitCode).toBe(3)
  expect(Buffer.from(stdout).toString().trimEnd().split('\n')).toHaveLength(50_000)
  expect(stderr.length).toBeLessThan(1_100)
  expect(Buffer.from(stderr).toString()).toMatch(/^1\n2\n[^]*\n100000\n$/)
})

test('what can not be started is an error, and the next one starts', async () => {
  const launcher = createLauncher(alwaysLaunched)
  const missing = await launchedBy(launcher, shell('', { program: '/no/such/program' }))
  await expect(missing.started).rejects.toThrow(/ENOENT/)
  await expect(missing.ended).rejects.toThrow(/ENOENT/)
  const impossible = launcher.launch(shell('', { args: ['-c', 'a\0b'] }))
  await expect(impossible?.ended).rejects.toThrow(/null bytes/)
  expect(await launcher.launch(shell('exit 4'))?.ended).toMatchObject({ exitCode: 4 })
})

test('if the small process dies, whoever waits hears of it, and another one is started', async () => {
  const launcher = createLauncher(alwaysLaunched)
  const { started, ended } = await launchedBy(launcher, shell('exec sleep 60'))
  const { pid } = await known(started)
  const small = parentOf(pid)
  expect(small).not.toBe(process.pid)
  process.kill(small ?? 0, 'SIGKILL')
  expect(await ended).toBe('lost')
  process.kill(pid, 'SIGKILL')
  expect(await (await launchedBy(launcher, shell('exit 5'))).ended).toMatchObject({ exitCode: 5 })
})

test('a program of which we do not know yet is recognised as ours', async () => {
  const launcher = createLauncher(alwaysLaunched)
  const first = await launchedBy(launcher, shell('exec sleep 60'))
  const { pid } = await known(first.started)
  // The small process can't tell us of the second one while we are busy, so all of its children may be that one.
  const second = launcher.launch(shell('exec sleep 60'))
  expect(launcher.isStarting(pid)).toBe(true)
  expect(launcher.isStarting(process.pid)).toBe(false)
  const other = await second?.started.then((identity) => known(identity))
  expect(launcher.isStarting(pid)).toBe(false)
  for (const one of [pid, other?.pid ?? 0]) process.kill(one, 'SIGKILL')
})

test('a small process, or one that has started few programs, starts them itself', () => {
  const few = createLauncher({ ...alwaysLaunched, afterStarts: 3 })
  expect([1, 2, 3].map(() => few.launch(shell('exit 0')))).toEqual([undefined, undefined, undefined])
  expect(few.isStarting(process.pid)).toBe(false)
  const small = createLauncher({ ...alwaysLaunched, fromRssBytes: 1e12 })
  expect(small.launch(shell('exit 0'))).toBeUndefined()
})

test('a small process that can not start is not tried again', async () => {
  using dir = temporaryDirectory()
  const [script, tries] = [join(dir.path, 'broken.mjs'), join(dir.path, 'tries')]
  writeFileSync(
    script,
    `process.getBuiltinModule('node:fs').appendFileSync(${JSON.stringify(tries)}, process.pid + '\\n')`,
  )
  const launcher = createLauncher({ ...alwaysLaunched, script })
  expect(launcher.launch(shell('exit 0'))).toBeUndefined()
  const pid = await vi.waitFor(() => Number(readFileSync(tries, 'utf8').trimEnd()))
  // Reaped, so that we know of its end.
  await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false))
  expect(launcher.launch(shell('exit 0'))).toBeUndefined()
  // Takes longer than another try.
  await openLauncher()
  expect(readFileSync(tries, 'utf8')).toBe(`${pid}\n`)
})

test('it ends when it has nothing to do, and when the process that it works for is killed', async () => {
  const launcher = createLauncher({ ...alwaysLaunched, idleMs: 50 })
  const { end } = await outcome(await launchedBy(launcher, shell('echo "$PPID"')))
  const small = Buffer.from(end.stdout).toString().trim()
  expect(small).toMatch(/^\d+$/)
  await vi.waitFor(() => expect(existsSync(`/proc/${small}`)).toBe(false))

  const url = new URL('launcher.ts', import.meta.url).href
  const code = `
    const { createLauncher } = await import(${JSON.stringify(url)})
    const launcher = createLauncher(${JSON.stringify(alwaysLaunched)})
    const what = ${JSON.stringify(shell('exec sleep 60'))}
    const timer = setInterval(async () => {
      const launched = launcher.launch(what)
      if (launched === undefined) return
      clearInterval(timer)
      console.log((await launched.started).pid)
    }, 5)`
  const owner = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(owner.stdout, 'data')) as [Buffer]
  const sleeper = Number(line.toString())
  const its = identifySync(parentOf(sleeper) ?? 0)
  expect(its?.pid).not.toBe(owner.pid)
  owner.kill('SIGKILL')
  await vi.waitFor(() => expect(its && liveness(its)).toBe('dead'))
  process.kill(sleeper, 'SIGKILL')
})
