import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { hasTerminal, identifySync, liveness, selfIdentity } from './identity.ts'
import { killAll, killTree } from './kill.ts'
import { parsePsTable } from './table-darwin.ts'
import { processTable } from './table.ts'
import type { ProcessRow } from './process-row.ts'
import { runProgram } from './spawn.ts'
import { collectTree, selfAndAncestors } from './tree.ts'

const clock = () => performance.now()
let toEnd: ProcessIdentity[] = []

afterEach(() => {
  for (const identity of toEnd) if (liveness(identity) === 'alive') process.kill(identity.pid, 'SIGKILL')
  toEnd = []
})

const identified = (pid: number | undefined): ProcessIdentity => {
  const identity = identifySync(pid ?? 0)
  if (identity === undefined) throw new Error(`no process ${pid}`)
  toEnd.push(identity)
  return identity
}

const rowOf = async (identity: ProcessIdentity): Promise<ProcessRow> => {
  const row = (await processTable()).find((one) => one.identity.pid === identity.pid)
  if (row === undefined) throw new Error(`no process ${identity.pid}`)
  return row
}

/** Runs a script that prints `ready` and the pids of what it started. The first identity is the script's own. */
const started = async (script: string, { pids = 0, detached = true } = {}): Promise<readonly ProcessIdentity[]> => {
  const child = spawn('/bin/sh', ['-c', script], { detached, stdio: ['ignore', 'pipe', 'ignore'] })
  const root = identified(child.pid)
  let text = ''
  const printed = () => (text.match(/\d+(?=\n)/g) ?? []).map(Number)
  while (!text.includes('ready') || printed().length < pids) {
    text += String(((await once(child.stdout, 'data')) as [Buffer])[0])
  }
  return [root, ...printed().map(identified)]
}

const states = (identities: readonly ProcessIdentity[]) => identities.map(liveness)

test('a tree is the process, its descendants and the sessions they lead', async () => {
  const family = await started(
    `
    sleep 60 & echo $!
    sh -c 'sleep 60 & echo $!; wait' &
    setsid sh -c 'echo $$; sleep 60 & echo $!; wait' &
    echo $!; echo ready; wait`,
    { pids: 5 },
  )
  const root = family[0]
  if (root === undefined) throw new Error('no root')
  const tree = collectTree(await processTable(), [root])
  expect(tree[0]).toEqual(root)
  expect(tree).toEqual(expect.arrayContaining([...family]))
  await killTree(root, { graceMs: 2_000, clock })
  expect(new Set(states(family))).toEqual(new Set(['dead']))
})

test('an orphan under pid 1 is still found by the session of its dead parent', async () => {
  const [root, orphan] = await started('(sleep 60 & echo $!); echo ready; wait; sleep 60', { pids: 1 })
  if (root === undefined || orphan === undefined) throw new Error('not started')
  expect(collectTree(await processTable(), [root])).toContainEqual(orphan)
  await expect(killTree(root, { graceMs: 2_000, clock })).resolves.toEqual({ outcome: 'dead' })
  expect(states([root, orphan])).toEqual(['dead', 'dead'])
})

test('what ignores SIGTERM gets SIGKILL after the grace, and not before', async () => {
  const [root] = await started(`trap '' TERM; echo ready; while :; do sleep 0.05; done`)
  if (root === undefined) throw new Error('not started')
  const before = clock()
  await expect(killTree(root, { graceMs: 300, clock })).resolves.toEqual({ outcome: 'dead' })
  expect(clock() - before).toBeGreaterThanOrEqual(300)
  expect(liveness(root)).toBe('dead')
})

test('what ends by itself is not waited for', async () => {
  const [root] = await started('echo ready; exec sleep 60')
  if (root === undefined) throw new Error('not started')
  // Far longer than this test may take.
  await expect(killTree(root, { graceMs: 600_000, clock })).resolves.toEqual({ outcome: 'dead' })
})

test('what a trap starts on SIGTERM is found by looking again', async () => {
  const [root] = await started(`trap 'sleep 61 & exit 0' TERM; echo ready; while :; do sleep 0.02; done`)
  if (root === undefined) throw new Error('not started')
  await expect(killTree(root, { graceMs: 30_000, clock })).resolves.toEqual({ outcome: 'dead' })
  const left = (await processTable()).filter((row) => row.session === root.pid && !row.zombie)
  expect(left).toEqual([])
})

