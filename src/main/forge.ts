import type { Forge } from '../isolation/forge.ts'
import type { GithubSettings } from '../platforms/github/settings.ts'
import type { PlatformParts } from '../platforms/descriptor.ts'

/** GitHub, if there are credentials for it. Nothing is read or loaded before the first question. */
export const createForge = (
  settings: () => Promise<GithubSettings>,
  parts: Pick<PlatformParts, 'log' | 'clock' | 'secrets'>,
): Forge => {
  let loaded: Promise<Forge | undefined> | undefined
  const load = async (): Promise<Forge | undefined> => {
    const given = await settings()
    const { hasCredentials } = await import('../platforms/github/settings.ts')
    if (!hasCredentials(given)) return undefined
    return (await import('../platforms/github/forge.ts')).createGithubForge(given, parts)
  }
  return {
    mergedPullRequests: async (codebase, questions, options) => {
      loaded ??= load()
      return (await loaded)?.mergedPullRequests(codebase, questions, options) ?? { merged: [] }
    },
  }
}
