import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRepositoryLock } from './lock.ts'
import type { LockHolder } from './lock-file.ts'

const newLock = () => createRepositoryLock({ clock: Date.now, random: Math.random })

let dir = ''
let children: ChildProcess[] = []

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'coppice-lock-')))
})

afterEach(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  children = []
  rmSync(dir, { recursive: true, force: true })
})

/** A process of its own that has the lock module as `lock` and runs the given code. */
const inAnotherProcess = (code: string): ChildProcess => {
  const source = `
    import * as fs from 'node:fs'
    import { createRepositoryLock } from ${JSON.stringify(fileURLToPath(new URL('lock.ts', import.meta.url)))}
    const lock = createRepositoryLock({ clock: Date.now, random: Math.random })
    const dir = ${JSON.stringify(dir)}
    ${code}`
  const child = spawn(process.execPath, ['--no-warnings', '--expose-gc', '--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  return child
}

const holdForEver = async (purpose: string): Promise<ChildProcess> => {
  const child = inAnotherProcess(`
    await lock.withRepositoryLock(dir, { purpose: ${JSON.stringify(purpose)} }, () => {
      process.stdout.write('held')
      return new Promise(() => setInterval(() => undefined, 1000))
    })`)
  if (child.stdout === null) throw new Error('no output')
  await once(child.stdout, 'data')
  return child
}

const gate = () => Promise.withResolvers<void>()

test('two processes with 200 critical sections each never overlap, and neither waits for the other to finish all', async () => {
  const log = join(dir, 'log')
  // A process that starts late would find the other one done.
  const go = join(dir, 'go')
  const code = (name: string) => `
    process.stdout.write('ready')
    while (!fs.existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 5))
    await Promise.all(Array.from({ length: 200 }, () => lock.withRepositoryLock(dir, { purpose: 'count' }, async () => {
      fs.appendFileSync(${JSON.stringify(log)}, 'enter ${name}\\n')
      await new Promise((resolve) => setTimeout(resolve, 2))
      fs.appendFileSync(${JSON.stringify(log)}, 'leave ${name}\\n')
    })))`
  const both = [inAnotherProcess(code('a')), inAnotherProcess(code('b'))]
  const exits = both.map((child) => once(child, 'exit').then(([exit]: unknown[]) => exit))
  for (const { stdout } of both) if (stdout !== null) await once(stdout, 'data')
  writeFileSync(go, '')
  const codes = await Promise.all(exits)
  expect(codes).toEqual([0, 0])
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  expect(lines).toHaveLength(800)
  for (let i = 0; i < lines.length; i += 2) {
    expect(lines[i + 1]).toBe(lines[i]?.replace('enter', 'leave'))
  }
  const handOvers = lines.filter((line, i) => i % 2 === 0 && i > 0 && line !== lines[i - 2]).length
  expect(handOvers).toBeGreaterThan(1)
})

test('a holder that is killed frees the lock', async () => {
  const holder = await holdForEver('a long creation')
  let entered = false
  const waiting = newLock().withRepositoryLock(dir, { purpose: 'after the crash', timeoutMs: 30_000 }, async () => {
    entered = true
  })
  expect(entered).toBe(false)
  holder.kill('SIGKILL')
  await waiting
  expect(entered).toBe(true)
  expect(readdirSync(dir)).toEqual(['coppice.lock'])
})

test('the lock is not lost to garbage collection while its holder waits for something nobody refers to', async () => {
  const holder = inAnotherProcess(`
    void lock.withRepositoryLock(dir, { purpose: 'stuck' }, () => new Promise(() => {
      setInterval(() => { for (let i = 0; i < 3; i += 1) gc(); process.stdout.write('collected ') }, 20)
    }))`)
  if (holder.stdout === null) throw new Error('no output')
  for (let text = ''; text.split('collected').length < 6;) {
    text += String(((await once(holder.stdout, 'data')) as [Buffer])[0])
  }
  const other = newLock().withRepositoryLock(dir, { purpose: 'other', timeoutMs: 100 }, async () => 'in')
  await expect(other).rejects.toMatchObject({ code: 'busy' })
})

test('within a process the turns are given in order of arrival', async () => {
  const { withRepositoryLock } = newLock()
  const order: number[] = []
  const open = gate()
  const first = withRepositoryLock(dir, { purpose: 'first' }, () => open.promise)
  const rest = Array.from({ length: 20 }, (_, i) =>
    withRepositoryLock(dir, { purpose: `turn ${i}` }, async () => {
      order.push(i)
    }),
  )
  open.resolve()
  await Promise.all([first, ...rest])
  expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i))
})