test('a pid with another start time is not ours, and nothing is signalled', async () => {
  const [root] = await started('echo ready; exec sleep 60')
  if (root === undefined) throw new Error('not started')
  const other = { pid: root.pid, startTime: `${root.startTime}0` }
  await expect(killTree(other, { graceMs: 10, clock })).resolves.toEqual({ outcome: 'not-ours' })
  expect(liveness(root)).toBe('alive')
})

test('ourselves, our ancestors and pid 1 are never ours to kill', async () => {
  const options = { graceMs: 10, clock }
  await expect(killTree(selfIdentity(), options)).resolves.toEqual({ outcome: 'not-ours' })
  await expect(killTree(identified(process.ppid), options)).resolves.toEqual({ outcome: 'not-ours' })
  toEnd = []
  await expect(killTree({ pid: 1, startTime: 'x' }, options)).resolves.toEqual({ outcome: 'not-ours' })
  await expect(killTree({ pid: 0, startTime: 'x' }, options)).resolves.toEqual({ outcome: 'not-ours' })
  await expect(killTree({ pid: -1, startTime: 'x' }, options)).resolves.toEqual({ outcome: 'not-ours' })
  const line = selfAndAncestors(await processTable(), process.pid)
  expect(line).toContain(process.pid)
  expect(line).toContain(process.ppid)
})

test('a process that shares the session of its starter takes nobody of it along', async () => {
  const [root] = await started('echo ready; exec sleep 60', { detached: false })
  if (root === undefined) throw new Error('not started')
  expect(collectTree(await processTable(), [root])).toEqual([root])
  await killTree(root, { graceMs: 1_000, clock })
})

test('the group of a leader long gone is left alone, unless the caller has just started it', async () => {
  const [root, orphan] = await started('sleep 60 & echo $!; echo ready; exit 0', { pids: 1 })
  if (root === undefined || orphan === undefined) throw new Error('not started')
  while (liveness(root) !== 'dead' || identifySync(root.pid) !== undefined) await new Promise(setImmediate)
  await expect(killTree(root, { graceMs: 1_000, clock })).resolves.toEqual({ outcome: 'dead' })
  expect(liveness(orphan)).toBe('alive')
  await expect(killTree(root, { graceMs: 1_000, clock, leaderMayBeGone: true })).resolves.toEqual({ outcome: 'dead' })
  expect(liveness(orphan)).toBe('dead')
})

test('a pid that was given to another process after it was found is not signalled', async () => {
  // So that it comes to stopping and killing.
  const [root] = await started(`trap '' TERM; echo ready; while :; do sleep 0.05; done`)
  const [bystander] = await started('echo ready; exec sleep 60')
  if (root === undefined || bystander === undefined) throw new Error('not started')
  // As it is when the process that had this pid ended between the look at it and the signal.
  const former = { ...(await rowOf(bystander)), identity: { ...bystander, startTime: `${bystander.startTime}0` } }
  const find = async (onFound?: (row: ProcessRow) => void) => {
    onFound?.(former)
    return { rows: [former], complete: true }
  }
  const target = { known: [root], find, untouchable: new Set<number>() }
  await expect(killAll(target, { graceMs: 50, clock })).resolves.toEqual({ outcome: 'dead' })
  expect(states([root, bystander])).toEqual(['dead', 'alive'])
  expect(isStopped(bystander)).toBe(false)
})

const isStopped = ({ pid }: ProcessIdentity): boolean => / T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))

/**
 * Ignores SIGTERM, and starts nothing: if a child is stopped before it has called exec, its parent isn't stopped but in
 * the uninterruptible sleep of vfork.
 */
const stubborn = `trap '' TERM; echo ready; exec sleep 60`

test('whoever is to be killed is stopped first, and whoever must not be signalled is not stopped', async () => {
  const [root] = await started(stubborn)
  const [found] = await started(stubborn)
  const [bystander] = await started('echo ready; exec sleep 60')
  if (root === undefined || found === undefined || bystander === undefined) throw new Error('not started')
  const [row, beside] = [await rowOf(found), await rowOf(bystander)]
  const looks: (readonly boolean[])[] = []
  const find = async (onFound?: (row: ProcessRow) => void) => {
    if (onFound !== undefined && looks.length === 0) {
      for (const one of [row, beside]) onFound(one)
      while (!isStopped(root) || !isStopped(found)) await new Promise(setImmediate)
      looks.push([root, found, bystander].map(isStopped))
    }
    return { rows: [row, beside].filter(({ identity }) => liveness(identity) !== 'dead'), complete: true }
  }
  const target = { known: [root], find, untouchable: new Set([bystander.pid]) }
  await expect(killAll(target, { graceMs: 0, clock })).resolves.toEqual({ outcome: 'dead' })
  expect(looks).toEqual([[true, true, false]])
  expect(states([root, found, bystander])).toEqual(['dead', 'dead', 'alive'])
})

