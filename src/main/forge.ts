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
  type Loaded = { readonly github: Forge; readonly hasLogin: boolean }
  let loaded: Promise<Loaded> | undefined
  const load = async (): Promise<Loaded> => {
    const given = await settings()
    const { hasCredentials } = await import('../platforms/github/settings.ts')
    const { createGithubForge } = await import('../platforms/github/forge.ts')
    return { github: createGithubForge(given, parts), hasLogin: hasCredentials(given) }
  }
  const anyForge = (): Promise<Loaded> => (loaded ??= load())
  const forge = async (): Promise<Forge | undefined> => {
    const { github, hasLogin } = await anyForge()
    return hasLogin ? github : undefined
  }
  return {
    repositoryAt: async (remoteUrl) => (await forge())?.repositoryAt(remoteUrl),
    mergedPullRequests: async (codebase, questions, options) =>
      (await forge())?.mergedPullRequests(codebase, questions, options) ?? { merged: [] },
    openPullRequest: async (codebase, wanted, options) =>
      (await forge())?.openPullRequest(codebase, wanted, options) ?? { outcome: 'no-forge' },
    issues: async (...asked) => (await anyForge()).github.issues(...asked),
    issuesNumbered: async (...asked) => (await anyForge()).github.issuesNumbered(...asked),
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
