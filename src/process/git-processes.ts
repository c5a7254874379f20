import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type ProcessIdentity, parseIdentityWord } from '../domain/process-identity.ts'
import { linkedGitDirectory, maxLineBytes } from '../domain/git-link.ts'
import { placesOf, processesInside, realPlace } from './inside.ts'
import { isGone } from './proc.ts'
import { readUntrustedTextSync } from './files/read-untrusted.ts'
import { processTable } from './table.ts'

export type GitProcess = {
  readonly identity: ProcessIdentity
  readonly commandLine: string
  /** The Coppice process that started it; undefined for anybody else's git. */
  readonly startedBy: ProcessIdentity | undefined
}

/** For people: which ones to wait for, or to look at. Redact first: a command line may have a password in a URL. */
export const describeGitProcesses = (gits: readonly Pick<GitProcess, 'identity' | 'commandLine'>[]): string => {
  const named = gits.slice(0, 3).map(({ identity, commandLine }) => `${identity.pid} (${shortened(commandLine)})`)
  const more = gits.length > 3 ? ` and ${gits.length - 3} more` : ''
  const [noun, verb] = gits.length === 1 ? ['process', 'is'] : ['processes', 'are']
  return `git ${noun} ${named.join(', ')}${more} ${verb} still running`
}

const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 99)}…` : text)

export const commandLineOf = ({ pid }: ProcessIdentity): string => argumentsOf(pid).join(' ')

/** In the environment of every git that we start: after a crash it tells ours from the user's. */
export const gitStarterVariable = 'COPPICE_GIT_STARTER'

/**
 * The git processes of this host that work on the repository: by their directory, `--git-dir`, GIT_DIR or open files.
 * Asked before a record that nobody can account for is touched, so one that cannot be looked at makes it throw.
 * Without `ofOthers`, for what we have started ourselves: one of another user's cannot be that.
 */
export const gitProcessesUsing = async (
  commonDir: string,
  { ofOthers = true }: { readonly ofOthers?: boolean } = {},
): Promise<readonly GitProcess[]> => {
  if (process.platform !== 'linux') throw cannotTell('this system does not tell what other processes work on')
  const repository = await realPlace(resolve(commonDir))
  const gits = (await processTable()).filter((row) => !row.zombie && isGit(row.command))
  if (gits.length === 0) return []
  const { inside, unreadable } = await processesInside([repository])
  const withFilesThere = new Set(inside.map((entry) => entry.pid))
  const hidden = new Set(unreadable.map((entry) => entry.pid))
  const users: GitProcess[] = []
  for (const git of gits) {
    const { pid } = git.identity
    if (isHarmlessDaemon(argumentsOf(pid)) || (!ofOthers && isOfOtherUser(pid))) continue
    if (hidden.has(pid)) throw cannotTell(`git process ${pid} belongs to another user`)
    const told = ownWords(pid)
    if (told === undefined) continue
    if (withFilesThere.has(pid) || (await speaksOf(told, repository))) {
      users.push({ identity: git.identity, commandLine: told.args.join(' '), startedBy: starterOf(told) })
    }
  }
  return users
}

type OwnWords = { readonly cwd: string; readonly args: readonly string[]; readonly env: readonly string[] }

/** `git`, and its helpers `git-remote-https`, `git-upload-pack`, …; the kernel cuts names at 15 characters. */
const isGit = (command: string): boolean => /^git(?:-|$)/.test(command)

/**
 * Lives on for hours or days and writes neither refs nor the index. The credential cache inherits GIT_DIR from the fetch
 * that started it, and git has no way not to hand it on. `git daemon` answers in children, which are looked at by
 * themselves. Not `git maintenance` and `git gc`, in the background or not: they pack refs and prune worktrees. Options
 * before the name count as unknown.
 */
const isHarmlessDaemon = ([program = '', ...rest]: readonly string[]): boolean => {
  const name = basename(program)
  const [command, first] = name === 'git' ? rest : [name.replace(/^git-/, ''), ...rest]
  return (
    command === 'credential-cache--daemon' ||
    command === 'daemon' ||
    (command === 'fsmonitor--daemon' && first === 'run')
  )
}

/** By the real user, which everybody may read. Not where that is unknown. */
const isOfOtherUser = (pid: number): boolean => {
  try {
    const real = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return real !== undefined && Number(real) !== process.getuid?.()
  } catch {
    return false
  }
}

/** Undefined when it has ended meanwhile. */
const ownWords = (pid: number): OwnWords | undefined => {
  try {
    return {
      cwd: readlinkSync(`/proc/${pid}/cwd`),
      args: listIn(pid, 'cmdline'),
      env: listIn(pid, 'environ'),
    }
  } catch (error) {
    if (isGone(error)) return undefined
    throw cannotTell(`git process ${pid} cannot be looked at`, error)
  }
}

/** Nothing where that is unknown. */
const argumentsOf = (pid: number): readonly string[] => {
  try {
    return listIn(pid, 'cmdline')
  } catch {
    return []
  }
}

/** Each entry ends with a NUL. */
const listIn = (pid: number, file: 'cmdline' | 'environ'): readonly string[] =>
  readFileSync(`/proc/${pid}/${file}`, 'utf8').replace(/\0$/, '').split('\0')

const starterOf = ({ env }: OwnWords): ProcessIdentity | undefined => {
  const entry = env.find((one) => one.startsWith(`${gitStarterVariable}=`))
  return entry === undefined ? undefined : parseIdentityWord(entry.slice(gitStarterVariable.length + 1))
}

const speaksOf = async (told: OwnWords, repository: string): Promise<boolean> => {
  for (const path of pathsNamed(told)) {
    const place = await realPlace(resolve(told.cwd, path))
    const common = repositoryOf(place)
    const places = new Map([[repository, [repository]]])
    if (placesOf(place, places).length > 0) return true
    if (common !== undefined && placesOf(await realPlace(common), places).length > 0) return true
  }
  return false
}

const GIT_DIR_VARIABLE = /^(?:GIT_DIR|GIT_COMMON_DIR|GIT_WORK_TREE|GIT_OBJECT_DIRECTORY|GIT_INDEX_FILE)=(.+)$/s

const pathsNamed = ({ args, env }: OwnWords): readonly string[] => [
  '.',
  ...args.flatMap((arg, index) => {
    const joined = /^--(?:git-dir|work-tree)=(.+)$/s.exec(arg)?.[1]
    if (joined !== undefined) return [joined]
    // also the directory that upload-pack, receive-pack or clone are given as a plain argument
    return index > 0 && arg !== '' && !arg.startsWith('-') && arg.includes('/') ? [arg] : []
  }),
  ...env.flatMap((entry) => GIT_DIR_VARIABLE.exec(entry)?.[1] ?? []),
]

/** The git directory that git would find from here, by its own rule: `.git` in this or the nearest directory above. */
const repositoryOf = (place: string): string | undefined => {
  for (let at = place; ; at = dirname(at)) {
    const dotGit = join(at, '.git')
    const kind = statSync(dotGit, { throwIfNoEntry: false })
    if (kind?.isDirectory() === true) return dotGit
    if (kind?.isFile() === true) return linkedGitDir(dotGit)
    if (at === dirname(at)) return undefined
  }
}

/** `.git` of a linked worktree or a submodule: one line that names a directory inside the repository's own. */
const linkedGitDir = (dotGit: string): string | undefined => {
  const named = linkedGitDirectory(readUntrustedTextSync(dotGit, { maxBytes: maxLineBytes }))
  return named === undefined ? undefined : resolve(dirname(dotGit), named)
}

const cannotTell = (why: string, cause?: unknown): AppError =>
  new AppError('unexpected', `cannot tell whether git is at work in the repository: ${why}`, {
    cause,
    remedy: 'try again when no git command runs',
  })
