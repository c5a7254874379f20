import { createRoute, z } from '@hono/zod-openapi'
import { environmentJson } from '../../commands/views/json.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { HttpError } from '../errors.ts'
import { failures, json, missing } from '../routes.ts'
import { environmentAnswer } from '../schemas.ts'

const route = createRoute({
  method: 'get',
  path: '/api/run',
  summary: "Get the token's run",
  description:
    'For agents: each run gets a token (`COPPICE_RUN_TOKEN`) and the address of the server (`COPPICE_URL`) in its ' +
    'environment. The token reads the run, its environment and the messages of its conversation, and nothing else. ' +
    'It stops working when the run ends.',
  security: [{ run: [] }],
  responses: {
    200: json(
      'The run',
      z
        .object({
          message: z.string(),
          attempt: z.number(),
          conversation: z.object({ platform: z.string(), conversationId: z.string() }),
          codebase: z.string(),
          environment: environmentAnswer.nullable(),
          branch: z.string().nullable(),
          work: environmentAnswer.shape.work.nullable(),
        })
        .openapi('Run'),
    ),
    ...failures,
    ...missing,
  },
})

export const addRun = (app: App, { context }: ServerDeps): void => {
  const { store } = context.isolation
  app.openapi(route, async (c) => {
    const { run } = c.var
    if (run === undefined) {
      throw new HttpError(404, 'not-found', "this token doesn't belong to a run", {
        remedy: 'use the token in COPPICE_RUN_TOKEN, which every agent run gets',
      })
    }
    const { platform, conversationId, messageId, attempt, codebaseId, environmentId } = run
    const codebase = (await store.codebases.get(codebaseId))?.name ?? ''
    const environment = environmentId === undefined ? undefined : await store.environments.get(environmentId)
    return c.json(
      {
        message: messageId,
        attempt,
        conversation: { platform, conversationId },
        codebase,
        environment: environment === undefined ? null : environmentJson(environment, () => codebase),
        branch: environment?.branch ?? null,
        work: environment?.work ?? null,
      },
      200,
    )
  })
}
