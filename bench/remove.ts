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
  inside:
    "Ours: `provider.destroy` from the call to the result, in a warm process: the merge proof, all gates (changes, hidden edits, unfinished operations, mounts, repositories and worktrees inside, live processes, leases, reachability, kept files), the restore point synced to disk, the rename into the trash, the second check for changes and use, git's record, the row, and the start of the detached deletion (waiting for its end is off the clock). Raw: `git worktree remove`, which checks `git status` and deletes the files itself. Both worktrees are created the same way, more than a second before one new file is committed in them with plain `git add` and `git commit`, so both indexes are in the state that a commit leaves.",
  measure: async (stage) => [...(await at(stage, 30_000, 0.5)), ...(await at(stage, 3_000))],
}

const at = async (stage: Stage, files: number, atMost?: number): Promise<Row[]> => {
  await using world = await stage.world(files)
  const workIn = async (path: string): Promise<void> => {
    // Files of the same second as the index are read again by every status: a tree somebody worked in has none.
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
          if (outcome !== 'removed') throw new Error(`it was ${outcome}`)
          await world.deletions()
        },
      },
      raw: {
        prepare: async (round) => {
          world.raw('worktree', 'add', '-q', '--no-track', '-b', `raw-${round}`, rawPath, 'main')
          await workIn(rawPath)
        },
        run: () => void world.raw('worktree', 'remove', rawPath),
      },
    },
    { rounds: 5, settle: stage.settle },
  )
  return [ratioRow(`remove a clean environment, ${count(files)} files`, samples, atMost)]
}
