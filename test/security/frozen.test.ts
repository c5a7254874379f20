import { recoverInterrupted } from '../../src/isolation/reconcile.ts'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import { runScheduledCleanup } from '../../src/cleanup/sweep.ts'
import type { Codebase, IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toCodebaseId } from '../../src/domain/names.ts'
import { readStatus } from '../../src/git/status.ts'
import { presenceOf } from '../../src/isolation/providers/worktree/presence.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { type Chat, makeChat } from '../helpers/chat.ts'
import { type Heartbeat, startHeartbeat } from '../helpers/heartbeat.ts'
import { writeIn } from '../helpers/repo.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { everyCase } from '../helpers/every-case.ts'
import { ask } from '../isolation/scene.ts'

/*
 * Everything that an agent can write in a repository and its worktree, replaced by everything it can put there. Whatever
 * is asked next gets an answer (an error is one), no thread waits, nothing is deleted, and other repositories go on.
 */

let world: World
let chat: Chat
let heartbeat: Heartbeat
let victim: IsolatedEnvironment
let sibling: { codebase: Codebase; environment: IsolatedEnvironment }

beforeAll(async () => {
  heartbeat = startHeartbeat()
  const made = await makeWorld({
    remote: true,
    prepare: (repo) => {
      writeIn(repo.path, '.coppice/config.yaml', 'worktree:\n  copy: [.env]\n')
      writeIn(repo.path, '.coppice/commands/x.md', 'Do x.\n')
      writeIn(repo.path, '.gitignore', '.env\n*.log\n')
      repo.git('add', '.')
      repo.git('commit', '-qm', 'settings')
      repo.write('.env', 'SECRET=1\n')
      mkdirSync(join(repo.path, '.beads'))
    },
  })
  // Git that waits is found after a tenth of a second: the look is the same as after one.
  const git = made.box.git({ home: made.context.home, patienceMs: 100 })
  const context = { ...made.context, git }
  world = { ...made, context, provider: createEnvironments(context) }
  chat = await makeChat(world)
  victim = await created(world, 'victim')
  await context.store.conversations.update((await chat.conversation()).id, { environmentId: victim.id })
  const raw = (...args: string[]): string => world.box.raw(victim.path, ...args)
  writeIn(victim.path, 'deep/down/file', 'one\n')
  raw('add', '.')
  raw('commit', '-qm', 'work')
  writeIn(victim.path, 'deep/down/file', 'two\n')
  writeIn(victim.path, 'new.txt', 'not committed\n')
  writeIn(victim.path, '.gitattributes', '*.txt text\n')
  writeIn(victim.path, '.gitmodules', '')
  raw('fetch', '-q')
  world.repo.git('pack-refs', '--all')
  world.repo.git('branch', 'loose')
  sibling = await makeSibling()
})

