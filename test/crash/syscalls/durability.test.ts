import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeDirty, makeScenarioWorld, environmentOfFive } from '../arrange.ts'
import { type ChildOrder, temporaryOf } from '../kill.ts'
import { built } from '../../helpers/built.ts'
import type { World } from '../../helpers/world.ts'

/*
 * A power cut forgets whatever was written and not synced. No test can cut the power, so this one reads the trace of a
 * removal: everything the restore point consists of is synced before the files leave their place.
 */

type Event = { readonly call: string; readonly paths: readonly string[] }

/** The calls that succeeded, in the order in which they did. `-y` shows the path behind each descriptor. */
const traceRemoval = (world: World): Event[] => {
  const { box, context } = world
  const log = box.path('trace.log')
  const order: ChildOrder = {
    root: box.root,
    operation: 'remove-forced',
    killAt: undefined,
    isolationProvider: 'worktree',
    spares: context.settings.spares,
  }
  const child = built('test/crash/child.ts')
  mkdirSync(temporaryOf(world), { recursive: true })
  const calls = 'trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat'
  const traced = [process.execPath, child, JSON.stringify(order)]
  const { status, stderr } = spawnSync(
    'strace',
    ['-f', '-q', '-y', '-s', '4096', '-o', log, '-e', calls, '-e', 'signal=none', ...traced],
    {
      env: { ...box.env, TMPDIR: temporaryOf(world), GIT_CONFIG_NOSYSTEM: '1', NODE_NO_WARNINGS: '1' },
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(`the removal failed: ${stderr}`)
  return readEvents(readFileSync(log, 'utf8'))
}

const readEvents = (log: string): Event[] => {
  const begun = new Map<string, string>()
  return log.split('\n').flatMap((line) => {
    const [, pid = '', text = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    if (text.endsWith('<unfinished ...>')) {
      begun.set(pid, text.slice(0, -'<unfinished ...>'.length))
      return []
    }
    const whole = text.startsWith('<... ')
      ? `${begun.get(pid) ?? ''}${text.replace(/^<\.\.\. \w+ resumed>/, '')}`
      : text
    const [, call = '', rest = ''] = /^(\w+)\((.*)\)\s+= 0/.exec(whole) ?? []
    if (call === '') return []
    // `3</a/file>` of a descriptor, `"/a/file"` of an argument, `AT_FDCWD</cwd>` for what a relative one starts from.
    const paths = [...rest.matchAll(/(?<!AT_FDCWD)<(\/[^>]*)>|"((?:[^"\\]|\\.)*)"/g)].map(
      ([, open, named]) => open ?? named ?? '',
    )
    return [{ call, paths }]
  })
}

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => join(directory, name))

test('a restore point is on the disk before the files leave their place', async () => {
  await using world = await makeScenarioWorld({})
  await makeDirty(world)
  const environment = await environmentOfFive(world)
  const events = traceRemoval(world)
  const moved = events.findIndex(({ call, paths }) => call.startsWith('rename') && paths.includes(environment.path))
  expect(moved).toBeGreaterThan(0)

  const synced = new Set<string>()
  const renamedFrom = new Map<string, string>()
  for (const { call, paths } of events.slice(0, moved)) {
    const [from = '', to = ''] = paths
    if (call.endsWith('sync')) synced.add(from)
    // A file that git synced under a temporary name is synced under its own. Relative to git's own directory.
    else renamedFrom.set(to, from)
  }
  const isSynced = (path: string): boolean => {
    const earlier = [...renamedFrom].find(([to]) => path.endsWith(to))?.[1]
    return synced.has(path) || (earlier !== undefined && [...synced].some((one) => one.endsWith(earlier)))
  }

  const [point] = await world.context.store.restorePoints.list(world.codebase.id)
  if (point === undefined) throw new Error('there is no restore point')
  const directory = realpathSync(join(world.context.home, 'restore', point.id))
  const beside = [directory, join(directory, '..'), ...filesBelow(directory)]
  expect(beside.filter((path) => path.endsWith('.local')).length, 'an ignored file is among them').toBe(1)
  expect(beside.filter((path) => !statSync(path).isSymbolicLink() && !isSynced(path))).toEqual([])

  const { repoPath } = world.codebase
  const objects = filesBelow(join(repoPath, 'objects')).filter((path) => /\/[0-9a-f]{2}\/[0-9a-f]{38}$/.test(path))
  expect(objects.length).toBeGreaterThan(8)
  expect(objects.filter((path) => !isSynced(path))).toEqual([])
  expect(isSynced(join(repoPath, point.ref)), 'the ref that keeps the objects').toBe(true)
})
