import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { toWork } from '../../src/domain/work.ts'
import { AppError } from '../../src/domain/errors.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { spareDirectory } from '../../src/isolation/paths.ts'
import { processesAt } from '../helpers/invariants.ts'
import { writeIn } from '../helpers/repo.ts'
import { messageIn } from '../helpers/words.ts'
import type { World, WorldOptions } from '../helpers/world.ts'
import { makeScenarioWorld } from './arrange.ts'
import { appears, startChild } from './kill.ts'
import { type OperationName, operations, recover } from './operations.ts'

/** A filter of the user's own that stops the checkout at `src/code.ts` until there is a file `go`. */
const slowCheckout = (settings: WorldOptions['settings'] = {}): WorldOptions => ({
  settings,
  prepare: (repo, box) => {
    const wait = `n=0; while [ ! -e '${box.path('go')}' ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done`
    writeFileSync(box.path('slow.sh'), `: > '${box.path('started')}'\n${wait}\ncat\n`)
    box.raw(repo.path, 'config', '--global', 'filter.slow.smudge', `sh '${box.path('slow.sh')}'`)
    repo.commit('.gitattributes', 'src/code.ts filter=slow\n')
  },
})

const treeOf = ({ context, codebase }: World, operation: OperationName): string => {
  if (operation !== 'spare') return join(context.worktreesBase, codebase.name, 'issue-1')
  const spares = spareDirectory(context.worktreesBase)
  return join(spares, readdirSync(spares)[0] ?? '')
}

type Interruption = (world: World, operation: OperationName, write: () => void) => Promise<unknown>

/** Killed during the checkout; git goes on without us, and nobody reads what it prints. */
const killed: Interruption = async (world, operation, write) => {
  const { child, ended } = startChild(world, { operation, killAt: undefined })
  await appears(world.box.path('started'))
  child.kill('SIGKILL')
  await ended
  write()
  writeFileSync(world.box.path('go'), '')
  while (processesAt(world.box.root).length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await recover(world.context, world.codebase)).toEqual([])
}

const cancelled: Interruption = async ({ context, codebase, box }, _operation, write) => {
  const stop = new AbortController()
  const request = { codebase, work: toWork('issue', '1'), hints: {}, createdBy: 'test', aliases: [] }
  const making = createEnvironments(context).create({ ...request, signal: stop.signal })
  making.catch(() => undefined)
  await appears(box.path('started'))
  write()
  stop.abort()
  await expect(making).rejects.toMatchObject({ code: 'cancelled', remedy: expect.anything() })
}

const failing =
  (at: string): Interruption =>
  async ({ context, codebase, box }, operation, write) => {
    writeFileSync(box.path('go'), '')
    const failpoint = async (name: string): Promise<void> => {
      if (name !== at) return
      write()
      throw new Error('injected')
    }
    await expect(operations[operation]({ ...context, failpoint }, codebase)).rejects.toThrow('injected')
  }

test.concurrent.each<[string, OperationName, Interruption]>([
  ['Coppice is killed while git checks out', 'create-fresh', killed],
  ['Coppice is killed while git checks out', 'spare', killed],
  ['it is cancelled while git checks out', 'create-fresh', cancelled],
  ['it fails before git checks out', 'create-fresh', failing('create.added')],
  ['it fails after the checkout', 'spare', failing('spare.tree')],
])('a file put into a new worktree is kept if %s (%s)', async (_how, operation, interrupt) => {
  await using world = await makeScenarioWorld({ options: slowCheckout({ spares: operation === 'spare' ? 1 : 0 }) })
  let path = ''
  await interrupt(world, operation, () => {
    path = treeOf(world, operation)
    writeIn(path, 'mine.txt', 'precious\n')
  })
  const points = await world.context.store.restorePoints.list(world.codebase.id)
  // A spare isn't an environment, so it can't be restored: it stays where it is.
  expect(points).toHaveLength(operation === 'spare' ? 0 : 1)
  writeFileSync(world.box.path('go'), '')
  for (const point of points) path = (await createEnvironments(world.context).restore(point)).environment.path
  expect(readFileSync(join(path, 'mine.txt'), 'utf8')).toBe('precious\n')
})

