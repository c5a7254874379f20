import type { Context } from 'hono'
import type { Run, RunTokens } from '../runs/tokens.ts'
import type { ServerEnv } from './server-env.ts'

/** The run whose token the request carries; undefined for every other token and for none. */
export const runOf = (c: Context<ServerEnv>, tokens: RunTokens | undefined): Run | undefined => {
  const [, given] = /^Bearer +([\w-]{1,200})$/i.exec(c.req.header('authorization') ?? '') ?? []
  return given === undefined ? undefined : tokens?.find(given)
}

/**
 * What a run may ask: who it is, its own environment, its own conversation. By whole addresses, so that a route which
 * is added later is closed to runs until somebody opens it here.
 */
export const runMayAsk = (run: Run, { method, path, url }: Context<ServerEnv>['req']): boolean => {
  if (method !== 'GET') return false
  const { searchParams: query } = new URL(url)
  const names = [...query.keys()]
  // Given twice, the one that is checked might not be the one that counts.
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
