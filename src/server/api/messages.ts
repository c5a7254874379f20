import { createRoute, z } from '@hono/zod-openapi'
import { conversationHistory, historyLimit } from '../../platforms/history.ts'
import type { LeftProcess } from '../../process/marked-processes.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { body, failures, json } from '../routes.ts'
import {
  acceptedAnswer,
  conversationId,
  incoming,
  line,
  ownPlatform,
  platformName,
  userText,
  time,
} from '../schemas.ts'
import { receive, receiveClosed } from './receive.ts'

const params = z.object({ id: conversationId })
const own = z.strictObject({ platform: ownPlatform })
const any = z.strictObject({ platform: platformName.default('web') })

const postRoute = createRoute({
  method: 'post',
  path: '/api/conversations/{id}/messages',
  summary: 'Send a message to a conversation',
  description:
    'Responds once the message is stored durably. The reply comes later, as an event and in the list of messages.',
  request: {
    params,
    query: own,
    body: body(
      z
        .strictObject({ ...incoming, agent: line(50).optional(), context: userText.optional() })
        .refine(({ move, codebase }) => move !== true || codebase !== undefined, {
          message: 'requires `codebase`',
          path: ['move'],
        }),
    ),
  },
  responses: { 202: json('Accepted, or already known', acceptedAnswer), ...failures },
})

const listRoute = createRoute({
  method: 'get',
  path: '/api/conversations/{id}/messages',
  summary: "List a conversation's messages, oldest first",
  security: [{ token: [] }, { cookie: [] }, { run: [] }],
  request: {
    params,
    query: any.extend({ limit: z.coerce.number().int().min(1).max(historyLimit).default(historyLimit) }),
  },
  responses: {
    200: json(
      'The messages',
      z.array(
        z.object({
          id: z.string(),
          role: z.enum(['user', 'agent', 'system']),
          text: z.string(),
          at: time,
          state: z.enum(['waiting', 'running', 'done', 'sent', 'failed']),
          about: z.string().optional().openapi({ description: 'The message that this one answers' }),
        }),
      ),
    ),
    ...failures,
  },
})

const closeRoute = createRoute({
  method: 'post',
  path: '/api/conversations/{id}/close',
  summary: 'Close a conversation: ends its session, and removes its environment if unused and safe to remove',
  request: { params, query: own },
  responses: { 202: json('Accepted', acceptedAnswer), ...failures },
})

const leftProcesses = z
  .array(z.object({ pid: z.number().int(), command: z.string() }))
  .openapi({ description: 'Processes that are still running' })
const unnamed = z.boolean().optional().openapi({
  description: 'True if something without a known process ID is still running, such as a process that keeps forking',
})
const leftovers = z.object({ own: leftProcesses, unknown: leftProcesses, unnamed })
const scripts = z
  .object({ ended: z.number().int(), running: leftProcesses, unnamed })
  .openapi({ description: "What the repository's setup or teardown left running for the worktree" })

const stopRoute = createRoute({
  method: 'post',
  path: '/api/conversations/{id}/stop',
  summary: "Stop a conversation's agent and whatever earlier runs left running",
  request: { params, query: any },
  responses: {
    200: json('Result', z.object({ outcome: z.enum(['stopped', 'nothing-running']), left: leftovers, scripts })),
    ...failures,
  },
})

export const addMessages = (app: App, deps: ServerDeps): void => {
  const { store } = deps.context.isolation
  app.openapi(postRoute, async (c) => {
    const { id } = c.req.valid('param')
    const received = { conversationId: id, ...c.req.valid('json') }
    const accepted = await receive(deps, c.req.valid('query').platform, received, c.get('authenticated'))
    return c.json({ conversationId: id, ...accepted }, 202)
  })
  app.openapi(listRoute, async (c) => {
    const { platform, limit } = c.req.valid('query')
    const history = await conversationHistory(store, { platform, conversationId: c.req.valid('param').id }, { limit })
    return c.json(
      history.map((one) => ({ ...one, at: new Date(one.at).toISOString() })),
      200,
    )
  })
  app.openapi(closeRoute, async (c) => {
    const { id } = c.req.valid('param')
    const accepted = await receiveClosed(deps, c.req.valid('query').platform, id, c.get('authenticated'))
    return c.json({ conversationId: id, ...accepted }, 202)
  })
  app.openapi(stopRoute, async (c) => {
    const { platform } = c.req.valid('query')
    const stopped = await deps.conversations.stopRun({ platform, conversationId: c.req.valid('param').id })
    const { outcome, left, scripts: of } = stopped
    const shown = ({ pid, command }: LeftProcess) => ({ pid, command })
    const answer = {
      outcome,
      left: { ...left, own: left.own.map(shown), unknown: left.unknown.map(shown) },
      scripts: { ...of, running: of.running.map(shown) },
    }
    return c.json(answer, 200)
  })
}
