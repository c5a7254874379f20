import { createRoute, z } from '@hono/zod-openapi'
import { AppError } from '../../domain/errors.ts'
import type { Conversation } from '../../store/store.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { failures, json, missing } from '../routes.ts'
import { codebaseName, platformName, time } from '../schemas.ts'

const conversation = z
  .object({
    platform: z.string(),
    conversationId: z.string(),
    codebase: z.string().nullable(),
    environment: z.string().nullable(),
    agent: z.string().nullable(),
    lastActivityAt: time,
    closedAt: time.nullable(),
    createdAt: time,
  })
  .openapi('Conversation')

const listRoute = createRoute({
  method: 'get',
  path: '/api/conversations',
  summary: 'List conversations, most recently active first',
  request: {
    query: z.strictObject({
      platform: platformName.optional(),
      codebase: codebaseName.optional(),
      limit: z.coerce.number().int().min(1).max(1_000).default(100),
    }),
  },
  responses: { 200: json('The conversations', z.array(conversation)), ...failures, ...missing },
})

const beginRoute = createRoute({
  method: 'post',
  path: '/api/conversations',
  summary: 'Generate a new conversation ID',
  responses: { 201: json('The ID', z.object({ conversationId: z.string() })), ...failures },
})

export const addConversations = (app: App, { context: { isolation } }: ServerDeps): void => {
  const { store, host, ids } = isolation
  app.openapi(listRoute, async (c) => {
    const { platform, codebase, limit } = c.req.valid('query')
    const codebases = await store.codebases.list(host)
    const named = codebases.find(({ name }) => name === codebase)
    if (codebase !== undefined && named === undefined) {
      throw new AppError('not-found', `unknown codebase ${JSON.stringify(codebase)}`)
    }
    const recent = await store.conversations.recent({
      limit,
      ...(platform !== undefined && { platform }),
      ...(named !== undefined && { codebaseId: named.id }),
    })
    const names = new Map(codebases.map(({ id, name }) => [String(id), name]))
    return c.json(
      recent.map((one) => conversationJson(one, names)),
      200,
    )
  })
  app.openapi(beginRoute, (c) => c.json({ conversationId: ids() }, 201))
}

const conversationJson = (one: Conversation, names: ReadonlyMap<string, string>) => ({
  platform: one.platform,
  conversationId: one.conversationId,
  codebase: one.codebaseId === undefined ? null : (names.get(one.codebaseId) ?? null),
  environment: one.environmentId ?? null,
  agent: one.agent ?? null,
  lastActivityAt: new Date(one.lastActivityAt).toISOString(),
  closedAt: one.closedAt === undefined ? null : new Date(one.closedAt).toISOString(),
  createdAt: new Date(one.createdAt).toISOString(),
})
