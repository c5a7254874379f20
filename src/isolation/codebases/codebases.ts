/*
 * Repositories. In: a path or a URL. Out: a registered codebase, found again when it has been moved or renamed, and its
 * base branch.
 */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { repoOf } from './repo-of.ts'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { toCodebaseName, toRepoPath } from '../../domain/names.ts'
import { linkedGitDirectory, maxLineBytes } from '../../domain/git-link.ts'
import { type Discovered, discoverRepository } from '../../git/discover.ts'
import { listRefs, resolveCommit } from '../../git/refs.ts'
import { remoteInfo } from '../../git/remote.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import { type Added, type AddOptions, assertGithub, githubOf, register, withoutSecret } from './register.ts'
import { presentCodebase, recogniseCodebase } from './recognise.ts'
import type { IsolationContext } from '../context.ts'
import { assertRepository } from './repository-place.ts'
import { coppice, remedy, shell } from '../../domain/remedy.ts'

/** Registers a repository: a local one by its path, any other by its URL. Returns an existing registration. */
export const addCodebase = async (
  context: IsolationContext,
  pathOrUrl: string,
  cwd: string,
  options: AddOptions = {},
): Promise<Added> => {
  if (options.name !== undefined) toCodebaseName(options.name)
  if (options.github !== undefined) assertGithub(options.github)
  if (isUrl(pathOrUrl)) {
    const { addClone } = await import('./clone-repository.ts')
    return addClone(context, pathOrUrl, options)
  }
  const found = await discoverRepository(context.git, resolve(cwd, pathOrUrl), options)
  return addDiscovered(context, found, options)
}

/** The codebase that a command is about: the named one, else the one that the directory belongs to. */
export const resolveCodebase = async (
  context: IsolationContext,
  { name, cwd, signal }: { readonly name?: string | undefined; readonly cwd: string; readonly signal?: AbortSignal },
): Promise<Codebase> => {
  const options = signal === undefined ? {} : { signal }
  if (name !== undefined) {
    const named = await context.store.codebases.byName(context.host, name)
    if (named === undefined) return byPath()
    return presentCodebase(context, named)
  }
  const known = await codebaseAround(context, cwd)
  if (known !== undefined) return refreshed(context, known)
  const found = await discoverRepository(context.git, cwd, options)
  return (await addDiscovered(context, found, options)).codebase

  async function byPath(): Promise<Codebase> {
    if (name?.includes('/') === true) return (await addCodebase(context, name, cwd, options)).codebase
    const names = (await context.store.codebases.list(context.host)).map((codebase) => codebase.name)
    throw new AppError('not-found', `unknown codebase ${JSON.stringify(name)}`, {
      remedy:
        names.length === 0
          ? remedy`register one with ${coppice('codebase add <path or URL>')}`
          : remedy`registered: ${names.join(', ')}. Add another with ${coppice('codebase add <path or URL>')}`,
    })
  }
}

/** The registered codebase that contains the directory, if any. Starts no process and registers nothing. */
export const codebaseAround = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  cwd: string,
): Promise<Codebase | undefined> => {
  const { store, host } = context
  for (let dir = real(cwd); ; dir = dirname(dir)) {
    const dotGit = lookAt(join(dir, '.git'))
    // Inside an environment its row decides: the agent can rewrite or delete the `.git` file.
    if (dotGit === 'file' || existsSync(join(dirname(dirname(dir)), '.coppice-root'))) {
      const environment = await store.environments.liveByPath(host, dir)
      if (environment !== undefined) return store.codebases.get(environment.codebaseId)
    }
    if (dotGit !== 'nothing') {
      // Don't look further up: a submodule has no `commondir`, and the repository above isn't meant.
      const commonDir = commonDirOf(dir, dotGit)
      return commonDir === undefined ? undefined : store.codebases.byRepoPath(host, commonDir)
    }
    if (dir === dirname(dir)) return undefined
  }
}

/** There are no `C:` paths here, so anything with a scheme, or `host:` before a slash, is an address. */
const isUrl = (text: string): boolean => {
  if (/^[a-z][a-z0-9+.-]*:/i.test(text)) return true
  const [host = ''] = text.split('/', 1)
  const at = host.indexOf('@')
  return at > 0 && host.lastIndexOf(':') > at + 1
}

const addDiscovered = async (
  context: IsolationContext,
  { commonDir, checkoutPath }: Discovered,
  options: AddOptions,
): Promise<Added> => {
  const known = await recogniseCodebase(context, { commonDir, checkoutPath }, options.name)
  if (known !== undefined) return { codebase: await refreshed(context, known, options.github), isNew: false }
  const own = checkoutPath ?? (basename(commonDir).startsWith('.') ? dirname(commonDir) : commonDir)
  await assertCommits(context, commonDir, own)
  const remote = await remoteInfo(context.git, { commonDir })
  const called = options.called ?? basename(own)
  return register(context, { repoPath: commonDir, checkoutPath, remote, cloned: false }, called, options)
}

/** Remotes change after a repository was registered. The configuration is read by the next step anyway. */
const refreshed = async (context: IsolationContext, known: Codebase, github?: string): Promise<Codebase> => {
  assertRepository(known)
  const { repoPath: commonDir, checkoutPath } = known
  // Another repository may be there by now.
  const codebase = (await recogniseCodebase(context, { commonDir, checkoutPath })) ?? known
  const remote = await remoteInfo(context.git, repoOf(codebase), codebase.remote)
  const remoteUrl = withoutSecret(remote?.url)
  const now = {
    remote: remote?.name,
    remoteUrl,
    github: github ?? codebase.github ?? githubOf(remoteUrl),
    // Another remote has its own default branch.
    baseBranch: remote?.name === codebase.remote ? codebase.baseBranch : undefined,
  }
  const same = (Object.keys(now) as (keyof typeof now)[]).every((key) => now[key] === codebase[key])
  if (!same) await context.store.codebases.update(codebase.id, now)
  return { ...codebase, ...now }
}

/** A repository without commits has nothing to start from. `own` is its name in the error. */
export const assertCommits = async (
  { git }: Pick<IsolationContext, 'git'>,
  commonDir: string,
  own: string,
): Promise<void> => {
  const repo = { commonDir: toRepoPath(commonDir) }
  if ((await resolveCommit(git, repo, 'HEAD')) !== undefined) return
  if ((await listRefs(git, repo, ['refs/heads', 'refs/remotes'])).length > 0) return
  throw new AppError('no-commits', `${own} has no commits yet, so there is nothing to start from`, {
    remedy: remedy`make a first commit (${shell('git commit --allow-empty -m "first"')}) and try again`,
  })
}

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

const lookAt = (path: string): 'directory' | 'file' | 'nothing' => {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found === undefined ? 'nothing' : found.isDirectory() ? 'directory' : 'file'
  } catch {
    return 'nothing'
  }
}

/** As git finds it; undefined for anything unusual, which is left to git. */
const commonDirOf = (dir: string, kind: 'directory' | 'file'): string | undefined => {
  const dotGit = join(dir, '.git')
  try {
    if (kind === 'directory') return realpathSync(dotGit)
    const link = linkedGitDirectory(readUntrustedTextSync(dotGit, { maxBytes: maxLineBytes }))
    if (link === undefined) return undefined
    const gitDir = resolve(dir, link)
    const commonDir = readUntrustedTextSync(join(gitDir, 'commondir'), { maxBytes: maxLineBytes })?.trim()
    return commonDir === undefined ? undefined : realpathSync(resolve(gitDir, commonDir))
  } catch {
    return undefined
  }
}
