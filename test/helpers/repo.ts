import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Sha, toRepoPath, toSha } from '../../src/domain/names.ts'
import { runDirectory } from './run-directory.ts'
import { runInSmallShell } from './small-shell.ts'
import { createGit, type Git, type GitOptions, type Repo, type Tree } from '../../src/git/door.ts'

/** A directory of its own with a HOME, an identity and nothing of the machine's configuration. */
export type Sandbox = {
  readonly root: string
  readonly home: string
  readonly env: Record<string, string>
  /** The door, as main would make it, for this sandbox's user. */
  git(options?: Partial<GitOptions>): Git
  /** Plain git, as a person would type it. Throws with git's own words when it fails. */
  readonly raw: (cwd: string, ...args: string[]) => string
  /** A repository with one commit on `main`; `path` is its checkout. */
  repo(name?: string, template?: Template): TestRepo
  /** The same, with a bare `origin.git` beside it that `main` was pushed to. */
  repoWithOrigin(name?: string, template?: Template): TestRepo
  bare(name?: string): TestRepo
  path(...parts: string[]): string
  [Symbol.dispose](): void
}

export type TestRepo = Repo & {
  readonly path: string
  git(...args: string[]): string
  write(file: string, content: string | Buffer): void
  /** Writes the file, commits it, returns the commit. */
  commit(file: string, content: string | Buffer, message?: string): Sha
  sha(rev?: string): Sha
  /** A worktree made with plain git. */
  worktree(name: string, ...args: string[]): Tree
}

export const makeSandbox = (temporary = tmpdir()): Sandbox => {
  const root = realpathSync(mkdtempSync(join(temporary, 'coppice-test-')))
  const home = join(root, 'home')
  mkdirSync(home)
  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: home,
    LC_ALL: 'C',
    ...compileCache(),
  }
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n',
  )
  const raw: Sandbox['raw'] = (cwd, ...args) => plainGit(args, { cwd, env })
  const copyOf = (original: string, name: string): TestRepo => {
    const path = join(root, name)
    cpSync(original, path, { recursive: true })
    // What the index knows of a file (inode, times) is that of the original.
    raw(path, 'update-index', '-q', '--refresh')
    return testRepo(raw, path, join(path, '.git'))
  }
  return {
    root,
    home,
    env,
    raw,
    git: (options) => createGit({ env, home: join(home, '.coppice'), now: Date.now, ...options }),
    path: (...parts) => join(root, ...parts),
    repo: (name = 'repo', template = firstCommit) => copyOf(originalOf(template), name),
    repoWithOrigin: (name = 'repo', template = firstCommit) => {
      const original = originalWithOrigin(template)
      cpSync(join(original, 'origin.git'), join(root, 'origin.git'), { recursive: true })
      const repo = copyOf(join(original, 'original'), name)
      const config = join(repo.commonDir, 'config')
      writeFileSync(config, readFileSync(config, 'utf8').replaceAll(original, root))
      return repo
    },
    bare: (name = 'bare.git') => {
      const path = join(root, name)
      cpSync(originalBare(), path, { recursive: true })
      return testRepo(raw, path, path)
    },
    [Symbol.dispose]: () => {
      rmSync(root, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** Without automatic maintenance: git would start it after most commands, only to find nothing to do. */
export const plainGit = (args: readonly string[], { cwd, env }: { cwd: string; env: Record<string, string> }): string =>
  runInSmallShell('git', ['-c', 'maintenance.auto=false', ...args], {
    cwd,
    env: { ...env, GIT_CONFIG_NOSYSTEM: '1' },
    // A git that waits for something must fail the test, not hold up the suite.
    timeoutMs: 30_000,
  }).trimEnd()

/** How a repository begins. It is made with git once in a process, and copied from then on. */
export type Template = (repo: TestRepo) => void

export const firstCommit: Template = (repo) => {
  repo.commit('README', 'hello\n', 'first')
}

const originals = new Map<Template, string>()

const originalOf = (template: Template): string => {
  const known = originals.get(template)
  if (known !== undefined) return known
  const box = makeSandbox(runDirectory())
  const path = box.path('original')
  box.raw(box.root, 'init', '-q', path)
  template(testRepo(box.raw, path, join(path, '.git')))
  originals.set(template, path)
  return path
}

const originalsWithOrigin = new Map<Template, string>()

/** The directory of both. A push starts six processes. */
const originalWithOrigin = (template: Template): string => {
  const known = originalsWithOrigin.get(template)
  if (known !== undefined) return known
  const box = makeSandbox(runDirectory())
  addOrigin(box, box.repo('original', template))
  originalsWithOrigin.set(template, box.root)
  return box.root
}

/** A bare repository as `origin`, with `main`. */
export const addOrigin = (box: Sandbox, repo: TestRepo): void => {
  const { path } = box.bare('origin.git')
  repo.git('remote', 'add', 'origin', path)
  repo.git('push', '-q', 'origin', 'main')
  repo.git('remote', 'set-head', 'origin', 'main')
}

let bareOriginal: string | undefined

/** A push to it starts no maintenance either: `-c` does not reach the receiving side. */
const originalBare = (): string => {
  if (bareOriginal !== undefined) return bareOriginal
  const box = makeSandbox(runDirectory())
  const path = box.path('bare')
  box.raw(box.root, 'init', '-q', '--bare', path)
  box.raw(path, 'config', 'receive.autogc', 'false')
  return (bareOriginal = path)
}

const testRepo = (raw: Sandbox['raw'], path: string, commonDir: string): TestRepo => {
  const git = (...args: string[]): string => raw(path, ...args)
  const write = (file: string, content: string | Buffer): void => writeIn(path, file, content)
  const sha = (rev = 'HEAD'): Sha => toSha(git('rev-parse', rev))
  return {
    commonDir: toRepoPath(commonDir),
    path,
    git,
    write,
    sha,
    commit: (file, content, message = `change ${file}`) => {
      write(file, content)
      git('add', '--', file)
      git('commit', '-q', '-m', message)
      return sha()
    },
    worktree: (name, ...args) => {
      const at = join(dirname(path), name)
      git('worktree', 'add', '-q', at, ...args)
      return { commonDir: toRepoPath(commonDir), gitDir: raw(at, 'rev-parse', '--absolute-git-dir'), path: at }
    },
  }
}

export const writeIn = (directory: string, file: string, content: string | Buffer): void => {
  mkdirSync(dirname(join(directory, file)), { recursive: true })
  writeFileSync(join(directory, file), content)
}

/** A program that leaves a file behind when it runs, then does what `then` says. */
export const markerProgram = (path: string, marker: string, then = 'cat'): string => {
  writeFileSync(path, `#!/bin/sh\necho ran >> '${marker}'\n${then}\n`)
  chmodSync(path, 0o755)
  return path
}

export const mainTree = (repo: TestRepo): Tree => ({
  commonDir: repo.commonDir,
  gitDir: repo.commonDir,
  path: repo.path,
})

/** For the processes that are started from source. */
export const compileCache = (): Record<string, string> => {
  const directory = process.env['NODE_COMPILE_CACHE']
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: directory }
}
