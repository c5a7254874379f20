import { OpenAPIHono, type z } from '@hono/zod-openapi'
import type { ZodError, ZodType } from 'zod'
import type { App, ServerEnv } from './server-env.ts'
import { HttpError } from './errors.ts'
import { errorBody } from './schemas.ts'

/** An app that answers invalid input with what is wrong. */
export const newApp = (): App =>
  new OpenAPIHono<ServerEnv>({
    defaultHook: (result) => {
      if (!result.success) throw new HttpError(400, 'invalid', problemsOf(result.error, result.target))
    },
  })

/** Only the first few, so that a thousand wrong keys don't all come back. */
const MAX_PROBLEMS = 5

const problemsOf = ({ issues }: ZodError, target: string): string => {
  const problems = issues.slice(0, MAX_PROBLEMS).map((issue) => {
    const place = issue.path.length === 0 ? (target === 'json' ? 'the body' : target) : issue.path.map(String).join('.')
    if (issue.code !== 'unrecognized_keys') return `${place}: ${issue.message}`
    const keys = issue.keys.slice(0, MAX_PROBLEMS).map((key) => JSON.stringify(key.slice(0, 80)))
    return `${place}: unknown key ${keys.join(', ')}`
  })
  return problems.join('; ')
}

/** For a route's description. */
export const json = <T extends ZodType>(description: string, schema: T) => ({
  description,
  content: { 'application/json': { schema } },
})

export const body = <T extends z.ZodType>(schema: T) => ({
  required: true,
  content: { 'application/json': { schema } },
})

/** Responses of every route that requires the token. */
export const failures = {
  400: json('Invalid request; see `message`', errorBody),
  401: json('The token is missing or wrong', errorBody),
  403: json('Host name or origin not allowed', errorBody),
  429: json('Too many requests; see `Retry-After`', errorBody),
}

export const missing = { 404: json('Not found', errorBody) }
export const refused = { 409: json('Refused; see `reasons` and `remedies`', errorBody) }
