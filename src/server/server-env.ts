import type { HttpBindings } from '@hono/node-server'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Run } from '../runs/tokens.ts'

/** How a client authenticated. */
export type Authenticated = { readonly by: 'bearer' } | { readonly by: 'cookie'; readonly session: string }

export type ServerEnv = {
  Bindings: HttpBindings
  Variables: { authenticated: Authenticated | undefined; run: Run | undefined }
}

export type App = OpenAPIHono<ServerEnv>
