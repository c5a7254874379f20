import { createHash } from 'node:crypto'
import { createRoute, z } from '@hono/zod-openapi'
import type { App } from './server-env.ts'

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem}code,pre{background:#8882;padding:.1em .3em}pre{padding:1em;overflow:auto}'

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Coppice</title>
<style>${style}</style>
<h1>Coppice</h1>
<p>This is a Coppice server: every piece of coding-agent work gets its own isolated git worktree.</p>
<p>Send it a message from a terminal on this machine:</p>
<pre>coppice chat "fix the login bug"</pre>
<p>or over HTTP, with the token in the file <code>token</code> in its home directory:</p>
<pre>curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"message":"/help"}' $URL/api/conversations/first/messages</pre>
<p>The API is described at <code>/api/openapi.json</code>.</p>
</html>
`

const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`

const route = createRoute({
  method: 'get',
  path: '/',
  summary: 'Describe this server on an HTML page',
  security: [],
  responses: { 200: { description: 'The page', content: { 'text/html': { schema: z.string() } } } },
})

export const addPage = (app: App): void => {
  app.openapi(route, (c) => c.html(page, 200, { 'Content-Security-Policy': policy }))
}
