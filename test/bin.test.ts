import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const pinned = join(root, 'node_modules/node/bin/node')
const older = olderNode()

/** A fake main that shows what reached it. */
const main = `
import { readFileSync } from 'node:fs'
const [command, value] = process.argv.slice(2)
if (command === 'version') console.log(process.versions.node.split('.')[0])
if (command === 'args') console.log(JSON.stringify(process.argv.slice(2)))
if (command === 'env') console.log(String(process.env.COPPICE_PARENT_PIPE))
if (command === 'exit') process.exitCode = Number(value)
if (command === 'cat') process.stdout.write(readFileSync(0))
if (command === 'throw') throw new Error('from main')
if (command === 'suicide') process.kill(process.pid, value)
if (command === 'wait' || command === 'handle') {
  let count = 0
  const seen = (signal) => {
    count += 1
    console.log('got ' + signal + ' ' + count)
    setTimeout(() => process.exit(40 + count), 50)
  }
  if (command === 'handle') for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, seen)
  setInterval(() => {}, 1000)
  console.log('ready ' + process.pid)
}
`

let home: string
const at = (kind: string): string => join(home, kind, 'bin/coppice.js')

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'coppice-bin-'))
  const install = (kind: string): string => {
    const place = join(home, kind)
    cpSync(join(root, 'bin'), join(place, 'bin'), { recursive: true })
    writeFileSync(join(place, 'package.json'), '{"type":"module"}')
    return place
  }
  const built = install('checkout')
  mkdirSync(join(built, 'dist'))
  writeFileSync(join(built, 'dist/main.js'), main)
  mkdirSync(join(built, 'node_modules'))
  symlinkSync(join(root, 'node_modules/node'), join(built, 'node_modules/node'))

  const sources = install('sources')
  mkdirSync(join(sources, 'src'))
  writeFileSync(join(sources, 'src/main.ts'), 'const text: string = "from source"\nconsole.log(text)\n')

  const alone = install('alone')
  mkdirSync(join(alone, 'dist'))
  writeFileSync(join(alone, 'dist/main.js'), main)

  const stale = install('stale')
  mkdirSync(join(stale, 'node_modules/node/bin'), { recursive: true })
  writeFileSync(join(stale, 'node_modules/node/package.json'), '{"name":"node","version":"18.20.0"}')
  symlinkSync(older ?? pinned, join(stale, 'node_modules/node/bin/node'))
})

afterAll(() => rmSync(home, { recursive: true, force: true }))

const run = (node: string, file: string, args: string[], input = '') => {
  const { status, signal, stdout, stderr } = spawnSync(node, [file, ...args], { encoding: 'utf8', input })
  return { status, signal, stdout, stderr }
}

const runtimes = [
  ['the pinned Node', pinned],
  ...(older === undefined ? [] : [['an older Node', older] as const]),
] as const