test('a file put into a submodule that git is fetching is kept if that is cancelled', async () => {
  const prepare: WorldOptions['prepare'] = (repo, box) => {
    const lib = box.repo('lib')
    // `ssh <host> <command>`, which hangs before it answers.
    const wait = `n=0; while [ ! -e '${box.path('go')}' ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n+1)); done`
    writeFileSync(box.path('ssh.sh'), `: > '${box.path('started')}'\n${wait}\nshift; sh -c "$*"\n`)
    box.raw(repo.path, 'config', '--global', 'core.sshCommand', `sh '${box.path('ssh.sh')}'`)
    repo.git('submodule', '--quiet', 'add', lib.path, 'lib')
    repo.git('config', '--file', '.gitmodules', 'submodule.lib.url', `ssh://host${lib.path}`)
    repo.git('commit', '-qam', 'lib')
    repo.git('config', 'submodule.lib.url', `ssh://host${lib.path}`)
  }
  await using world = await makeScenarioWorld({ options: { prepare } })
  await cancelled(world, 'create-fresh', () => writeIn(treeOf(world, 'create-fresh'), 'lib/mine.txt', 'precious\n'))
  writeFileSync(world.box.path('go'), '')
  const [point] = await world.context.store.restorePoints.list(world.codebase.id)
  if (point === undefined) throw new Error('nothing was saved')
  const { environment } = await createEnvironments(world.context).restore(point)
  expect(readFileSync(join(environment.path, 'lib/mine.txt'), 'utf8')).toBe('precious\n')
})

test.each(['worktree', 'clone'] as const)(
  "a checkout replaces nobody's staged or ignored file (%s)",
  async (isolationProvider) => {
    await using world = await makeScenarioWorld({ options: { settings: { isolationProvider } } })
    const path = treeOf(world, 'create-fresh')
    for (const [name, put] of [
      ['mine.txt', () => world.box.raw(path, 'add', 'mine.txt')],
      ['README', () => writeIn(path, '.gitignore', '*\n')],
    ] as const) {
      const git = {
        ...world.context.git,
        run: async (request: Parameters<typeof world.context.git.run>[0]) => {
          const result = await world.context.git.run(request)
          const isMade = request.operation === 'worktree add' || request.operation === 'update-ref'
          if (isMade && existsSync(join(path, '.git')) && !existsSync(join(path, name))) {
            writeIn(path, name, 'precious\n')
            put()
          }
          return result
        },
      }
      const making = operations['create-fresh']({ ...world.context, git }, world.codebase)
      expect(await making.catch((error: unknown) => messageIn(error))).toMatch(
        /somebody (?:put files into|staged files in) \S+ while it was being created/,
      )
      const points = await world.context.store.restorePoints.list(world.codebase.id)
      const point = points.toSorted((a, b) => b.createdAt - a.createdAt)[0]
      if (point === undefined) throw new Error('nothing was saved')
      const { environment } = await createEnvironments(world.context).restore(point)
      expect(readFileSync(join(environment.path, name), 'utf8')).toBe('precious\n')
      await createEnvironments(world.context).destroy(environment, { trigger: 'command', force: true })
    }
  },
)

test.each(['worktree', 'clone'] as const)("a checkout replaces nobody's file (%s)", async (isolationProvider) => {
  await using world = await makeScenarioWorld({ options: slowCheckout({ isolationProvider }) })
  const path = treeOf(world, 'create-fresh')
  const git = {
    ...world.context.git,
    run: async (request: Parameters<typeof world.context.git.run>[0]) => {
      if (request.operation === 'checkout' && !existsSync(join(path, 'README'))) writeIn(path, 'README', 'precious\n')
      return world.context.git.run(request)
    },
  }
  const making = operations['create-fresh']({ ...world.context, git }, world.codebase)
  expect(await making.catch((error: unknown) => messageIn(error))).toContain("'README' would be overwritten")
  const [point] = await world.context.store.restorePoints.list(world.codebase.id)
  if (point === undefined) throw new Error('nothing was saved')
  writeFileSync(world.box.path('go'), '')
  const { environment } = await createEnvironments(world.context).restore(point)
  expect(readFileSync(join(environment.path, 'README'), 'utf8')).toBe('precious\n')
})

test("somebody's own locked worktree of that name doesn't keep a failed creation from being undone", async () => {
  await using world = await makeScenarioWorld({})
  const theirs = world.box.path('elsewhere/issue-1')
  world.repo.git('worktree', 'add', '-q', '-b', 'theirs', theirs)
  world.repo.git('worktree', 'lock', theirs)
  const git = {
    ...world.context.git,
    run: (request: Parameters<typeof world.context.git.run>[0]) =>
      request.operation === 'worktree add'
        ? Promise.reject(new AppError('git-failed', 'injected'))
        : world.context.git.run(request),
  }
  const making = operations['create-fresh']({ ...world.context, git }, world.codebase)
  await expect(making).rejects.toMatchObject({ message: 'injected' })
  expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  expect(await world.context.store.environments.live(world.codebase.id)).toEqual([])
  expect(existsSync(theirs)).toBe(true)
})
