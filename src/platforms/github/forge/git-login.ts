import type { FindLogin } from '../../../domain/forge/login.ts'
import { remoteAddress } from '../../../domain/forge/remote-address.ts'
import type { Failure } from '../failure.ts'
import { gitHostOf, type Repository, repositoryAt } from '../host.ts'
import { type GithubSettings, isApp } from '../settings.ts'

export type InstallationToken = (repository: Repository) => Promise<{ readonly token: string } | Failure>

/**
 * What git logs in with on GitHub: the token of the app's installation on that repository, else the configured token.
 * Each is for GitHub's own host; the askpass gives it to no other.
 */
export const createGitLogin = (settings: GithubSettings, installationToken: InstallationToken): FindLogin => {
  const { token, apiUrl } = settings
  const host = gitHostOf(apiUrl)?.toLowerCase()
  return async (url) => {
    if (host === undefined || !mayBeThere(url, host)) return undefined
    const own = token === undefined ? undefined : { host, secret: token }
    const repository = repositoryAt(url, apiUrl)
    if (!isApp(settings) || repository === undefined) return own
    const given = await installationToken(repository)
    if ('token' in given) return { host, secret: given.token, shortLived: true }
    return own ?? { problem: whyNot(repository, given) }
  }
}

/** Submodules may be there even if the repository itself is elsewhere. */
const mayBeThere = (url: string | undefined, host: string): boolean => {
  const address = remoteAddress(url)
  if (address === undefined || !/^https?$/.test(address.scheme)) return true
  return (address.port === undefined ? address.host : `${address.host}:${address.port}`) === host
}

const whyNot = ({ owner, repo }: Repository, { kind, message }: Failure): string =>
  kind === 'missing'
    ? `couldn't log in to GitHub: the GitHub App isn't installed on ${owner}/${repo}, or there is no such repository`
    : `couldn't log in to GitHub: no token for ${owner}/${repo} (${message.split('\n')[0]?.slice(0, 200) ?? ''})`
