import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type ProcessIdentity, parseIdentityWord } from '../domain/process-identity.ts'
import { linkedGitDirectory, maxLineBytes } from '../domain/git-link.ts'
import { directoriesContaining, processesInside, resolveRealPath } from './inside/processes-inside.ts'
import { isGone } from './proc.ts'
import { readUntrustedTextSync } from './files/read-untrusted.ts'
import { processTable } from './table.ts'

export type GitProcess = {
  readonly identity: ProcessIdentity
  readonly commandLine: string
  /** The Coppice process that started it; undefined if it isn't ours. */
  readonly startedBy: ProcessIdentity | undefined
}

/** Names the processes to wait for or check. Redact first: a command line may contain a URL with a password. */
export const describeGitProcesses = (gits: readonly Pick<GitProcess, 'identity' | 'commandLine'>[]): string => {
  const named = gits.slice(0, 3).map(({ identity, commandLine }) => `${identity.pid} (${shortened(commandLine)})`)
  const more = gits.length > 3 ? ` and ${gits.length - 3} more` : ''
  const [noun, verb] = gits.length === 1 ? ['process', 'is'] : ['processes', 'are']
  return `git ${noun} ${named.join(', ')}${more} ${verb} still running`
}

const shortened = (text: string): string => (text.length > 100 ? `${text.slice(0, 99)}…` : text)

export const commandLineOf = ({ pid }: ProcessIdentity): string => argumentsOf(pid).join(' ')

/** Set for every git we start: tells ours from the user's after a crash. */
export const gitStarterVariable = 'COPPICE_GIT_STARTER'

/**
 * Git processes on this host that use the repository, by cwd, `--git-dir`, GIT_DIR or open files. Checked before
 * touching a record of unknown origin, so it throws if a process can't be inspected.
 * Without `ofOthers`, for what we have started ourselves: another user's process can't be that.
 */
export const gitProcessesUsing = async (
  commonDir: string,
  { ofOthers = true }: { readonly ofOthers?: boolean } = {},
): Promise<readonly GitProcess[]> => {
  if (process.platform !== 'linux') throw checkFailed("this system doesn't show what other processes work on")
  const repository = await resolveRealPath(resolve(commonDir))
  const gits = (await processTable()).filter((row) => !row.zombie && isGit(row.command))
  if (gits.length === 0) return []
  const { inside, unreadable } = await processesInside([repository])
  const withFilesThere = new Set(inside.map((entry) => entry.pid))
  const hidden = new Set(unreadable.map((entry) => entry.pid))
  const users: GitProcess[] = []
  for (const git of gits) {
    const { pid } = git.identity
    if (isHarmlessDaemon(argumentsOf(pid)) || (!ofOthers && isOfOtherUser(pid))) continue
    if (hidden.has(pid)) throw checkFailed(`git process ${pid} belongs to another user`)
    const invocation = readInvocation(pid)
    if (invocation === undefined) continue
    if (withFilesThere.has(pid) || (await refersTo(invocation, repository))) {
      users.push({ identity: git.identity, commandLine: invocation.args.join(' '), startedBy: starterOf(invocation) })
    }
  }
  return users
}

type GitInvocation = { readonly cwd: string; readonly args: readonly string[]; readonly env: readonly string[] }

/** `git` and its helpers `git-remote-https`, `git-upload-pack`, …; the kernel truncates names to 15 characters. */
const isGit = (command: string): boolean => /^git(?:-|$)/.test(command)

/**
 * Long-lived, and writes neither refs nor the index. The credential cache inherits GIT_DIR from the fetch that started
 * it, which git can't prevent. `git daemon` serves from children, which are checked separately. Not `git maintenance`
 * or `git gc`, even in the background: they pack refs and prune worktrees. With options before the name, it counts as
 * unknown.
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

/** Undefined if it has exited. */
const readInvocation = (pid: number): GitInvocation | undefined => {
  try {
    return {
      cwd: readlinkSync(`/proc/${pid}/cwd`),
      args: readList(pid, 'cmdline'),
      env: readList(pid, 'environ'),
    }
  } catch (error) {
    if (isGone(error)) return undefined
    throw checkFailed(`git process ${pid} can't be inspected`, error)
  }
}

/** Empty if unknown. */
const argumentsOf = (pid: number): readonly string[] => {
  try {
    return readList(pid, 'cmdline')
  } catch {
    return []
  }
}

/** Each entry ends with NUL. */
const readList = (pid: number, file: 'cmdline' | 'environ'): readonly string[] =>
  readFileSync(`/proc/${pid}/${file}`, 'utf8').replace(/\0$/, '').split('\0')

const starterOf = ({ env }: GitInvocation): ProcessIdentity | undefined => {
  const entry = env.find((one) => one.startsWith(`${gitStarterVariable}=`))
  return entry === undefined ? undefined : parseIdentityWord(entry.slice(gitStarterVariable.length + 1))
}

const refersTo = async (invocation: GitInvocation, repository: string): Promise<boolean> => {
  for (const path of mentionedPaths(invocation)) {
    const realPath = await resolveRealPath(resolve(invocation.cwd, path))
    const common = repositoryOf(realPath)
    const directories = new Map([[repository, [repository]]])
    if (directoriesContaining(realPath, directories).length > 0) return true
    if (common !== undefined && directoriesContaining(await resolveRealPath(common), directories).length > 0)
      return true
  }
  return false
}

const GIT_DIR_VARIABLE = /^(?:GIT_DIR|GIT_COMMON_DIR|GIT_WORK_TREE|GIT_OBJECT_DIRECTORY|GIT_INDEX_FILE)=(.+)$/s

const mentionedPaths = ({ args, env }: GitInvocation): readonly string[] => [
  '.',
  ...args.flatMap((arg, index) => {
    const joined = /^--(?:git-dir|work-tree)=(.+)$/s.exec(arg)?.[1]
    if (joined !== undefined) return [joined]
    // Includes the directory argument of upload-pack, receive-pack or clone.
    return index > 0 && arg !== '' && !arg.startsWith('-') && arg.includes('/') ? [arg] : []
  }),
  ...env.flatMap((entry) => GIT_DIR_VARIABLE.exec(entry)?.[1] ?? []),
]

/** The git directory that git would find from here: `.git` in this or the nearest parent directory. */
const repositoryOf = (place: string): string | undefined => {
  for (let at = place; ; at = dirname(at)) {
    const dotGit = join(at, '.git')
    const kind = statSync(dotGit, { throwIfNoEntry: false })
    if (kind?.isDirectory() === true) return dotGit
    if (kind?.isFile() === true) return linkedGitDir(dotGit)
    if (at === dirname(at)) return undefined
  }
}

/** `.git` of a linked worktree or submodule: one line naming a directory inside the repository's. */
const linkedGitDir = (dotGit: string): string | undefined => {
  const named = linkedGitDirectory(readUntrustedTextSync(dotGit, { maxBytes: maxLineBytes }))
  return named === undefined ? undefined : resolve(dirname(dotGit), named)
}

const checkFailed = (why: string, cause?: unknown): AppError =>
  new AppError('unexpected', `couldn't check whether git is using the repository: ${why}`, {
    cause,
    remedy: 'try again when no git command is running',
  })