test('nobody stays stopped when looking fails', async () => {
  const [root] = await started(stubborn)
  if (root === undefined) throw new Error('not started')
  const find = async (onFound?: (row: ProcessRow) => void) => {
    if (onFound === undefined) return { rows: [], complete: true }
    while (!isStopped(root)) await new Promise(setImmediate)
    throw new Error('no /proc')
  }
  const target = { known: [root], find, untouchable: new Set<number>() }
  await expect(killAll(target, { graceMs: 0, clock })).rejects.toThrow('no /proc')
  while (liveness(root) !== 'dead') await new Promise(setImmediate)
})

test('a look that may have missed somebody is not taken for proof that nobody is left', async () => {
  const target = { known: [], find: async () => ({ rows: [], complete: false }), untouchable: new Set<number>() }
  await expect(killAll(target, { graceMs: 0, clock })).resolves.toEqual({ outcome: 'survivors', identities: [] })
})

test('survivors are those that live: a pid of one that has ended may be somebody else’s by now', async () => {
  const [parent] = await started('echo ready; exec sleep 60')
  if (parent === undefined) throw new Error('not started')
  const row = await rowOf(parent)
  let ticks = 0
  // As a process that forks and ends all the time looks: somebody else each time, and gone before the signal.
  const find = async () => {
    const gone = { ...row, identity: { pid: 4_000_000 + (ticks += 1), startTime: 'x' }, processGroup: 0 }
    return { rows: [gone], complete: true }
  }
  const target = { known: [], find, untouchable: new Set<number>() }
  await expect(killAll(target, { graceMs: 0, clock })).resolves.toEqual({ outcome: 'survivors', identities: [] })
  expect(liveness(parent)).toBe('alive')
})

test('a group of our own session is not ended for one process that was found in it', async () => {
  const job = 'trap "" TERM; sleep 60 & echo $!; sleep 60 & echo $!; echo ready'
  const [, found, bystander] = await started(`bash -c 'set -m; sh -c "$0" & wait; sleep 60' '${job}'`, {
    pids: 2,
    detached: false,
  })
  if (found === undefined || bystander === undefined) throw new Error('not started')
  const [row, beside] = [await rowOf(found), await rowOf(bystander)]
  const { session, processGroup } = await rowOf(selfIdentity())
  expect([row, beside].map((one) => [one.session, one.processGroup === processGroup])).toEqual([
    [session, false],
    [session, false],
  ])
  const target = { known: [], find: async () => ({ rows: [row], complete: true }), untouchable: new Set([process.pid]) }
  await killAll(target, { graceMs: 0, clock })
  expect(states([found, bystander])).toEqual(['dead', 'alive'])
})

test.runIf(process.getuid?.() === 0)(
  'a process that cannot be read is never signalled, and counts as alive',
  async () => {
    const [root] = await started('echo ready; exec sleep 60')
    const [hidden] = await started('echo ready; exec sleep 60')
    if (root === undefined || hidden === undefined) throw new Error('not started')
    const kill = `
    import { killAll } from ${JSON.stringify(new URL('kill.ts', import.meta.url).href)}
    const [root, hidden] = JSON.parse(process.argv[1])
    const target = { known: [root, hidden], find: async () => ({ rows: [], complete: true }), untouchable: new Set() }
    const options = { graceMs: 50, confirmMs: 200, clock: () => performance.now() }
    console.log(JSON.stringify(await killAll(target, options)))`
    const hide = `mount -t tmpfs none /proc/${hidden.pid} && exec "$@"`
    const script = ['--input-type=module', '-e', kill]
    // Something else lies over its entry in /proc: nobody can tell whose pid it is now.
    const { stdout, stderr } = await runProgram({
      command: 'unshare',
      args: ['--mount', 'sh', '-c', hide, 'sh', process.execPath, ...script, JSON.stringify([root, hidden])],
      cwd: '/',
      env: process.env,
      clock,
      outputLimitBytes: 10_000,
    })
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual({ outcome: 'survivors', identities: [hidden] })
    expect(states([root, hidden])).toEqual(['dead', 'alive'])
  },
)

