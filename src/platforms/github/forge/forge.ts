/*
 * GitHub as the host of our repositories. In: a codebase, and what to ask or to open there. Out: what GitHub merged, a
 * pull request, issues, a token for git. Only its own host ever gets that token.
 */
import type { Forge } from '../../../isolation/forge.ts'
import type { PlatformParts } from '../../descriptor.ts'
import { createGitLogin, type InstallationToken } from './git-login.ts'
import { repositoryAt } from '../host.ts'
import type { Octokits } from '../octokits.ts'
import { type GithubSettings, hasCredentials } from '../settings.ts'

export type ForgeOptions = { readonly timeoutMs?: number }

/** The SDK takes a quarter of a second to load, and a plain token for git needs none of it. */
export const createGithubForge = (
  settings: GithubSettings,
  parts: Pick<PlatformParts, 'log' | 'clock' | 'secrets'>,
  { timeoutMs = 15_000 }: ForgeOptions = {},
): Forge => {
  let made: Promise<Octokits> | undefined
  const make = async (): Promise<Octokits> =>
    (await import('../octokits.ts')).createOctokits(settings, { ...parts, timeoutMs, paced: false })
  const octokits = (): Promise<Octokits> => (made ??= make())
  const anonymous = !hasCredentials(settings)
  const options = { ...parts, timeoutMs, paced: false }
  const readers = async (): Promise<Pick<Octokits, 'of'>> =>
    anonymous ? (await import('../octokits.ts')).createAnonymousOctokits(settings, options) : octokits()
  const issueParts = { octokits: readers, apiUrl: settings.apiUrl, clock: parts.clock, anonymous }
  let merged: Promise<Forge['mergedPullRequests']> | undefined
  const loadMerged = async (): Promise<Forge['mergedPullRequests']> =>
    (await import('./merged-pull-requests.ts')).createMergedPullRequests(octokits, settings, parts)
  const installationToken: InstallationToken = async (repository) => {
    try {
      return { token: await (await octokits()).token(repository) }
    } catch (error) {
      const failure = (await import('../failure.ts')).failureOf(error, parts.clock)
      parts.log.warn('no token for git from the GitHub App', { ...repository, message: failure.message })
      return failure
    }
  }
  return {
    repositoryAt: async (remoteUrl) => {
      const found = repositoryAt(remoteUrl, settings.apiUrl)
      return found && `${found.owner}/${found.repo}`
    },
    login: createGitLogin(settings, installationToken),
    openPullRequest: async (...asked) => {
      const { openPullRequest } = await import('./open-pull-request.ts')
      return openPullRequest({ octokits, apiUrl: settings.apiUrl, clock: parts.clock }, ...asked)
    },
    pullRequestStates: async (...asked) => {
      const { pullRequestStates } = await import('./pull-request-states.ts')
      return pullRequestStates({ octokits, apiUrl: settings.apiUrl, clock: parts.clock }, ...asked)
    },
    issues: async (...asked) => (await import('./issues.ts')).findIssues(issueParts, ...asked),
    issuesNumbered: async (...asked) => (await import('./issues.ts')).issuesNumbered(issueParts, ...asked),
    closeIssue: async (...asked) => {
      const { closeIssue } = await import('./close-issue.ts')
      return closeIssue({ ...issueParts, octokits }, ...asked)
    },
    mergedPullRequests: async (...asked) => (await (merged ??= loadMerged()))(...asked),
  }
}
