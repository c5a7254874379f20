import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { IsolatedEnvironment } from '../src/domain/environment.ts'
import { count, interleaved, ratioRow, type Row } from './measure.ts'
import { plainGit } from './plain-git.ts'
import type { Bench, Stage } from './stage.ts'

export const remove: Bench = {
  name: 'remove',
  title: 'remove a clean environment',
  description:
    "Coppice: `provider.destroy` from call to result, in a warm process: the merge proof, all gates (uncommitted changes, hidden edits, unfinished operations, mounts, repositories and worktrees inside, live processes, leases, reachability, kept files), the restore point synced to disk, the rename into the trash, the second check for changes and use, git's record, the row, and the start of the detached deletion (whose end is untimed). Baseline: `git worktree remove`, which checks `git status` and deletes the files itself. Both trees are made the same way; more than a second later, one new file is committed in each with plain `git add` and `git commit`, so both indexes are as a commit leaves them.",
  measure: async (stage) => [...(await rowsFor(stage, 30_000, 0.5)), ...(await rowsFor(stage, 3_000))],
}

const rowsFor = async (stage: Stage, files: number, atMost?: number): Promise<Row[]> => {
  await using world = await stage.world(files)
  const workIn = async (path: string): Promise<void> => {
    // Every status rereads files as young as the index; a tree that somebody worked in has none.
    await delay(1_100)
    writeFileSync(join(path, 'work.txt'), `${path}\n`)
    plainGit(stage.box, path, 'add', 'work.txt')
    plainGit(stage.box, path, 'commit', '-q', '-m', 'work')
  }
  const rawPath = join(world.root, 'raw', 'tree')
  let environment: IsolatedEnvironment | undefined
  let outcome = ''
  const samples = await interleaved(
    {
      ours: {
        prepare: async (round) => {
          environment = await world.create(round + 1)
          await workIn(environment.path)
        },
        run: async () => {
          if (environment === undefined) throw new Error('nothing to remove')
          outcome = (await world.provider.destroy(environment, { trigger: 'command' })).outcome
        },
        after: async () => {
          if (outcome !== 'removed') throw new Error(`the environment was ${outcome}, not removed`)
          await world.deletions()
        },
      },
      raw: {
        prepare: async (round) => {
          world.raw('worktree', 'add', '-q', '--no-track', '-b', `raw-${round}`, rawPath, 'main')
          await workIn(rawPath)
        },
        run: async () => void (await world.byHand('worktree', 'remove', rawPath)),
      },
    },
    { rounds: 5, settle: stage.settle },
  )
  return [ratioRow(`remove a clean environment, ${count(files)} files`, samples, atMost)]
}
