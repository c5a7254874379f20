/*
 * The HTTP server. In: requests with the token, a run's token or a session's cookie, and signed webhooks. Out: JSON,
 * the page, and server-sent events.
 */
import { createRoute, z } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { toAppError } from '../domain/errors.ts'
import { addCleanup } from './api/cleanup.ts'
import { addCodebases } from './api/codebases.ts'
import { addConversations } from './api/conversations.ts'
import { addEnvironments } from './api/environments.ts'
import { addLandings } from './api/landings.ts'
import { addMessages } from './api/messages.ts'
import { addPlatforms } from './api/platforms.ts'
import { addRun } from './api/run.ts'
import { addSession } from './api/session.ts'
import { addStatus } from './api/status.ts'
import { addTestPlatform } from './api/test-platform.ts'
import { addWake } from './api/wake.ts'
import { type Authenticate, createAuthenticate } from './auth.ts'
import type { ServerDeps } from './deps.ts'
import type { App, ServerEnv } from './server-env.ts'
import { errorHandler, HttpError } from './errors.ts'
import { createEventFeed } from './event-feed.ts'
import { addEvents } from './events.ts'
import { securityHeaders } from './headers.ts'
import { addHealth } from './health.ts'
import { createHostCheck } from './host-check.ts'
import { clientOf, createBucket, defaultLimits } from './limits.ts'
import { addMetrics } from './api/metrics.ts'
import { addPage } from './page.ts'
import { redactResponses } from './redact-responses.ts'
import { failures, newApp } from './routes.ts'
import { isRunAllowed, runOf } from './run-access.ts'
import { createSessions } from './sessions.ts'
import { createUploads, type Uploads } from './uploads.ts'
import { addWebhooks, isWebhook } from './webhooks.ts'

/** All routes behind all guards: a route added here is guarded automatically. */
export const createApp = (deps: ServerDeps): App => {
  const { log, clock, store } = deps.context.isolation
  const sessions = createSessions(store.pageSessions, deps.token, clock)
  const app = newApp()
  app.onError(errorHandler(log, deps.redact))
  app.notFound((c) => {
    throw new HttpError(404, 'not-found', `unknown endpoint: ${c.req.method} ${c.req.path.slice(0, 200)}`, {
      remedy: 'see GET /api/openapi.json for all endpoints',
    })
  })
  app.use(securityHeaders)
  app.use(redactResponses(deps.context.isolation.secrets))
  app.use(guard(deps, createAuthenticate(deps.token, sessions)))
  const limits = { ...defaultLimits, ...deps.limits }
  const uploads = createUploads(limits.uploads, clock)
  app.use(receiveBody(uploads, limits.bodyBytes))
  addPage(app)
  addHealth(app, deps)
  addMetrics(app, deps)
  addSession(app, sessions)
  addStatus(app, deps)
  addRun(app, deps)
  addCodebases(app, deps)
  addEnvironments(app, deps)
  addConversations(app, deps)
  addMessages(app, deps)
  addPlatforms(app, deps)
  addCleanup(app, deps)
  addLandings(app, deps)
  const feed = createEventFeed(store)
  addWake(app, deps, feed)
  addEvents(app, deps, sessions, feed)
  if (deps.platforms.has('test')) addTestPlatform(app, deps)
  addWebhooks(app, deps, uploads)
  addDocument(app, deps)
  return app
}

