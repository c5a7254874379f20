import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import type { Settings } from '../src/domain/config/settings.ts'
import type { Codebase, IsolatedEnvironment } from '../src/domain/environment.ts'
import { toCodebaseId } from '../src/domain/names.ts'
import { toWork } from '../src/domain/work.ts'
import type { IsolationContext } from '../src/isolation/context.ts'
import type { Environments } from '../src/isolation/environments.ts'
import { resolveIsolation } from '../src/isolation/resolve/resolve.ts'
import { createEnvironments } from '../src/isolation/environments.ts'
import { createLauncher, type Launch, type Launcher } from '../src/process/launcher/launcher.ts'
import { spawnDetached } from '../src/process/spawn.ts'
import { openStore } from '../src/store/open.ts'
import { makeSandbox, type Sandbox } from '../test/helpers/repo.ts'
import { makeContext } from '../test/helpers/world.ts'
import type { Row } from './measure.ts'
import { plainEnvironment, plainGit } from './plain-git.ts'

/** One benchmark: what is timed, in words, and how to measure it. */
export type Bench = {
  readonly name: string
  readonly title: string
  readonly description: string
  measure(stage: Stage): Promise<Row[]>
}

/** A temporary directory for the whole run, with the generated repositories. */
export type Stage = {
  readonly box: Sandbox
  /** A fresh copy of the generated repository with this many files; generated once per run. */
  readonly copy: (files: number) => string
  /** A fresh copy, registered, with an empty store. */
  world(files: number, settings?: Partial<Settings>): Promise<World>
  /** Runs a program to its end, as a shell would: started by a small process, whatever this one has in memory. */
  readonly start: (what: Omit<Launch, 'stdin' | 'stderrLimit'>) => Promise<string>
  /** The same with the variables of plain git. */
  readonly byHand: (cwd: string, program: string, ...args: string[]) => Promise<string>
  /** Flushes writes now, not while the next measurement is timed. */
  readonly settle: () => void
  readonly log: (line: string) => void
  [Symbol.dispose](): void
}

export type World = AsyncDisposable & {
  readonly root: string
  readonly checkout: string
  readonly codebase: Codebase
  readonly context: IsolationContext
  readonly launcher: Launcher
  readonly provider: Environments
  /** Plain git in the checkout, to prepare and to check. */
  raw(...args: string[]): string
  /** Plain git in the checkout, to be timed. */
  byHand(...args: string[]): Promise<string>
  /** As the product does for `worktree create --issue <number>`. */
  create(issue: number): Promise<IsolatedEnvironment>
  /** Resolves when the background deletions are done. */
  deletions(): Promise<void>
}

export const makeStage = (log: (line: string) => void): Stage => {
  const box = makeSandbox()
  const start = createStart()
  const byHand: Stage['byHand'] = (cwd, program, ...args) => start({ program, args, cwd, env: plainEnvironment(box) })
  let made = 0
  const copy = (files: number): string => {
    const template = box.path(`template-${files}`)
    if (!existsSync(template)) {
      log(`  generating a repository of ${files} files`)
      // In a separate process: 120 MB of content would slow down every start of git from this one.
      const script = fileURLToPath(new URL('generate.ts', import.meta.url))
      execFileSync(process.execPath, [script, template, String(files)], { env: box.env, stdio: 'inherit' })
    }
    made += 1
    const root = box.path(`world-${made}`)
    mkdirSync(root)
    execFileSync('cp', ['-a', template, join(root, 'project')])
    return root
  }
  return {
    box,
    copy,
    start,
    byHand,
    log,
    world: (files, settings) => openWorld(box, copy(files), settings, byHand),
    settle: () => execFileSync('sync'),
    [Symbol.dispose]: () => box[Symbol.dispose](),
  }
}

const launcherScript = fileURLToPath(new URL('../src/process/launcher/child.ts', import.meta.url))

const createStart = (): Stage['start'] => {
  const launcher = createLauncher({ script: launcherScript, fromRssBytes: 0, afterStarts: 0, idleMs: 3_600_000 })
  return async (what) => {
    let launched = launcher.launch({ ...what, stdin: undefined, stderrLimit: 10_000 })
    while (launched === undefined) {
      await delay(5)
      launched = launcher.launch({ ...what, stdin: undefined, stderrLimit: 10_000 })
    }
    const end = await launched.ended
    if (end === 'lost') throw new Error('the launcher has died')
    if (end.exitCode === 0) return Buffer.from(end.stdout).toString()
    throw new Error(`${what.program} ${what.args.join(' ')} failed: ${Buffer.from(end.stderr).toString()}`)
  }
}

/** In the background, with the product's own function. */
const deletion = [
  '--input-type=module',
  '--eval',
  `import { deleteTreeSync } from ${JSON.stringify(new URL('../src/process/files/delete-tree.ts', import.meta.url).href)}
   for (const path of process.argv.slice(1)) deleteTreeSync(path)`,
]

/** Also opened by a second process; the first one registers the repository. */
export const openWorld = async (
  box: Sandbox,
  root: string,
  settings: Partial<Settings> = {},
  byHand?: Stage['byHand'],
): Promise<World> => {
  const home = join(root, 'state')
  mkdirSync(home, { recursive: true })
  const checkout = join(root, 'project')
  const store = await openStore({ sqliteFile: join(home, 'coppice.db') })
  const launcher = createLauncher({ script: launcherScript })
  const dying = new Set<string>()
  const deleteInBackground = (paths: readonly string[]): void => {
    for (const path of paths) dying.add(path)
    void spawnDetached({ command: process.execPath, args: [...deletion, ...paths], cwd: '/', env: box.env })
  }
  const context = await makeContext(
    box,
    {
      home,
      worktreesBase: join(root, 'trees'),
      deleteInBackground,
      git: box.git({ home, launcher }),
    },
    { store, settings: { worktreesPerCodebase: 100_000, ...settings } },
  )
  const codebase = codebaseAt(context, checkout)
  await store.codebases.insert(codebase)
  const provider = createEnvironments(context)
  return {
    root,
    checkout,
    codebase,
    context,
    launcher,
    provider,
    raw: (...args) => plainGit(box, checkout, ...args),
    byHand: (...args) => byHand?.(checkout, 'git', ...args) ?? Promise.reject(new Error('nothing is timed here')),
    create: (issue) => createIssue(context, provider, codebase, issue),
    deletions: async () => {
      for (const path of dying) while (existsSync(path)) await delay(10)
      dying.clear()
    },
    [Symbol.asyncDispose]: async () => {
      await store.close()
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

const codebaseAt = (context: IsolationContext, checkout: string): Codebase => ({
  id: toCodebaseId('project'),
  host: context.host,
  name: 'project',
  repoPath: join(checkout, '.git'),
  checkoutPath: checkout,
  repoInode: undefined,
  remote: undefined,
  remoteUrl: undefined,
  baseBranch: undefined,
  base: undefined,
  github: undefined,
  defaultAgent: undefined,
  cloned: false,
  trustedConfig: undefined,
  configCommit: undefined,
  configText: undefined,
  fetchedAt: undefined,
  createdAt: context.clock(),
})

const createIssue = async (
  context: IsolationContext,
  provider: Environments,
  codebase: Codebase,
  issue: number,
): Promise<IsolatedEnvironment> => {
  const work = toWork('issue', String(issue))
  const resolution = await resolveIsolation(context, provider, { codebase, work, hints: {}, createdBy: 'bench' })
  if (resolution.outcome === 'resolved' && resolution.how === 'created') return resolution.environment
  throw new Error(`issue ${issue} was not created: ${JSON.stringify(resolution)}`)
}
