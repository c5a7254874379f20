import type { Forge } from '../isolation/forge.ts'
import type { GithubSettings } from '../platforms/github/settings.ts'
import type { PlatformParts } from '../platforms/descriptor.ts'
import { toAppError } from '../domain/errors.ts'

/**
 * GitHub, if there are credentials for it; without, its public issues. Reads the settings and loads the SDK only with
 * the first call.
 */
export const createForge = (
  settings: () => Promise<GithubSettings>,
  parts: Pick<PlatformParts, 'log' | 'clock' | 'secrets'>,
): Forge => {
  let loaded: Promise<Forge | undefined> | undefined
  const load = async (): Promise<Forge | undefined> => {
    const given = await settings()
    const { hasCredentials } = await import('../platforms/github/settings.ts')
    if (!hasCredentials(given)) return undefined
    return (await import('../platforms/github/forge/forge.ts')).createGithubForge(given, parts)
  }
  const forge = (): Promise<Forge | undefined> => (loaded ??= load())
  const reader = async (): Promise<Forge> =>
    (await forge()) ?? (await import('../platforms/github/forge/forge.ts')).createGithubForge(await settings(), parts)
  return {
    repositoryAt: async (remoteUrl) => (await forge())?.repositoryAt(remoteUrl),
    mergedPullRequests: async (codebase, questions, options) =>
      (await forge())?.mergedPullRequests(codebase, questions, options) ?? { merged: [] },
    pullRequestStates: async (...asked) => (await forge())?.pullRequestStates(...asked) ?? { found: [] },
    openPullRequest: async (codebase, wanted, options) =>
      (await forge())?.openPullRequest(codebase, wanted, options) ?? { outcome: 'no-forge' },
    issues: async (...asked) => (await reader()).issues(...asked),
    issuesNumbered: async (...asked) => (await reader()).issuesNumbered(...asked),
    closeIssue: async (...asked) => (await forge())?.closeIssue(...asked) ?? { outcome: 'no-forge' },
    login: async (url) => {
      try {
        return await (await forge())?.login(url)
      } catch (error) {
        // The remote may be public, or the user may have a login for it.
        return { problem: toAppError(error).message }
      }
    },
  }
}