test('two names of one repository are one lock', async () => {
  const { withRepositoryLock } = newLock()
  const alias = `${dir}-alias`
  symlinkSync(dir, alias)
  const open = gate()
  const entered = gate()
  const first = withRepositoryLock(dir, { purpose: 'first' }, () => {
    entered.resolve()
    return open.promise
  })
  await entered.promise
  const second = withRepositoryLock(alias, { purpose: 'second', timeoutMs: 50 }, async () => 'in')
  await expect(second).rejects.toMatchObject({ code: 'busy' })
  open.resolve()
  await first
  rmSync(alias)
})

test('two locks made in one process keep each other out as well', async () => {
  const open = gate()
  const entered = gate()
  const first = newLock().withRepositoryLock(dir, { purpose: 'first' }, () => {
    entered.resolve()
    return open.promise
  })
  await entered.promise
  const second = newLock().withRepositoryLock(dir, { purpose: 'second', timeoutMs: 50 }, async () => 'in')
  await expect(second).rejects.toMatchObject({ code: 'busy' })
  // and the refused one has not made the first one's lock void for other processes
  const other = inAnotherProcess(`
    await lock.withRepositoryLock(dir, { purpose: 'other', timeoutMs: 50 }, async () => process.exit(9)).catch((e) => {
      process.exit(e.code === 'busy' ? 7 : 8)
    })`)
  expect((await once(other, 'exit'))[0]).toBe(7)
  open.resolve()
  await first
})

test('waiting is called off by an abort, in the queue and at the file, and nobody after it loses the turn', async () => {
  const holder = await holdForEver('something else')
  const { withRepositoryLock } = newLock()
  const atFile = new AbortController()
  const inQueue = new AbortController()
  const never = async () => 'in'
  const first = withRepositoryLock(dir, { purpose: 'at the file', signal: atFile.signal }, never)
  const second = withRepositoryLock(dir, { purpose: 'in the queue', signal: inQueue.signal }, never)
  const third = withRepositoryLock(dir, { purpose: 'patient' }, async () => 'served')
  inQueue.abort()
  await expect(second).rejects.toMatchObject({ code: 'cancelled' })
  atFile.abort()
  await expect(first).rejects.toMatchObject({ code: 'cancelled' })
  holder.kill('SIGKILL')
  await expect(third).resolves.toBe('served')
  const before = withRepositoryLock(dir, { purpose: 'too late', signal: AbortSignal.abort() }, never)
  await expect(before).rejects.toMatchObject({ code: 'cancelled' })
})

test('taking the lock again inside its own work throws instead of waiting for ever', async () => {
  const { withRepositoryLock } = newLock()
  const nested = withRepositoryLock(dir, { purpose: 'outer' }, () =>
    withRepositoryLock(dir, { purpose: 'inner' }, async () => 'in'),
  )
  await expect(nested).rejects.toThrow(/already held by this flow/)
  await expect(withRepositoryLock(dir, { purpose: 'next' }, async () => 'fine')).resolves.toBe('fine')
})

test('work that was started under the lock may take it once the lock is given back', async () => {
  const { withRepositoryLock } = newLock()
  const released = gate()
  let later: Promise<string> = Promise.reject(new Error('not started'))
  later.catch(() => undefined)
  await withRepositoryLock(dir, { purpose: 'outer' }, async () => {
    later = released.promise.then(() => withRepositoryLock(dir, { purpose: 'later' }, async () => 'in'))
  })
  released.resolve()
  await expect(later).resolves.toBe('in')
})

test('who waits long is told once who has it, and a time-out names the holder', async () => {
  const holder = await holdForEver('creating issue-42')
  const told: (LockHolder | undefined)[] = []
  const waiting = newLock().withRepositoryLock(
    dir,
    { purpose: 'removing', timeoutMs: 900, onWait: (who) => told.push(who) },
    async () => 'in',
  )
  await expect(waiting).rejects.toMatchObject({
    code: 'busy',
    message: `the repository is in use by process ${holder.pid} (creating issue-42)`,
  })
  expect(told).toHaveLength(1)
  expect(told[0]).toMatchObject({ pid: holder.pid, purpose: 'creating issue-42' })
})

test('a short wait is not announced, and the work of a failed holder frees the lock', async () => {
  const { withRepositoryLock } = newLock()
  const told: unknown[] = []
  const failing = withRepositoryLock(dir, { purpose: 'fails' }, async () => {
    throw new Error('as told')
  })
  const next = withRepositoryLock(dir, { purpose: 'next', onWait: (who) => told.push(who) }, async () => 'in')
  await expect(failing).rejects.toThrow('as told')
  await expect(next).resolves.toBe('in')
  expect(told).toEqual([])
})