describe.each(runtimes)('started by %s', (_, node) => {
  test('it runs on Node 24 or newer', () => {
    expect(Number(run(node, at('checkout'), ['version']).stdout)).toBeGreaterThanOrEqual(24)
  })

  test('arguments arrive as they were given', () => {
    const args = ['args', '--json', '', 'a b', '--', '日本', '$HOME', '*']
    expect(JSON.parse(run(node, at('checkout'), args).stdout)).toEqual(args)
  })

  test.each([0, 1, 2, 3])('exit code %i is its own, and nothing else is printed', (code) => {
    expect(run(node, at('checkout'), ['exit', String(code)])).toEqual({
      status: code,
      signal: null,
      stdout: '',
      stderr: '',
    })
  })

  test('standard input reaches the program, all of it', () => {
    const input = 'line\n'.repeat(50_000)
    expect(run(node, at('checkout'), ['cat'], input).stdout).toBe(input)
  })

  test('an error that nobody caught is a failure', () => {
    const { status, stderr } = run(node, at('checkout'), ['throw'])
    expect(status).toBe(1)
    expect(stderr).toContain('from main')
  })

  test.each(['SIGTERM', 'SIGKILL', 'SIGSEGV'])('death by %s looks like death by it', (signal) => {
    expect(run(node, at('checkout'), ['suicide', signal])).toMatchObject({ status: null, signal })
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s reaches the program once, and its exit is kept',
    async (signal) => {
      const child = started(node, ['handle'])
      await child.ready
      child.process.kill(signal)
      expect(await child.exit).toEqual({ code: 41, signal: null })
      expect(child.output()).toContain(`got ${signal} 1`)
      expect(child.output()).not.toContain(`got ${signal} 2`)
    },
  )

  test('a program that does not handle SIGTERM dies of it', async () => {
    const child = started(node, ['wait'])
    await child.ready
    child.process.kill('SIGTERM')
    expect(await child.exit).toEqual({ code: null, signal: 'SIGTERM' })
  })

  test('the program does not outlive a starter that was killed', async () => {
    const child = started(node, ['wait'])
    const pid = await child.ready
    child.process.kill('SIGKILL')
    await child.exit
    // The program's copy of standard output is closed when it is gone, not when its starter is.
    await child.closed
    await expect.poll(() => alive(pid)).toBe(false)
  })

  test('the way it was started leaves no trace in the environment', () => {
    expect(run(node, at('checkout'), ['env']).stdout).toBe('undefined\n')
  })
})

test('a checkout without a build runs its sources', () => {
  expect(run(pinned, at('sources'), [])).toMatchObject({ status: 0, stdout: 'from source\n' })
})

describe.skipIf(older === undefined)('an older Node without a newer one beside it', () => {
  test.each(['alone', 'stale'])('(%s) is told in one sentence what to do', (kind) => {
    const { status, stdout, stderr } = run(older ?? '', at(kind), ['version'])
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(
      /^coppice needs Node 24 or newer and this is v\d+\.\d+\.\d+: install it .* and run coppice again\.\n$/,
    )
  })
})

type Started = {
  process: ChildProcess
  ready: Promise<number>
  exit: Promise<{ code: number | null; signal: string | null }>
  closed: Promise<void>
  output: () => string
}

function started(node: string, args: string[]): Started {
  const child = spawn(node, [at('checkout'), ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  const ready = new Promise<number>((done) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const match = /ready (\d+)/.exec(output)
      if (match) done(Number(match[1]))
    })
  })
  return {
    process: child,
    ready,
    exit: new Promise((done) => child.once('exit', (code, signal) => done({ code, signal }))),
    closed: new Promise((done) => child.once('close', () => done())),
    output: () => output,
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // An unreaped zombie still has a pid; it runs nothing any more.
    return !/^\d+ \(.*\) Z/s.test(spawnSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' }).stdout)
  } catch {
    return false
  }
}

/** The first `node` on the PATH that is older than 24; a machine without one tests the pinned runtime only. */
function olderNode(): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'node'))
    .filter((file) => existsSync(file))
    .find(
      (file) =>
        Number(spawnSync(file, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' }).stdout) < 24,
    )
}

describe('compiled code is cached', () => {
  /** Starts it with an empty home and an empty temporary directory, and returns both. */
  const start = (prepare: (cache: string) => void = () => {}): { cache: string; temporary: string } => {
    const own = mkdtempSync(join(home, 'cache-'))
    const temporary = join(own, 'tmp')
    const cache = join(own, 'home/.cache/coppice')
    for (const path of [temporary, join(own, 'home')]) mkdirSync(path)
    prepare(cache)
    const env = { PATH: process.env['PATH'] ?? '', HOME: join(own, 'home'), TMPDIR: temporary }
    const { status } = spawnSync(pinned, [at('checkout'), 'exit', '0'], { env })
    expect(status).toBe(0)
    return { cache, temporary }
  }

  test('in a directory of our own, not in the shared temporary one, where others could put code for us to run', () => {
    const { cache, temporary } = start()
    expect(readdirSync(cache)).toHaveLength(1)
    expect(statSync(cache).mode & 0o777).toBe(0o700)
    expect(readdirSync(temporary)).toEqual([])
  })

  test('not in one that others can write', () => {
    const { cache } = start((directory) => {
      mkdirSync(directory, { recursive: true })
      chmodSync(directory, 0o777)
    })
    expect(readdirSync(cache)).toEqual([])
  })

  test('not in one that is a link', () => {
    const { cache } = start((directory) => {
      mkdirSync(`${directory}-elsewhere`, { recursive: true, mode: 0o700 })
      symlinkSync(`${directory}-elsewhere`, directory)
    })
    expect(readdirSync(cache)).toEqual([])
  })

  test('not in one that others can replace', () => {
    const { cache } = start((directory) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      chmodSync(join(directory, '..'), 0o777)
    })
    expect(readdirSync(cache)).toEqual([])
  })

  test.skipIf(process.getuid?.() !== 0)("not in somebody else's", () => {
    const { cache } = start((directory) => {
      mkdirSync(directory, { recursive: true })
      chownSync(directory, 65_534, 65_534)
    })
    expect(readdirSync(cache)).toEqual([])
  })
})
