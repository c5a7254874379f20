import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { interleaved, ratioRow } from './measure.ts'
import { openWorld, type Bench, type Stage } from './stage.ts'

const processes = 2
const loop = 'for i in $(seq "$2"); do git worktree add --no-track -b "issue-$i" "$1/trees/issue-$i" main; done'
const each = 32

export const parallelCreations: Bench = {
  name: 'parallel-creations',
  title: '64 concurrent creations from two processes',
  description:
    'Coppice: two warm processes with one store and one repository of 3,000 files, started at the same moment; each calls `resolveIsolation` for 32 issues at once; timed until the last of the 64 is active. Checked afterwards, untimed: no call failed; 64 distinct ids, paths and branches; 64 active rows; 64 worktrees known to git. Baseline: a shell loop that runs `git worktree add --no-track -b` 64 times. Every run has a fresh copy of the repository.',
  measure: async (stage) => {
    let root = ''
    let creators: ChildProcess[] = []
    const failures: string[] = []
    const samples = await interleaved(
      {
        ours: {
          prepare: async () => {
            root = stage.copy(3_000)
            creators = []
            for (let i = 0; i < processes; i += 1) creators.push(await startCreator(root, 1 + i * each))
          },
          run: async () => {
            const made = await Promise.all(creators.map(createAll))
            failures.push(...made.flat())
          },
          after: async () => {
            await Promise.all(creators.map(untilExit))
            failures.push(...(await findProblems(stage, root)))
          },
        },
        raw: {
          prepare: () => {
            root = stage.copy(3_000)
          },
          run: async () =>
            void (await stage.byHand(join(root, 'project'), 'sh', '-c', loop, 'sh', root, `${processes * each}`)),
          after: () => rmSync(root, { recursive: true, force: true, maxRetries: 5 }),
        },
      },
      { rounds: 5, settle: stage.settle },
    )
    const row = ratioRow('64 concurrent creations from two processes, 3,000 files', samples, 1.3)
    for (const failure of new Set(failures)) stage.log(`  ${failure}`)
    return [
      {
        ...row,
        result: `${failures.length} failures or duplicates, ${row.result}`,
        toReach: `no failures or duplicates, ${row.toReach}`,
        reached: failures.length === 0 && row.reached === true,
      },
    ]
  },
}

const startCreator = async (root: string, first: number): Promise<ChildProcess> => {
  const creator = fork(fileURLToPath(new URL('creator.ts', import.meta.url)), [root, `${first}`, `${each}`])
  await new Promise<void>((ready, fail) => {
    creator.once('message', () => ready())
    creator.once('exit', () => fail(new Error('a creating process exited before it was ready')))
  })
  return creator
}

/** Returns the failures. */
const createAll = (creator: ChildProcess): Promise<string[]> =>
  new Promise((resolve) => {
    creator.once('message', (failures) => resolve(failures as string[]))
    creator.once('exit', () => resolve(['a creating process exited early']))
    creator.send('begin')
  })

/** It exits by itself; its store must be closed before the cleanup. */
const untilExit = async (creator: ChildProcess): Promise<void> => {
  if (creator.exitCode === null && creator.signalCode === null) await once(creator, 'exit')
}

const findProblems = async ({ box }: Stage, root: string): Promise<string[]> => {
  await using world = await openWorld(box, root)
  const live = await world.context.store.environments.live(world.codebase.id)
  const all = processes * each
  const known = world.raw('worktree', 'list', '--porcelain').match(/^branch refs\/heads\/issue-/gm) ?? []
  const counts = {
    'active rows': live.filter(({ status }) => status === 'active').length,
    'different ids': new Set(live.map(({ id }) => id)).size,
    'different paths': new Set(live.map(({ path }) => path)).size,
    'different branches': new Set(live.map(({ branch }) => branch)).size,
    'worktrees known to git': known.length,
  }
  return Object.entries(counts).flatMap(([what, number]) => (number === all ? [] : [`${number} ${what}, not ${all}`]))
}
