import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { isPopulated, killCgroup, makeCgroup, ownCgroup, removeCgroup, writableCgroup } from './cgroup.ts'
import { identifySync, liveness } from './identity.ts'
import { killAll, killRun } from './kill.ts'
import { isAnyMarked, markedProcesses } from './marked-processes.ts'
import type { RunMark } from './run-mark.ts'
import { processesOfRuns as search } from './run-processes.ts'
import { runProgram } from './spawn.ts'
import { linuxRow, processTable } from './table.ts'

const clock = () => performance.now()
const base = writableCgroup()

let dir = ''
let toEnd: ProcessIdentity[] = []
let cgroups: string[] = []
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'coppice-mark-')))
})
afterEach(() => {
  for (const identity of toEnd) if (liveness(identity) === 'alive') process.kill(identity.pid, 'SIGKILL')
  for (const cgroup of cgroups) {
    killCgroup(cgroup)
    removeCgroup(cgroup)
  }
  toEnd = []
  cgroups = []
  rmSync(dir, { recursive: true, force: true })
})

const newMark = (withCgroup: boolean): RunMark => {
  const id = randomUUID()
  const cgroup = withCgroup ? join(base ?? '', `coppice-${id}`) : undefined
  if (cgroup !== undefined) {
    expect(makeCgroup(cgroup)).toBe(true)
    cgroups.push(cgroup)
  }
  return { id, cgroup }
}

/** Runs it as an agent's program would be, and answers the process whose pid it wrote down. */
const leftBy = async (shell: string, mark: RunMark): Promise<ProcessIdentity> => {
  const env = { PATH: process.env['PATH'], PID: join(dir, 'pid'), COPPICE_RUN: mark.id }
  const { stderr } = await runProgram({ shell, cwd: dir, env, clock, outputLimitBytes: 1_000, mark })
  expect(stderr).toBe('')
  while (!existsSync(join(dir, 'pid'))) await new Promise(setImmediate)
  const identity = identifySync(Number(readFileSync(join(dir, 'pid'), 'utf8')))
  if (identity === undefined) throw new Error('nothing was left')
  toEnd.push(identity)
  return identity
}

const written = 'echo $$ > $PID.new; mv $PID.new $PID'
const inEmptyEnvironment = (script: string): string =>
  `env -i PATH="$PATH" PID="$PID" setsid sh -c '(${script}) &' < /dev/null > /dev/null 2>&1`
const subshell = (then: string): string => `sh -c "${written.replaceAll('$', '\\$')}; ${then}"`

const escapes: readonly (readonly [string, string])[] = [
  ['forks twice into a session of its own with an empty environment', inEmptyEnvironment(subshell('exec sleep 300'))],
  [
    'also leaves the directory and closes its files',
    inEmptyEnvironment(`cd /; exec 0<&- 1>&- 2>&-; ${subshell('exec sleep 300')}`),
  ],
  [
    'also ignores SIGTERM and SIGHUP',
    inEmptyEnvironment(subshell('trap \\"\\" TERM HUP; while :; do sleep 0.1; done')),
  ],
  ['only keeps its environment', `setsid sh -c '(${subshell('exec sleep 300')}) &' > /dev/null 2>&1`],
]

const relays: readonly (readonly [string, string])[] = [
  ['in one group', 'f() { f & }; f'],
  ['each time in a group of its own', 'set -m; f() { f & }; f'],
  ['each time in a session of its own', 'setsid bash relay.sh &'],
]

const ways = [
  { how: 'with a cgroup of its own', withCgroup: true },
  { how: 'without cgroups', withCgroup: false },
].filter(({ withCgroup }) => !withCgroup || base !== undefined)

const processesOfRuns = async (marks: readonly RunMark[]): Promise<readonly ProcessIdentity[]> =>
  (await search(marks)).rows.map(({ identity }) => identity)

describe.each(ways)('$how', ({ withCgroup }) => {
  test.each(escapes)('a child that %s is found and ended', async (_name, script) => {
    const mark = newMark(withCgroup)
    const left = await leftBy(script, mark)
    expect(await processesOfRuns([mark])).toContainEqual(left)
    expect(await processesOfRuns([{ id: randomUUID(), cgroup: undefined }])).toEqual([])
    expect(await killRun([mark], { graceMs: 200, clock })).toEqual({ outcome: 'dead' })
    expect(liveness(left)).toBe('dead')
    expect(mark.cgroup !== undefined && existsSync(mark.cgroup), 'nothing of it is left in /sys/fs/cgroup').toBe(false)
  })

  test.each(relays)('a child that forks and ends all the time, %s, is seen and ended', async (_name, relay) => {
    const mark = newMark(withCgroup)
    writeFileSync(join(dir, 'relay.sh'), `trap '' TERM HUP; ${relay}`)
    const shell = 'env -i PATH="$PATH" setsid bash relay.sh < /dev/null > /dev/null 2>&1'
    const env = { PATH: process.env['PATH'] }
    await runProgram({ shell, cwd: dir, env, clock, outputLimitBytes: 100, mark })
    for (let look = 0; look < 5; look += 1) expect(isAnyMarked(await markedProcesses([mark]))).toBe(true)
    expect(await killRun([mark], { graceMs: 50, clock })).toEqual({ outcome: 'dead' })
    expect(await search([mark])).toEqual({ rows: [], complete: true })
  })

  test('a run that left nothing is dead at once, and whoever else runs here is left alone', async () => {
    const [mark, other] = [newMark(withCgroup), newMark(false)]
    const bystander = await leftBy(`setsid sh -c '(${subshell('exec sleep 300')}) &' > /dev/null 2>&1`, other)
    await runProgram({ shell: 'true', cwd: dir, env: {}, clock, outputLimitBytes: 100, mark })
    expect(await killRun([mark], { graceMs: 200, clock })).toEqual({ outcome: 'dead' })
    expect(liveness(bystander)).toBe('alive')
  })
})

