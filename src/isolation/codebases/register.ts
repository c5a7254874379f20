import type { Codebase } from '../../domain/environment.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import { githubName, ownerAndName, remoteAddress } from '../../domain/forge/remote-address.ts'
import { trimEndOf } from '../../domain/text/trim-end.ts'
import { idForNew, keepRecognisable } from './recognise.ts'
import type { IsolationContext } from '../context.ts'

export type AddOptions = {
  readonly name?: string
  /** Another tool's name for it: made valid and unique, and used instead of the directory's. */
  readonly called?: string
  /** `owner/name` */
  readonly github?: string
  /** The address comes from a chat: it must not reach this machine or its network. */
  readonly onlyPublic?: boolean
  readonly signal?: AbortSignal
}
export type Added = { readonly codebase: Codebase; readonly isNew: boolean }

export type NewCodebase = {
  readonly repoPath: string
  readonly checkoutPath: string | undefined
  readonly remote: { readonly name: string; readonly url: string } | undefined
  readonly cloned: boolean
  readonly baseBranch?: string | undefined
}

/** Inserts the row under a free name. Concurrent registrations of the same repository get the same row. */
export const register = async (
  context: IsolationContext,
  { repoPath, checkoutPath, remote, cloned, baseBranch }: NewCodebase,
  called: string,
  { name, github }: AddOptions,
): Promise<Added> => {
  const { store, host } = context
  const remoteUrl = withoutSecret(remote?.url)
  const codebase = {
    id: await idForNew(context, repoPath),
    host,
    repoPath,
    checkoutPath,
    repoInode: undefined,
    remote: remote?.name,
    remoteUrl,
    baseBranch,
    base: undefined,
    github: github ?? githubOf(remoteUrl) ?? (await forgeName(context, remoteUrl)),
    defaultAgent: undefined,
    cloned,
    trustedConfig: undefined,
    configCommit: undefined,
    configText: undefined,
    fetchedAt: undefined,
    createdAt: context.clock(),
  }
  const plain = name ?? plainName(called)
  for (let n = 1; n < 1000; n++) {
    const candidate = n === 1 ? plain : `${plain}-${n}`
    if (await store.codebases.insert({ ...codebase, name: candidate })) {
      return { codebase: await keepRecognisable(context, { ...codebase, name: candidate }), isNew: true }
    }
    const same = await store.codebases.byRepoPath(host, repoPath)
    if (same !== undefined) return { codebase: same, isNew: false }
    if (name !== undefined) throw nameTaken(name)
  }
  throw nameTaken(plain)
}

/** On a GitHub of one's own. */
const forgeName = async (
  { forge, log }: Pick<IsolationContext, 'forge' | 'log'>,
  remoteUrl: string | undefined,
): Promise<string | undefined> => {
  if (remoteAddress(remoteUrl) === undefined || remoteUrl === undefined) return undefined
  try {
    return await forge?.repositoryAt(remoteUrl)
  } catch (error) {
    log.warn("the code host's settings couldn't be read", { error: toAppError(error).message })
    return undefined
  }
}

const nameTaken = (name: string): AppError =>
  new AppError('name-invalid', `a codebase named ${name} already exists`, { remedy: 'choose another name with --name' })

/** A directory can have any name; a codebase's name becomes a directory of ours. */
export const plainName = (called: string): string => {
  const plain = called
    .replace(/\.git$/, '')
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
  const short = trimEndOf(plain, '._-')
    .slice(0, 90)
    .replace(/\.lock$/, '')
  return short === '' ? 'repository' : short
}

/** A token in a remote's URL is the user's choice; we must not store a copy. */
export const withoutSecret = (url: string | undefined): string | undefined =>
  url?.replace(/^(https?:\/\/)[^/@]*@/i, '$1')

/** `owner/name` of a github.com remote in any spelling. */
export const githubOf = (url: string | undefined): string | undefined => {
  const address = remoteAddress(url)
  const found = address?.host === 'github.com' ? ownerAndName(address) : undefined
  return found && `${found.owner}/${found.repo}`
}

export const assertGithub = (github: string): void => {
  if (githubName.test(github)) return
  throw new AppError('name-invalid', `${JSON.stringify(github.slice(0, 80))} is not a GitHub repository`, {
    remedy: 'use the form owner/name',
  })
}