/** Everything else requires the token. */
const open = new Set(['GET /', 'HEAD /', 'GET /healthz', 'HEAD /healthz'])
/** Answering costs no more than refusing, and a monitor may share an address with a flood. */
const unlimited = new Set(['GET /healthz', 'HEAD /healthz'])
const changesNothing = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Checks Host, Origin, token and rate limit. */
const guard = (deps: ServerDeps, authenticate: Authenticate): MiddlewareHandler<ServerEnv> => {
  const { clock } = deps.context.isolation
  const limits = { ...defaultLimits, ...deps.limits }
  const buckets = {
    refused: createBucket(limits.refused, clock),
    open: createBucket(limits.open, clock),
    webhooks: createBucket(limits.webhooks, clock),
    authenticated: createBucket(limits.authenticated, clock),
    run: createBucket(limits.run, clock),
  }
  const hosts = createHostCheck(deps.allowedHosts ?? [])
  return async (c, next) => {
    // A webhook may arrive through a tunnel under any name; its signature authenticates it.
    const webhook = c.req.method === 'POST' && isWebhook(c.req.path)
    if (!webhook) hosts.host(c)
    const changes = !changesNothing.has(c.req.method)
    if (changes) hosts.origin(c)
    const client = clientOf(c.env.incoming.socket.remoteAddress)
    const route = `${c.req.method} ${c.req.path}`
    const run = webhook || open.has(route) ? undefined : runOf(c, deps.context.runTokens)
    const authenticated = run === undefined ? await authenticate(c) : undefined
    // A browser sends the cookie for any page, so the request must prove that it comes from ours.
    if (authenticated?.by === 'cookie') hosts.origin(c, { required: changes })
    if (run !== undefined) {
      buckets.run.take(run.messageId)
      if (!isRunAllowed(run, c.req)) throw notForRuns()
    } else if (authenticated !== undefined) buckets.authenticated.take(client)
    else if (webhook) buckets.webhooks.take(client)
    else if (open.has(route)) {
      if (!unlimited.has(route)) buckets.open.take(client)
    } else {
      buckets.refused.take(client)
      throw new HttpError(401, 'unauthorized', 'the token is missing or wrong', {
        // Not written as the header itself: redaction would hide it from the response.
        remedy:
          'send the header `Authorization` with `Bearer <token>`; the token is in the file `token` in the home directory',
        headers: { 'WWW-Authenticate': 'Bearer' },
      })
    }
    c.set('authenticated', authenticated)
    c.set('run', run)
    // The framework handles only Errors; anything else thrown would bypass every handler.
    await next().catch((thrown: unknown) => {
      throw thrown instanceof Error ? thrown : toAppError(thrown)
    })
  }
}

/** Reads the body before any handler does. A webhook reads its own, once it knows the platform exists. */
const receiveBody =
  (uploads: Uploads, most: number): MiddlewareHandler<ServerEnv> =>
  async (c, next) => {
    if (changesNothing.has(c.req.method) || isWebhook(c.req.path)) return next()
    const { incoming } = c.env
    const client = clientOf(incoming.socket.remoteAddress)
    return uploads.withBody(incoming, { most, client }, (body) => {
      // The adaptor reads it from here. A new `Request` with this body took longer than everything else together.
      Object.assign(incoming, { rawBody: body })
      return next()
    })
  }

const notForRuns = (): HttpError =>
  new HttpError(403, 'forbidden', "a run's token doesn't allow this", {
    remedy: 'it can only read GET /api/run, its own environment and the messages of its own conversation',
  })

const documentRoute = createRoute({
  method: 'get',
  path: '/api/openapi.json',
  summary: 'Get this API description',
  responses: {
    200: { description: 'OpenAPI 3.1', content: { 'application/json': { schema: z.record(z.string(), z.unknown()) } } },
    ...failures,
  },
})

const addDocument = (app: App, { version }: ServerDeps): void => {
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' })
  app.openAPIRegistry.registerComponent('securitySchemes', 'cookie', {
    type: 'apiKey',
    in: 'cookie',
    name: 'coppice-<port>',
    description: "Issued by POST /api/session; its name ends with the server's port.",
  })
  app.openAPIRegistry.registerComponent('securitySchemes', 'run', {
    type: 'http',
    scheme: 'bearer',
    description: 'The token of one agent run, in COPPICE_RUN_TOKEN. It can only read what belongs to the run.',
  })
  app.openAPIRegistry.registerPath(documentRoute)
  let document: string | undefined
  app.get(documentRoute.path, (c) => {
    document ??= JSON.stringify(
      app.getOpenAPI31Document({
        openapi: '3.1.0',
        info: { title: 'Coppice', version, description: 'An isolated git worktree for every piece of work.' },
        security: [{ token: [] }, { cookie: [] }],
      }),
    )
    return c.body(document, 200, { 'Content-Type': 'application/json' })
  })
}