afterAll(async () => {
  await heartbeat[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})

const created = async (in_: World, branch: string, codebase = in_.codebase): Promise<IsolatedEnvironment> => {
  const answer = await ask({ ...in_, codebase }, 'task', branch)
  if (answer.outcome !== 'resolved') throw new Error(JSON.stringify(answer))
  return answer.environment
}

const makeSibling = async (): Promise<typeof sibling> => {
  const repo = world.box.repo('sibling')
  const id = toCodebaseId('sibling-id')
  const codebase = { ...world.codebase, id, name: 'sibling', repoPath: repo.commonDir, checkoutPath: repo.path }
  await world.context.store.codebases.insert({ ...codebase, remote: undefined })
  return { codebase, environment: await created(world, 'beside', codebase) }
}

/** Everything that can be asked of a repository, by whoever may ask. None of it may wait. */
const questions: Record<string, () => Promise<unknown>> = {
  presence: () => presenceOf(world.codebase, victim),
  '/status': () => chat.say('/status'),
  '/diff': () => chat.say('/diff'),
  '/worktree list': () => chat.say('/worktree list'),
  '/help': () => chat.say('/help'),
  doctor: () => examineCodebase(world.context, world.codebase),
  '/worktree remove': () => chat.say('/worktree remove'),
  cleanup: () => runScheduledCleanup(world.context, world.provider, world.codebase),
  restart: () => reconcile(world.context, world.codebase),
  create: () => created(world, 'another'),
}

/**
 * A FIFO is what git itself waits for, and a refusal is quick: there everything is asked. With the others git runs and
 * fails, which takes ten times as long: they get the questions that read the most, and all of them with
 * COPPICE_FROZEN=all, which is part of `npm run test:soak`.
 */
const askedWith = (kind: string): (keyof typeof questions)[] => {
  if (kind === 'a FIFO' || process.env['COPPICE_FROZEN'] === 'all') return Object.keys(questions)
  return kind === 'a file of 1 GB'
    ? ['presence', '/worktree remove']
    : ['presence', '/diff', '/worktree remove', 'restart']
}

/** A question that takes this long is one that waits: each takes a fraction of a second. */
const longestMs = 30_000

const answers = async (name: string, question = async (): Promise<unknown> => undefined): Promise<string[]> => {
  const { promise, resolve } = Promise.withResolvers<string[]>()
  const timer = setTimeout(() => resolve([`${name} got no answer`]), longestMs)
  void question().then(
    () => resolve([]),
    () => resolve([]),
  )
  return promise.finally(() => clearTimeout(timer))
}

const replacements: Record<string, (path: string) => void> = {
  'a FIFO': (path) => void execFileSync('mkfifo', [path]),
  'a directory': (path) => mkdirSync(path),
  'a link to /dev/zero': (path) => symlinkSync('/dev/zero', path),
  'a link that leads nowhere': (path) => symlinkSync('/nowhere', path),
  'a file of 1 GB': (path) => {
    writeFileSync(path, '')
    truncateSync(path, 2 ** 30)
  },
}

/** Replaces the file, asks everything, puts it back. What went wrong, in words. */
const tryOne = async (path: string, kind: string): Promise<string[]> => {
  const problems: string[] = []
  const aside = world.box.path('aside')
  const there = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  mkdirSync(dirname(path), { recursive: true })
  if (there) renameSync(path, aside)
  replacements[kind]?.(path)
  heartbeat.watch(path)
  const stops = heartbeat.stops()
  try {
    const asked = await Promise.all(askedWith(kind).map((name) => answers(name, questions[name])))
    problems.push(...asked.flat())
    // Without the user's own configuration no git is started anywhere.
    if (!path.startsWith(world.box.home)) problems.push(...(await siblingProblems()))
  } finally {
    rmSync(path, { recursive: true, force: true })
    if (there) renameSync(aside, path)
  }
  if (heartbeat.stops() > stops) problems.push('the thread stopped')
  return [...problems, ...(await damage())]
}

const siblingProblems = async (): Promise<string[]> => {
  try {
    const presence = await presenceOf(sibling.codebase, sibling.environment)
    if (presence.state === 'present') await readStatus(world.context.git, presence.tree)
    return presence.state === 'present' ? [] : [`another repository's worktree is ${presence.state}`]
  } catch (error) {
    return [`another repository is affected: ${String(error)}`]
  }
}

/** What is not as it was. An environment that could be made in spite of it goes again. */
const damage = async (): Promise<string[]> => {
  const { store, host } = world.context
  const running = await stillRunning()
  // One whose making failed while a git was still at its end was left to it; any command undoes it.
  await recoverInterrupted(world.context, world.codebase)
  const row = await store.environments.get(victim.id)
  const presence = await presenceOf(world.codebase, victim)
  const made = await store.environments.liveByPath(host, join(dirname(victim.path), 'task-another'))
  if (made !== undefined) await world.provider.destroy(made, { trigger: 'command', force: true })
  return [
    ...(row?.status === 'active' ? [] : [`the environment is ${row?.status}`]),
    ...(presence.state === 'present' ? [] : [`the worktree is ${presence.state}`]),
    ...(existsSync(join(victim.path, 'new.txt')) ? [] : ['an uncommitted file is gone']),
    ...running,
  ]
}

/** An error is answered at once, while another git of the same question may still be at its end. */
const stillRunning = (): Promise<string[]> =>
  vi
    .waitFor(() => expect(world.context.git.running.size).toBe(0), { timeout: longestMs, interval: 20 })
    .then(
      () => [],
      () => ['a git is still running'],
    )

/** Names that git or Coppice reads when they are there. */
const absentNames = (record: string): string[] => [
  'shallow',
  'commondir',
  'config.worktree',
  'FETCH_HEAD',
  'info/attributes',
  'info/grafts',
  'logs/refs/stash',
  'objects/info/alternates',
  'objects/info/commit-graph',
  'objects/pack/pack-x.idx',
  'refs/stash',
  'remotes/origin',
  'coppice.lock.info',
  'coppice.lock.info.new',
  'HEAD.lock',
  'refs/coppice/x',
  ...['config.worktree', 'MERGE_HEAD', 'BISECT_START', 'locked', 'rebase-merge/head-name', 'sequencer/todo'].map(
    (name) => `${record}/${name}`,
  ),
]

const targets = (): string[] => {
  const common = world.codebase.repoPath
  const record = `worktrees/${victim.adminName}`
  const files = readdirSync(common, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(common, join(entry.parentPath, entry.name)))
    .filter((name) => !/^(?:hooks|objects)\//.test(name) && !name.includes('sibling'))
  const tip = world.box.raw(victim.path, 'rev-parse', 'HEAD')
  const object = `objects/${tip.slice(0, 2)}/${tip.slice(2)}`
  const inTree = ['.git', '.gitattributes', '.gitignore', '.gitmodules', '.mailmap', '.coppice/config.yaml']
  return [
    ...[...files, object, ...absentNames(record)].map((name) => join(common, name)),
    ...[...inTree, '.coppice/commands/x.md', '.beads/redirect', 'deep/down/.gitignore', 'nested/.git/HEAD'].map(
      (name) => join(victim.path, name),
    ),
    join(world.repo.path, '.beads/redirect'),
    join(world.repo.path, '.env'),
    join(world.box.home, '.gitconfig'),
    join(world.box.home, '.config/git/ignore'),
  ]
}

/** Every file is replaced by a FIFO and by one of the others, in turn; `npm run test:every-case` replaces it by everything. */
const targetsOf = (kind: string): string[] => {
  if (everyCase || kind === 'a FIFO') return targets()
  const others = Object.keys(replacements).filter((name) => name !== 'a FIFO')
  return targets().filter((_, n) => others[n % others.length] === kind)
}

describe('nothing that an agent can put in the place of a file makes anything wait:', () => {
  test.each(Object.keys(replacements))(
    '%s',
    async (kind) => {
      const problems: Record<string, string[]> = {}
      for (const path of targetsOf(kind)) {
        const found = await tryOne(path, kind)
        if (found.length > 0) problems[relative(world.box.root, path)] = found
      }
      expect(problems).toEqual({})
    },
    300_000,
  )
})