const row = (pid: number, parentPid: number, processGroup: number, session: number, startTime = 'then') => ({
  identity: { pid, startTime },
  command: 'x',
  parentPid,
  processGroup,
  session,
  zombie: false,
  stopped: false,
})

test('an orphan is found by its group or its session alone, and a stranger by neither', () => {
  const rows = [row(10, 5, 10, 10), row(11, 1, 10, 99), row(12, 1, 98, 10), row(13, 1, 97, 97), row(5, 1, 5, 5)]
  expect(collectTree(rows, [{ pid: 10, startTime: 'then' }]).map(({ pid }) => pid)).toEqual([10, 11, 12])
})

test('a pid of the tree that was given to another process leads to no relatives', () => {
  const rows = [row(10, 1, 10, 10, 'new'), row(11, 10, 10, 10, 'child of the new one')]
  expect(collectTree(rows, [{ pid: 10, startTime: 'old' }])).toEqual([])
})

test('on macOS the table of ps is read with its five-word dates', () => {
  expect(parsePsTable('  12     1    12 Ss   Sat Mar  1 09:05:07 2025 /usr/bin/a b\nnonsense\n')).toEqual([
    {
      identity: { pid: 12, startTime: 'Sat Mar 1 09:05:07 2025' },
      command: '/usr/bin/a b',
      parentPid: 1,
      processGroup: 12,
      session: 0,
      zombie: false,
      stopped: false,
    },
  ])
})

test.runIf(process.platform === 'linux')(
  'an orphan that acquires a terminal between look and kill is left alone, with all that it started',
  async () => {
    // Without a terminal until it is asked to open one: a session leader's first terminal controls it.
    const program = `use POSIX; POSIX::setsid(); $| = 1; my $child = fork(); if (!$child) { sleep 60; exit }
      $SIG{USR1} = sub {
        open(our $master, "+<", "/dev/ptmx") or die; my $n = pack("i", 0);
        ioctl($master, 0x40045431, $n) or die; ioctl($master, 0x80045430, $n) or die;
        open(our $terminal, "+<", "/dev/pts/" . unpack("i", $n)) or die; print "taken\\n" };
      print "$child\\nready\\n";
      sleep 60 while 1`
    const child = spawn('perl', ['-e', program], { stdio: ['ignore', 'pipe', 'ignore'] })
    const orphan = identified(child.pid)
    let text = ''
    const printed = async (word: string): Promise<void> => {
      while (!text.includes(word)) text += String(((await once(child.stdout, 'data')) as [Buffer])[0])
    }
    await printed('ready')
    const started = identified(Number(/\d+/.exec(text)?.[0]))
    expect(hasTerminal(orphan)).toBe('no')
    process.kill(orphan.pid, 'SIGUSR1')
    await printed('taken')
    expect(hasTerminal(orphan)).toBe('yes')
    expect(await killTree(orphan, { graceMs: 0, clock, isOrphan: true })).toEqual({ outcome: 'not-ours' })
    expect(states([orphan, started])).toEqual(['alive', 'alive'])
    expect(await killTree(orphan, { graceMs: 0, clock })).toEqual({ outcome: 'dead' })
    expect(states([orphan, started])).toEqual(['dead', 'dead'])
  },
)

test('what was stopped gets its SIGTERM, and ends by itself', async () => {
  const [root] = await started('trap "exit 3" TERM; echo ready; while :; do sleep 0.01; done')
  if (root === undefined) throw new Error('not started')
  process.kill(root.pid, 'SIGSTOP')
  await expect.poll(() => isStopped(root)).toBe(true)
  // A minute of real time would be too long to wait for.
  expect(await killTree(root, { graceMs: 60_000, clock })).toEqual({ outcome: 'dead' })
})

test('children that have left the process group and the session of a tree that ignores SIGTERM are killed with it', async () => {
  const script = `trap "" TERM; setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $!; echo ready; while :; do sleep 1; done`
  const [root, left] = await started(script, { pids: 1 })
  if (root === undefined || left === undefined) throw new Error('not started')
  await expect.poll(async () => (await rowOf(left)).session === left.pid).toBe(true)
  expect(await killTree(root, { graceMs: 20, clock })).toEqual({ outcome: 'dead' })
  expect(states([root, left])).toEqual(['dead', 'dead'])
})