test('git works in the repository without disturbing the lock, and no side file appears', async () => {
  const home = join(dir, 'home')
  const repo = join(dir, 'repo')
  mkdirSync(home)
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: existsSync(repo) ? repo : dir,
      encoding: 'utf8',
      stdio: 'pipe',
      env: { PATH: process.env['PATH'], HOME: home, GIT_CONFIG_NOSYSTEM: '1' },
    })
  git('init', '-q', repo)
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
  git(...who, 'commit', '-q', '--allow-empty', '-m', 'start')
  const commonDir = join(repo, '.git')
  await newLock().withRepositoryLock(commonDir, { purpose: 'work' }, async () => {
    const inode = statSync(join(commonDir, 'coppice.lock')).ino
    expect(git('status', '--porcelain')).toBe('')
    git('gc', '-q', '--prune=now')
    git('worktree', 'prune')
    git('fsck')
    expect(statSync(join(commonDir, 'coppice.lock')).ino).toBe(inode)
    // A short hold leaves no trace but the lock itself; a longer one says who has it.
    const names = () => readdirSync(commonDir).filter((name) => name.startsWith('coppice'))
    expect(names()).toEqual(['coppice.lock'])
    await expect.poll(names).toEqual(['coppice.lock', 'coppice.lock.info'])
    const other = newLock().withRepositoryLock(commonDir, { purpose: 'other', timeoutMs: 30 }, async () => 'in')
    await expect(other).rejects.toMatchObject({ code: 'busy' })
  })
  expect(readdirSync(commonDir).filter((name) => name.startsWith('coppice'))).toEqual(['coppice.lock'])
})

test('the lock file is for the owner alone unless others may write in the repository', async () => {
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
  const modes: Record<string, string> = {}
  for (const dirMode of [0o755, 0o775, 0o777]) {
    const common = join(dir, dirMode.toString(8))
    mkdirSync(common)
    chmodSync(common, dirMode)
    await newLock().withRepositoryLock(common, { purpose: 'mode' }, async () => undefined)
    modes[dirMode.toString(8)] = mode(join(common, 'coppice.lock'))
  }
  expect(modes).toEqual({ '755': '600', '775': '660', '777': '666' })
})

test('a repository replaced while somebody waited is locked anew, not by the old file', async () => {
  const common = join(dir, 'common')
  mkdirSync(common)
  const open = gate()
  const entered = gate()
  const first = newLock().withRepositoryLock(common, { purpose: 'first' }, () => {
    entered.resolve()
    return open.promise
  })
  await entered.promise
  const inodes: number[] = []
  const marked = statSync(join(common, 'coppice.lock')).mtimeMs
  const second = newLock().withRepositoryLock(common, { purpose: 'second' }, async () => {
    inodes.push(statSync(join(common, 'coppice.lock')).ino)
    const third = newLock().withRepositoryLock(common, { purpose: 'third', timeoutMs: 30 }, async () => 'in')
    await expect(third).rejects.toMatchObject({ code: 'busy' })
  })
  while (statSync(join(common, 'coppice.lock')).mtimeMs === marked) await new Promise(setImmediate)
  renameSync(join(common, 'coppice.lock'), join(dir, 'old-lock'))
  writeFileSync(join(common, 'coppice.lock'), '')
  open.resolve()
  await Promise.all([first, second])
  expect(inodes).toEqual([statSync(join(common, 'coppice.lock')).ino])
})

test.each([
  ['replaced', (path: string) => writeFileSync(path, '')],
  ['deleted', () => undefined],
])('the next in line, for whom the file is still open, locks the one that is there if it was %s', async (_, put) => {
  const path = join(dir, 'coppice.lock')
  const lock = newLock()
  const first = lock.withRepositoryLock(dir, { purpose: 'first' }, async () => {
    renameSync(path, join(dir, 'old-lock'))
    put(path)
  })
  const second = lock.withRepositoryLock(dir, { purpose: 'second' }, async () => {
    const third = newLock().withRepositoryLock(dir, { purpose: 'third', timeoutMs: 30 }, async () => 'in')
    await expect(third).rejects.toMatchObject({ code: 'busy' })
    return statSync(path).ino
  })
  await first
  expect(await second).toBe(statSync(path).ino)
})

test('a damaged lock file stops the work with a sentence of what to do', async () => {
  appendFileSync(join(dir, 'coppice.lock'), 'not a database '.repeat(100))
  const work = newLock().withRepositoryLock(dir, { purpose: 'work' }, async () => 'in')
  await expect(work).rejects.toMatchObject({ code: 'unexpected', remedy: expect.stringContaining('delete it') })
})
