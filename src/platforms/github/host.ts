import type { Codebase } from '../../domain/environment.ts'
import { ownerAndName, type RemoteAddress, remoteAddress } from '../../domain/forge/remote-address.ts'

/**
 * The host that git uses for the GitHub at this API: GitHub Enterprise Server has both on one host, github.com and
 * *.ghe.com have the API at `api.`. Undefined for an invalid URL.
 */
export const gitHostOf = (apiUrl: string | undefined): string | undefined => {
  if (apiUrl === undefined || apiUrl === '') return 'github.com'
  const host = URL.parse(apiUrl)?.host
  return host === '' ? undefined : host?.replace(/^api\.(?=(?:github\.com|[^.]+\.ghe\.com)$)/, '')
}

export type Repository = { readonly owner: string; readonly repo: string }

/** The repository that a remote's URL leads to, if it is on this GitHub. */
export const repositoryAt = (remoteUrl: string | undefined, apiUrl: string | undefined): Repository | undefined => {
  const address = remoteAddress(remoteUrl)
  return address !== undefined && isThere(address, apiUrl) ? ownerAndName(address) : undefined
}

/**
 * The codebase's repository, if its remote is on this GitHub: another one may have a repository of the same name. A
 * remote without a host, such as a local mirror, is what its owner said it is.
 */
export const repositoryThere = (
  { github, remoteUrl }: Pick<Codebase, 'github' | 'remoteUrl'>,
  apiUrl: string | undefined,
): Repository | undefined => {
  const [owner, repo] = github?.split('/') ?? []
  if (owner === undefined || repo === undefined) return undefined
  const address = remoteAddress(remoteUrl)
  return address === undefined || isThere(address, apiUrl) ? { owner, repo } : undefined
}

/** Whatever the port: ssh has another one. */
const isThere = ({ host }: RemoteAddress, apiUrl: string | undefined): boolean =>
  host === gitHostOf(apiUrl)?.replace(/:\d+$/, '').toLowerCase()
