import type { Context } from 'hono'
import type { Run, RunTokens } from '../runs/tokens.ts'
import type { ServerEnv } from './server-env.ts'

/** The run whose token the request carries, if any. */
export const runOf = (c: Context<ServerEnv>, tokens: RunTokens | undefined): Run | undefined => {
  const [, given] = /^Bearer +([\w-]{1,200})$/i.exec(c.req.header('authorization') ?? '') ?? []
  return given === undefined ? undefined : tokens?.find(given)
}

/**
 * A run may read only itself, its environment and its conversation. Matches whole paths, so that routes added later
 * are closed to runs until they are listed here.
 */
export const isRunAllowed = (run: Run, { method, path, url }: Context<ServerEnv>['req']): boolean => {
  if (method !== 'GET') return false
  const { searchParams: query } = new URL(url)
  const names = [...query.keys()]
  // If given twice, the checked one might not be the one used.
  if (new Set(names).size !== names.length) return false
  const asked = segmentsOf(path)
  const isAbout = (...own: readonly string[]): boolean =>
    asked?.length === own.length && own.every((segment, i) => segment === asked[i])
  if (isAbout('api', 'run') || (run.environmentId !== undefined && isAbout('api', 'environments', run.environmentId))) {
    return names.length === 0
  }
  if (!isAbout('api', 'conversations', run.conversationId, 'messages')) return false
  return (
    names.every((name) => name === 'platform' || name === 'limit') && (query.get('platform') ?? 'web') === run.platform
  )
}

const segmentsOf = (path: string): string[] | undefined => {
  try {
    return path.split('/').slice(1).map(decodeURIComponent)
  } catch {
    return undefined
  }
}
