import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'coppice-take-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const module = new URL('take-environment.ts', import.meta.url).pathname

type Told = {
  readonly env: Record<string, string>
  readonly exposed: string[]
  /** What the process still has, and what others read of it. */
  readonly left: string[]
  readonly readable: string
  readonly restarts: number
}

/** Takes its environment in a process of its own and tells what came of it. */
const take = (environment: Record<string, string>, options = ''): Told => {
  const script = join(directory, 'take.ts')
  writeFileSync(
    script,
    `import { readFileSync } from 'node:fs'
import { takeEnvironment } from '${module}'
const restarts = Number(process.env['NODE_RESTARTS'] ?? 0)
const restart = (environment: Record<string, string>): void => {
  process.removeAllListeners('warning')
  process.execve?.(process.execPath, process.argv.toSpliced(0, 1, process.execPath), {
    ...environment,
    NODE_RESTARTS: String(restarts + 1),
  })
}
const taken = takeEnvironment(${options})
const readable = readFileSync('/proc/self/environ', 'latin1')
console.log(JSON.stringify({ ...taken, left: Object.keys(process.env), readable, restarts }))
`,
  )
  const { stdout, stderr } = spawnSync(process.execPath, [script], {
    encoding: 'utf8',
    env: { PATH: '/bin', TMPDIR: directory, ...environment },
  })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Told
}

const given = {
  GITHUB_TOKEN: 'canary-token',
  COPPICE_HOME: '/canary/home',
  UNHEARD_OF: 'canary',
  EMPTY: '',
  ODD: 'a=b=canary\nHOME=canary',
  NODE_AUTH_TOKEN: 'canary-of-npm',
  PGPASSWORD: 'canary-of-postgres',
  PGHOST: 'db.example',
  LANG: 'C.UTF-8',
  NODE_ENV: 'production',
}
const kept = ['LANG', 'NODE_ENV', 'PATH', 'PGHOST', 'TMPDIR']

describe.skipIf(process.platform !== 'linux')('the environment', () => {
  test('is ours as it was given, and others read of it only what agents are given too', () => {
    const { env, exposed, left, readable } = take(given)
    expect(env).toMatchObject(given)
    expect(exposed).toEqual([])
    expect(left.toSorted()).toEqual(kept)
    expect(readable).not.toContain('canary')
    expect(readable).not.toContain('GITHUB_TOKEN')
    expect(readable.split('\0').filter(Boolean).toSorted()).toEqual([
      'LANG=C.UTF-8',
      'NODE_ENV=production',
      'PATH=/bin',
      'PGHOST=db.example',
      `TMPDIR=${directory}`,
    ])
  })

  test('goes through a restart where the process cannot overwrite it, and leaves no file behind', () => {
    const { env, exposed, left, readable, restarts } = take(given, `{ proc: '${directory}/no-proc', restart }`)
    expect(restarts).toBe(1)
    expect(env).toMatchObject(given)
    expect(exposed).toEqual([])
    expect(left.toSorted()).toEqual([...kept, 'NODE_RESTARTS'].toSorted())
    expect(readable).not.toContain('canary')
    expect(readdirSync(directory)).toEqual(['take.ts'])
  })

  test('needs no restart where there is no secret in it', () => {
    const { restarts, exposed } = take({ UNHEARD_OF: 'x' }, `{ proc: '${directory}/no-proc', restart }`)
    expect({ restarts, exposed }).toEqual({ restarts: 0, exposed: [] })
  })

  test('is said to be readable, by name, where neither is possible', () => {
    const { env, exposed } = take(given, `{ proc: '${directory}/no-proc', restart: undefined }`)
    expect(env).toMatchObject(given)
    expect(exposed.toSorted()).toEqual(['GITHUB_TOKEN', 'NODE_AUTH_TOKEN', 'PGPASSWORD'])
  })

  test('is said to be readable when the overwriting changed nothing', () => {
    // A memory that takes every byte and keeps none.
    symlinkSync('/dev/null', join(directory, 'mem'))
    symlinkSync('/proc/self/stat', join(directory, 'stat'))
    symlinkSync('/proc/self/environ', join(directory, 'environ'))
    const { exposed } = take(given, `{ proc: '${directory}', restart: undefined }`)
    expect(exposed).toContain('GITHUB_TOKEN')
  })
})
