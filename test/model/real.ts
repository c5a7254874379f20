import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Codebase } from '../../src/domain/environment.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { built } from '../helpers/built.ts'
import { firstCommit, plainGit, type Template } from '../helpers/repo.ts'
import { type World, makeWorld } from '../helpers/world.ts'
import type { Orders } from './child.ts'
import type { Operation } from './operation.ts'
import { type RunGit, takeSnapshot } from './snapshot.ts'
import type { Model } from './state.ts'

/** The real thing: a repository with a bare origin, a colleague's clone that merges, and Coppice. */
export type Real = {
  readonly world: World
  readonly context: IsolationContext
  readonly counts: Counts
  /** Git as a person types it, at the model's time. */
  readonly git: RunGit
  readonly colleague: string
  /** Processes that work inside environments, by environment id. */
  readonly inside: Map<string, ChildProcess>
  codebase(): Promise<Codebase>
  /** A number that was not used yet, for names and contents. */
  next(): number
  /** Runs it in a process of its own that dies at the nth failpoint; undefined when it came through. */
  kill(operation: Operation, dieAt: number): Promise<string | undefined>
  [Symbol.asyncDispose](): Promise<void>
}

export type Counts = {
  readonly commands: Map<string, number>
  readonly kills: Map<string, number>
  environments: number
  removed: number
  restored: number
  checks: number
}

export const countOne = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

export const newCounts = (): Counts => ({
  commands: new Map(),
  kills: new Map(),
  environments: 0,
  removed: 0,
  restored: 0,
  checks: 0,
})

/** Small enough to be reached, so that making room is tried too. */
const limit = 5
export const prNumbers = [11, 12, 13]
export const prBranch = (number: number): string => `feature/pr-${number}`

const withTopics: Template = (repo) => {
  firstCommit(repo)
  repo.write('.gitignore', '*.log\n')
  repo.commit('src/a.txt', 'a\n')
  repo.git('add', '.gitignore')
  repo.git('commit', '-q', '-m', 'ignore')
  for (const branch of ['topic-1', 'topic-2']) {
    repo.git('switch', '-q', '-c', branch)
    repo.commit(`${branch}.txt`, `${branch}\n`)
    repo.git('switch', '-q', 'main')
  }
}

export const makeReal = async (counts: Counts): Promise<{ model: Model; real: Real }> => {
  const start = Date.now()
  const time = { now: start }
  const world = await makeWorld({
    remote: true,
    settings: { spares: 1, worktreesPerCodebase: limit },
    context: { clock: () => time.now },
    template: withTopics,
  })
  const { box, repo, context } = world
  const git: RunGit = (cwd, ...args) => {
    const date = `@${Math.floor(time.now / 1000)} +0000`
    return plainGit(args, { cwd, env: { ...box.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date } })
  }
  const colleague = box.path('colleague')
  git(box.root, 'clone', '-q', box.path('origin.git'), colleague)
  const origin = new Map([['main', repo.sha('main')]] as [string, string][])
  for (const number of prNumbers) {
    git(colleague, 'switch', '-q', '-c', prBranch(number), 'main')
    writeFileSync(join(colleague, `pr-${number}.txt`), `${number}\n`)
    git(colleague, 'add', '.')
    git(colleague, 'commit', '-q', '-m', `work of PR ${number}`)
    git(colleague, 'push', '-q', 'origin', prBranch(number))
    origin.set(prBranch(number), git(colleague, 'rev-parse', 'HEAD'))
  }
  git(colleague, 'switch', '-q', 'main')
  const model: Model = {
    get now() {
      return time.now
    },
    set now(value) {
      time.now = value
    },
    environments: new Map(),
    points: new Map(),
    branches: new Map(
      git(repo.path, 'for-each-ref', '--format=%(refname:lstrip=2) %(objectname)', 'refs/heads')
        .split('\n')
        .map((line) => line.split(' ') as [string, string]),
    ),
    origin,
    landed: new Set(),
    conversations: new Map(),
    strangers: new Map(),
    leftovers: new Map(),
    canonical: takeSnapshot(git, repo.path),
  }
  const inside = new Map<string, ChildProcess>()
  let used = 0
  const real: Real = {
    world,
    context,
    counts,
    git,
    colleague,
    inside,
    codebase: async () => (await context.store.codebases.get(world.codebase.id)) ?? world.codebase,
    next: () => (used += 1),
    kill: (operation, dieAt) => runToDeath({ root: box.root, env: box.env, now: time.now, limit, operation, dieAt }),
    [Symbol.asyncDispose]: async () => {
      for (const child of inside.values()) await endProcess(child)
      await world[Symbol.asyncDispose]()
    },
  }
  return { model, real }
}

export const endProcess = async (child: ChildProcess): Promise<void> => {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

const runToDeath = async (orders: Orders): Promise<string | undefined> => {
  const child = spawn(process.execPath, [built('test/model/child.ts'), JSON.stringify(orders)], {
    env: { ...orders.env, NODE_NO_WARNINGS: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let problem = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (problem += chunk.toString()))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (signal === 'SIGKILL') return out
  if (code !== 0) throw new Error(`the child failed: ${problem}`)
  return undefined
}
