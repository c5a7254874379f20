import { createRoute, z } from '@hono/zod-openapi'
import { listLandings } from '../../commands/fleet/landings.ts'
import { refusalObject } from '../../commands/views/fleet-refusals.ts'
import { explainLand, landingJson } from '../../commands/views/landings.ts'
import { AppError } from '../../domain/errors.ts'
import { landingStates } from '../../domain/fleet/landing.ts'
import { itemNumbered } from '../../fleet/items/add.ts'
import { land } from '../../fleet/landing/land.ts'
import { resolveCodebase } from '../../isolation/codebases/codebases.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { body, failures, json, missing, refused } from '../routes.ts'
import { codebaseName, line } from '../schemas.ts'

const landingAnswer = z
  .object({
    id: z.number(),
    codebase: z.string(),
    item: z.number().nullable(),
    branch: z.string(),
    sha: z.string(),
    state: z.enum(landingStates),
    landedSha: z.string().nullable(),
    attempts: z.number(),
    gate: z.object({ command: z.string(), exitCode: z.number().nullable(), log: z.string() }).nullable(),
    reason: z.string().nullable(),
  })
  .openapi('Landing')

const listRoute = createRoute({
  method: 'get',
  path: '/api/landings',
  summary: 'List the landing queue and what landed last',
  request: { query: z.object({ codebase: codebaseName.optional() }) },
  responses: { 200: json('The landings', z.array(landingAnswer)), ...failures, ...missing },
})

const landRoute = createRoute({
  method: 'post',
  path: '/api/landings',
  summary: 'Queue an item or a branch for its base branch',
  request: {
    body: body(
      z.union([
        z.strictObject({ item: z.number().int().min(1) }),
        z.strictObject({ branch: line(250), codebase: codebaseName }),
      ]),
    ),
  },
  responses: { 202: json('Queued', landingAnswer), ...failures, ...missing, ...refused },
})

export const addLandings = (app: App, { context, wake }: ServerDeps): void => {
  const { isolation } = context
  const { store } = isolation
  app.openapi(listRoute, async (c) => {
    const { codebase: name } = c.req.valid('query')
    const codebaseId = name === undefined ? undefined : (await resolveCodebase(isolation, { name, cwd: '/' })).id
    const listed = await listLandings(isolation, { codebaseId, all: false })
    return c.json(
      listed.map(({ landing, codebase }) => landingJson(landing, codebase)),
      200,
    )
  })
  app.openapi(landRoute, async (c) => {
    const wanted = c.req.valid('json')
    const item = 'item' in wanted ? await itemNumbered(store, wanted.item) : undefined
    const codebase =
      'codebase' in wanted
        ? await resolveCodebase(isolation, { name: wanted.codebase, cwd: '/' })
        : item && (await store.codebases.get(item.codebaseId))
    if (codebase === undefined) throw new AppError('not-found', "the item's repository isn't registered")
    const what = item === undefined ? { branch: 'branch' in wanted ? wanted.branch : '' } : { item }
    const outcome = await land(await context.fleet(), codebase, { what, by: 'api' })
    if (outcome.outcome === 'refused') {
      const { why } = outcome
      const explained = { ...explainLand(why, item?.id, codebase.name), kind: why.kind }
      const { error } = refusalObject("can't land", [explained])
      return c.json({ error: { ...error, reasons: [...error.reasons], remedies: [...error.remedies] } }, 409)
    }
    wake()
    return c.json(landingJson(outcome.landing, codebase.name), 202)
  })
}
