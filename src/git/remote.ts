import { randomBytes } from 'node:crypto'
import { basename, dirname, resolve } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { mainHead } from './admin-dir.ts'
import { type ConfigEntry, isRepositoryScope, lastValue } from './config-entries.ts'
import type { Git, Repo } from './door.ts'
import type { Setting } from './neutral.ts'
import { applyUserRewrites } from './remote-url.ts'

export type Remote = { readonly name: string; readonly url: string }

/**
 * The previously known remote, so checking out someone's branch doesn't change it; else the current branch's remote,
 * `origin`, or the only one. Undefined when there is none, or the choice is ambiguous.
 */
export const remoteInfo = async (git: Git, repo: Repo, known?: string): Promise<Remote | undefined> => {
  const entries = await git.config(repo)
  const urls = remoteUrls(entries)
  const head = await mainHead(repo.commonDir)
  const ofBranch =
    head !== undefined && 'branch' in head ? lastValue(entries, `branch.${head.branch}.remote`) : undefined
  const only = urls.size === 1 ? [...urls.keys()][0] : undefined
  const name = [known, ofBranch, 'origin', only].find((candidate) => candidate !== undefined && urls.has(candidate))
  const url = name === undefined ? undefined : urls.get(name)
  return name === undefined || url === undefined ? undefined : { name, url }
}

/** Longest first, so `a/b` is found before `a`. */
export const remoteNames = async (git: Git, repo: Repo): Promise<string[]> =>
  [...remoteUrls(await git.config(repo)).keys()].sort((a, b) => b.length - a.length)

/** Git fetches from a remote's first URL. */
const remoteUrls = (entries: readonly ConfigEntry[]): Map<string, string> => {
  const urls = new Map<string, string>()
  for (const { key, value } of entries) {
    const name = /^remote\.(.+)\.url$/s.exec(key)?.[1]
    if (name !== undefined && value !== undefined && value !== '' && !urls.has(name)) urls.set(name, value)
  }
  return urls
}

/** A name to fetch from or push to, valid in calls with these settings. */
export type Address = { readonly name: string; readonly url: string; readonly settings: readonly Setting[] }

/**
 * Never use a remote by its name: its settings in the repository can run programs, and a repository's `url.*.insteadOf`
 * can't be overridden (the longest match wins). So give the URL an unguessable name for one call.
 */
export const addressOf = async (git: Git, repo: Repo, remote: { name: string } | { url: string }): Promise<Address> => {
  const entries = await git.config(repo)
  const url = 'url' in remote ? remote.url : remoteUrls(entries).get(remote.name)
  if (url === undefined) throw noRemote('name' in remote ? remote.name : '', repo)
  return oneCall(applyUserRewrites(url, entries), repo)
}

/** What a push goes to, and every address that decides it. */
export type PushAddress = Address & {
  /** As configured: the URL that is fetched from (undefined: none), and the repository's own `pushurl`s. */
  readonly configured: readonly [fetches: string | undefined, ...pushes: string[]]
}

/**
 * Where git pushes to: the remote's `pushurl` if it has one, else the URL that it fetches from. Both come from one
 * reading of the configuration: whoever works in a worktree can write it at any time, also between a check and a push.
 * Undefined if it has neither.
 */
export const pushAddressOf = async (git: Git, repo: Repo, remote: string): Promise<PushAddress | undefined> => {
  const entries = await git.config(repo)
  const url = remoteUrls(entries).get(remote)
  const key = `remote.${remote}.pushurl`
  const own = entries.flatMap((entry) => (isRepositoryScope(entry) && entry.key === key ? [entry.value ?? ''] : []))
  const pushUrl = lastValue(entries, key)
  const configured = [url, ...own] as const
  if (pushUrl !== undefined && pushUrl !== '')
    return { ...oneCall(applyUserRewrites(pushUrl, entries), repo), configured }
  return url === undefined ? undefined : { ...oneCall(applyUserRewrites(url, entries, 'push'), repo), configured }
}

const oneCall = (url: string, repo: Repo): Address => {
  const name = `coppice-${randomBytes(16).toString('hex')}:`
  const real = absolute(url, repo)
  // For a push, git prefers any `pushInsteadOf`, and the repository may have one for an empty prefix.
  const rules = ['insteadOf', 'pushInsteadOf'].map((rule): Setting => [`url.${real}.${rule}`, name])
  return { name, url: real, settings: rules }
}

const noRemote = (name: string, { commonDir }: Repo): AppError =>
  new AppError('remote-unreachable', `no remote ${name} in ${commonDir}`)

/** A relative path is relative to the top of the checkout; we run git elsewhere. */
const absolute = (url: string, { commonDir }: Repo): string => {
  if (url.startsWith('/') || /^[^/]*:/.test(url)) return url
  return resolve(basename(commonDir) === '.git' ? dirname(commonDir) : commonDir, url)
}
