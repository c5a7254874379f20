import { createRoute, z } from '@hono/zod-openapi'
import { environmentJson, factsJson } from '../../commands/views/json.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import { listWithFacts } from '../../isolation/facts.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { failures, json, missing, refused } from '../routes.ts'
import { codebaseName, environmentAnswer, flag, line, listedAnswer } from '../schemas.ts'
import { environmentAndCodebase, removeEnvironment } from './remove-environment.ts'
import { restoreEnvironment } from './restore-environment.ts'

const listRoute = createRoute({
  method: 'get',
  path: '/api/environments',
  summary: 'List live environments',
  description: 'With `codebase`, includes their git status; without it, only what is recorded.',
  request: { query: z.strictObject({ codebase: codebaseName.optional() }) },
  responses: { 200: json('The environments', z.array(listedAnswer)), ...failures, ...missing },
})

const id = z.object({ id: line(100) })

const getRoute = createRoute({
  method: 'get',
  path: '/api/environments/{id}',
  summary: 'Get an environment, as recorded',
  security: [{ token: [] }, { cookie: [] }, { run: [] }],
  request: { params: id },
  responses: { 200: json('The environment', environmentAnswer), ...failures, ...missing },
})

const removeRoute = createRoute({
  method: 'delete',
  path: '/api/environments/{id}',
  summary: 'Remove an environment if that is safe',
  request: { params: id, query: z.strictObject({ force: flag }) },
  responses: {
    200: json(
      'Removed, or no longer tracked if it was adopted',
      z.object({
        environment: environmentAnswer,
        restorePoint: z.string().nullable(),
        branchDeleted: z.boolean(),
        leftOut: z.array(z.object({ path: z.string(), reason: z.string() })),
        notices: z.array(z.string()),
      }),
    ),
    ...failures,
    ...missing,
    ...refused,
  },
})

const restoreRoute = createRoute({
  method: 'post',
  path: '/api/environments/{id}/restore',
  summary: 'Restore a removed environment',
  request: { params: id },
  responses: {
    200: json('The environment', environmentAnswer.extend({ notices: z.array(z.string()) })),
    ...failures,
    ...missing,
    ...refused,
  },
})

export const addEnvironments = (app: App, deps: ServerDeps): void => {
  const { isolation } = deps.context
  const { store, host } = isolation
  app.openapi(listRoute, async (c) => {
    const { codebase: name } = c.req.valid('query')
    if (name !== undefined) {
      const codebase = await resolveCodebase(isolation, { name, cwd: '/' })
      const facts = await listWithFacts(isolation, codebase)
      return c.json(
        facts.map((one) => ({ ...factsJson(one, () => codebase.name), conversations: [...one.conversations] })),
        200,
      )
    }
    const codebases = await store.codebases.list(host)
    const names = new Map(codebases.map(({ id, name }) => [String(id), name]))
    const live = await Promise.all(codebases.map(({ id }) => store.environments.live(id)))
    return c.json(
      live.flat().map((one) => environmentJson(one, (id) => names.get(id) ?? '')),
      200,
    )
  })
  app.openapi(getRoute, async (c) => {
    const { environment, codebase } = await environmentAndCodebase(isolation, c.req.valid('param').id)
    return c.json(
      environmentJson(environment, () => codebase.name),
      200,
    )
  })
  app.openapi(removeRoute, async (c) => {
    const outcome = await removeEnvironment(deps, c.req.valid('param').id, c.req.valid('query').force)
    if (!outcome.removed) return c.json(outcome.refusal, 409)
    return c.json(outcome.answer, 200)
  })
  app.openapi(restoreRoute, async (c) => c.json(await restoreEnvironment(deps, c.req.valid('param').id), 200))
}
