import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toSha } from '../src/domain/names.ts'
import { listWithFacts } from '../src/isolation/facts.ts'
import { interleaved, ratioRow, type Side } from './measure.ts'
import { plainGit } from './plain-git.ts'
import type { Bench, Stage, World } from './stage.ts'

const worktrees = 50

export const list: Bench = {
  name: 'list',
  title: 'list 50 worktrees with all facts',
  description:
    'Coppice: `listWithFacts` including the files: uncommitted changes, ahead and behind, merged with proof, last activity, conversations, leases, processes inside, and health. *First call*: nothing asked of git yet and no merge answer in the store, as after the base moved. *Following calls*: merge answers are in the store, the usual case for `list`. Baseline: a shell loop that runs `git status --porcelain` in each worktree. 50 worktrees of 3,000 files: 10 with a changed file, 10 with an untracked one, 20 with their own commit; main has moved on. `git status` ran once in each before the first measurement, so every index is fresh for both sides (ours never writes an index).',
  measure: async (stage) => {
    await using world = await stage.world(3_000)
    const paths = await createWorktrees(stage, world)
    const loop = 'for path; do git -C "$path" status --porcelain; done'
    const status = async (): Promise<void> => void (await stage.byHand('/', 'sh', '-c', loop, 'sh', ...paths))
    await status()
    const { raw, first, following } = await interleaved(
      { first: firstCall(stage, world), following: { run: () => listAll(world) }, raw: { run: status } },
      { rounds: 7 },
    )
    return [
      ratioRow('list 50 worktrees of 3,000 files, following calls', { ours: following, raw }, 0.7),
      ratioRow('list 50 worktrees of 3,000 files, first call', { ours: first, raw }, 0.7),
    ]
  },
}

const firstCall = (stage: Stage, world: World): Side => {
  const { context, codebase } = world
  let fresh = world
  return {
    prepare: async () => {
      // No base has this SHA, so this deletes all answers.
      await context.store.mergeAnswers.keepOnly(codebase.id, toSha('0'.repeat(40)))
      fresh = {
        ...world,
        context: { ...context, git: stage.box.git({ home: context.home, launcher: world.launcher }) },
      }
    },
    run: () => listAll(fresh),
  }
}

const listAll = async ({ context, codebase }: World): Promise<void> => {
  const facts = await listWithFacts(context, codebase, { cwd: codebase.repoPath })
  const complete = facts.every(
    ({ dirty, ahead, merged }) => dirty && ahead !== undefined && merged.value !== 'cannot-tell',
  )
  if (facts.length !== worktrees || !complete) throw new Error('the list is incomplete')
}

const createWorktrees = async ({ box, log }: Stage, world: World): Promise<string[]> => {
  log(`  making ${worktrees} worktrees`)
  const paths: string[] = []
  for (let issue = 1; issue <= worktrees; issue += 1) {
    const { path } = await world.create(issue)
    const kind = issue % 5
    const [changed = ''] = plainGit(box, path, 'ls-files', 'src').split('\n')
    if (kind === 0) appendFileSync(join(path, changed), 'changed\n')
    if (kind === 1) writeFileSync(join(path, 'untracked.txt'), 'new\n')
    if (kind === 2 || kind === 3) {
      writeFileSync(join(path, `work-${issue}.txt`), 'work\n')
      plainGit(box, path, 'add', '.')
      plainGit(box, path, 'commit', '-q', '-m', 'work')
    }
    paths.push(path)
  }
  world.raw('commit', '-q', '--allow-empty', '-m', 'main goes on')
  return paths
}
