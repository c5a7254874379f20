import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withPrivateIndex } from '../../src/git/private-index.ts'
import { identifySync, selfIdentity } from '../../src/process/identity.ts'
import { checkInvariants, processesAt } from '../helpers/invariants.ts'
import type { World } from '../helpers/world.ts'
import { makeDirty, makeScenarioWorld } from './arrange.ts'
import { takeInventory } from './inventory.ts'
import { gitWrapper, startChild, temporaryOf } from './kill.ts'
import { type OperationName, recover } from './operations.ts'

const left = ({ context }: World): string[] => readdirSync(join(context.home, 'tmp'))

/** `git <command>` kills whoever started it the first time it is given an index of its own, and then goes on. */
const killUnder = async (world: World, operation: OperationName, command: string): Promise<void> => {
  const bin = gitWrapper(
    world,
    `case " $GIT_INDEX_FILE $* " in */tmp/*" ${command} "*) kill -KILL $PPID;; esac\nexec "$REAL" "$@"`,
  )
  const { signal, output } = await startChild(world, { operation, killAt: undefined }, bin).ended
  if (signal !== 'SIGKILL') throw new Error(`${operation} was not killed under ${command}: ${output}`)
  // That git has outlived it: nothing is to be said about the directory while it may still write there.
  while (processesAt(world.box.root).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
}

test.each(['read-tree', 'update-index', 'write-tree'])(
  'the private index of a removal that was killed under git %s goes with recovery',
  async (command) => {
    await using world = await makeScenarioWorld({})
    await makeDirty(world)
    const before = await takeInventory(world)
    await killUnder(world, 'remove-forced', command)
    expect(left(world)).toHaveLength(1)
    expect(readdirSync(temporaryOf(world))).toEqual([])
    expect(await recover(world.context, world.codebase)).toEqual([])
    expect(await checkInvariants(world, { before, mayKeep: ['issue-5'], temporary: temporaryOf(world) })).toEqual([])
    expect(left(world)).toEqual([])
  },
)

test('that of a living process stays, and so does whatever does not say who made it', async () => {
  await using world = await makeScenarioWorld({})
  const { pid, startTime } = selfIdentity()
  const encoded = encodeURIComponent(startTime)
  const unreadable = ['somebody', `${pid}`, `${pid}+${encoded}`, `0+${encoded}+a`, `${pid}+%zz+a`, `${pid}++a`]
  const init = encodeURIComponent(identifySync(1)?.startTime ?? '')
  const dead = [`${pid}+earlier+a`, `${2 ** 30}+${encoded}+a`]
  for (const name of [...unreadable, `1+${init}+a`, ...dead])
    mkdirSync(join(world.context.home, 'tmp', name), { recursive: true })
  await withPrivateIndex(world.context.git, async () => {
    const own = left(world).filter((name) => name.startsWith(`${pid}+${encoded}+`))
    expect(own).toHaveLength(1)
    expect(await recover(world.context, world.codebase)).toEqual([])
    expect(left(world).sort()).toEqual([...unreadable, ...own, `1+${init}+a`].sort())
  })
})