test('everything else gets a turn while processes are looked for', async () => {
  let turns = 0
  const slice = { isOver: () => true, next: async () => void (turns += 1) }
  const { length } = await processTable(slice)
  expect(turns).toBeGreaterThanOrEqual(length)
  turns = 0
  await search([{ id: randomUUID(), cgroup: undefined }], { slice })
  // Other tests' processes come and go.
  const atLeast = Math.min(length, (await processTable()).length)
  expect(turns, 'once for the limits and once for the environment of each').toBeGreaterThan(atLeast)
})

test('a thread is not taken for a process: its number is not what /proc lists', () => {
  const rows = readdirSync('/proc/self/task').map((id) => [Number(id), linuxRow(Number(id))?.identity.pid])
  expect(rows.length).toBeGreaterThan(1)
  expect(rows.filter(([, pid]) => pid !== undefined)).toEqual([[process.pid, process.pid]])
})

describe.runIf(base !== undefined)('a cgroup of its own', () => {
  test('is ended as a whole: also a child that dropped every mark, and one that no look has shown', async () => {
    const mark = newMark(true)
    const resets = `ulimit -S -w unlimited 2>/dev/null || ulimit -S -x unlimited; ${subshell('exec sleep 300')}`
    const left = await leftBy(inEmptyEnvironment(resets), mark)
    expect(await processesOfRuns([{ ...mark, cgroup: undefined }]), 'the mark is gone').toEqual([])
    expect(await processesOfRuns([mark])).toEqual([left])
    const blind = {
      known: [],
      find: async () => ({ rows: [], complete: true }),
      untouchable: new Set<number>(),
      cgroups: [mark.cgroup ?? ''],
    }
    expect(await killAll(blind, { graceMs: 50, clock })).toEqual({ outcome: 'dead' })
    expect([liveness(left), isPopulated(mark.cgroup ?? '')]).toEqual(['dead', false])
  })

  test('goes with the cgroups that the agent made inside of it', async () => {
    const mark = newMark(true)
    const nested = `mkdir "$INNER" && echo 0 > "$INNER/cgroup.procs"; ${subshell('exec sleep 300')}`
    const env = { PATH: process.env['PATH'], PID: join(dir, 'pid'), INNER: join(mark.cgroup ?? '', 'inner') }
    await runProgram({ shell: `setsid sh -c '(${nested}) &' >&2`, cwd: dir, env, clock, outputLimitBytes: 100, mark })
    while (!existsSync(join(dir, 'pid'))) await new Promise(setImmediate)
    expect(await killRun([mark], { graceMs: 200, clock })).toEqual({ outcome: 'dead' })
    expect(readdirSync(base ?? '').filter((name) => name.includes(mark.id))).toEqual([])
  })

  test('that cannot be entered costs the run nothing', async () => {
    const mark = { id: randomUUID(), cgroup: join(base ?? '', 'coppice-that-was-never-made') }
    const left = await leftBy(escapes[0]?.[1] ?? '', mark)
    expect(await killRun([mark], { graceMs: 200, clock })).toEqual({ outcome: 'dead' })
    expect(liveness(left)).toBe('dead')
  })
})

test.each([
  ['a plain version 2 host', '/sys/fs/cgroup', '/', '0::/user.slice/a.scope', '/sys/fs/cgroup/user.slice/a.scope'],
  [
    'version 1 with an empty version 2 beside it',
    '/sys/fs/cgroup/unified',
    '/',
    '4:memory:/x\n0::/',
    '/sys/fs/cgroup/unified/',
  ],
  ['a container with a cgroup namespace', '/sys/fs/cgroup', '/', '0::/', '/sys/fs/cgroup/'],
  ["a container that sees the host's names", '/sys/fs/cgroup', '/docker/abc', '0::/docker/abc/x', '/sys/fs/cgroup/x'],
  ['a path with a space', '/mnt/my\\040cgroups', '/', '0::/a', '/mnt/my cgroups/a'],
  ['a cgroup outside of what is mounted', '/sys/fs/cgroup', '/', '0::/../other', undefined],
  ['another part of the hierarchy', '/sys/fs/cgroup', '/docker/abc', '0::/docker/abcd', undefined],
  ['version 1 alone', '/sys/fs/cgroup', '/', '4:memory:/x', undefined],
])('the own cgroup is found on %s', (_name, mountPoint, root, cgroup, expected) => {
  const mountinfo = [
    '30 24 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755',
    '31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
    `41 31 0:38 ${root} ${mountPoint} rw,relatime shared:4 - cgroup2 cgroup2 rw`,
  ].join('\n')
  expect(ownCgroup(mountinfo, `${cgroup}\n`)).toBe(expected)
})

test.runIf(process.getuid?.() === 0 && base !== undefined)(
  'a cgroup file system that is read-only is none',
  async () => {
    const ask = `
    import { writableCgroup } from ${JSON.stringify(new URL('cgroup.ts', import.meta.url).href)}
    console.log(String(writableCgroup()))`
    const mount = (base ?? '').replace(/\/$/, '')
    const readOnly = `mount --bind -o ro '${mount}' '${mount}' && exec "$@"`
    const { stdout, stderr } = await runProgram({
      command: 'unshare',
      args: ['--mount', 'sh', '-c', readOnly, 'sh', process.execPath, '--input-type=module', '-e', ask],
      cwd: '/',
      env: process.env,
      clock,
      outputLimitBytes: 1_000,
    })
    expect([stdout, stderr]).toEqual(['undefined\n', ''])
  },
)
