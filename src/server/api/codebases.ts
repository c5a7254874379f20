import { isAbsolute } from 'node:path'
import { createRoute, z } from '@hono/zod-openapi'
import { codebaseJson } from '../../commands/views/json.ts'
import { addCodebase } from '../../isolation/codebases/codebases.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import { body, failures, json, refused } from '../routes.ts'
import { codebaseAnswer, codebaseName, line } from '../schemas.ts'

const listRoute = createRoute({
  method: 'get',
  path: '/api/codebases',
  summary: 'List registered codebases',
  responses: {
    200: json('The codebases', z.array(codebaseAnswer.extend({ environments: z.number() }))),
    ...failures,
  },
})

/** The server's working directory means nothing to clients, so paths must be absolute. */
const location = line(4_000)
  .refine(
    (text) => isAbsolute(text) || /^[a-z][a-z0-9+.-]*:|^[^/][^/@]*@[^/]+:/i.test(text),
    'must be an absolute path or a URL',
  )
  .openapi({ description: "An absolute path on the server's host, or a URL to clone" })

const addRoute = createRoute({
  method: 'post',
  path: '/api/codebases',
  summary: 'Register a repository',
  request: { body: body(z.strictObject({ location, name: codebaseName.optional(), github: line(140).optional() })) },
  responses: {
    200: json('Already registered', codebaseAnswer),
    201: json('Registered', codebaseAnswer),
    ...failures,
    ...refused,
  },
})

export const addCodebases = (app: App, { context: { isolation, changes } }: ServerDeps): void => {
  const { store, host } = isolation
  app.openapi(listRoute, async (c) => {
    const codebases = await store.codebases.list(host)
    const answer = codebases.map(async (codebase) => ({
      ...codebaseJson(codebase),
      environments: (await store.environments.live(codebase.id)).length,
    }))
    return c.json(await Promise.all(answer), 200)
  })
  app.openapi(addRoute, async (c) => {
    const { location, name, github } = c.req.valid('json')
    const { codebase, isNew } = await addCodebase(isolation, location, '/', {
      ...(name !== undefined && { name }),
      ...(github !== undefined && { github }),
    })
    if (!isNew) return c.json(codebaseJson(codebase), 200)
    changes.emit({ type: 'codebase', id: codebase.id, name: codebase.name })
    return c.json(codebaseJson(codebase), 201)
  })
}
