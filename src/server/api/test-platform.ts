import { createRoute, z } from '@hono/zod-openapi'
import { conversationHistory } from '../../platforms/history.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { body, failures, json } from '../routes.ts'
import { acceptedAnswer, conversationId, incoming, time } from '../schemas.ts'
import { receive, receiveClosed } from './receive.ts'

const messageRoute = createRoute({
  method: 'post',
  path: '/test/message',
  summary: 'Send a message on the test platform',
  request: { body: body(z.strictObject({ conversationId, ...incoming })) },
  responses: { 202: json('Accepted, or already known', acceptedAnswer), ...failures },
})

const closeRoute = createRoute({
  method: 'post',
  path: '/test/close',
  summary: 'Close a conversation on the test platform',
  request: { body: body(z.strictObject({ conversationId })) },
  responses: { 202: json('Accepted', acceptedAnswer), ...failures },
})

const listRoute = createRoute({
  method: 'get',
  path: '/test/messages/{conversationId}',
  summary: "List a conversation's messages, oldest first",
  request: { params: z.object({ conversationId }) },
  responses: {
    200: json(
      'The messages',
      z.array(z.object({ role: z.enum(['user', 'agent', 'system']), text: z.string(), at: time })),
    ),
    ...failures,
  },
})

export const addTestPlatform = (app: App, deps: ServerDeps): void => {
  app.openapi(messageRoute, async (c) => {
    const received = c.req.valid('json')
    const accepted = await receive(deps, 'test', received, c.get('authenticated'))
    return c.json({ conversationId: received.conversationId, ...accepted }, 202)
  })
  app.openapi(closeRoute, async (c) => {
    const { conversationId } = c.req.valid('json')
    const accepted = await receiveClosed(deps, 'test', conversationId, c.get('authenticated'))
    return c.json({ conversationId, ...accepted }, 202)
  })
  app.openapi(listRoute, async (c) => {
    const { conversationId } = c.req.valid('param')
    const key = { platform: 'test', conversationId }
    const history = await conversationHistory(deps.context.isolation.store, key, { delivered: true })
    return c.json(
      history.map(({ role, text, at }) => ({ role, text, at: new Date(at).toISOString() })),
      200,
    )
  })
}
