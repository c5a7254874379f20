import type { z } from '@hono/zod-openapi'
import type { MessageDetails } from '../../domain/message.ts'
import type { IsolationHints } from '../../domain/hints.ts'
import { localDeliveryId } from '../../platforms/local.ts'
import type { Accepted } from '../../platforms/platform.ts'
import type { LocalPlatformName } from '../../platforms/registry.ts'
import type { ServerDeps } from '../deps.ts'
import { HttpError } from '../errors.ts'
import type { hints as hintsSchema } from '../schemas.ts'
import type { Authenticated } from '../server-env.ts'

export type Received = {
  readonly conversationId: string
  readonly message: string
  readonly codebase?: string | undefined
  readonly move?: boolean | undefined
  readonly hints?: z.output<typeof hintsSchema> | undefined
  readonly deliveryId?: string | undefined
  readonly agent?: string | undefined
  readonly context?: string | undefined
}

/** Passes a message to its platform. It is durable when this resolves. */
export const receive = async (
  deps: ServerDeps,
  platform: LocalPlatformName,
  received: Received,
  authenticated: Authenticated | undefined,
): Promise<Accepted> => {
  const { conversationId, message, deliveryId } = received
  assertAgent(deps, received.agent)
  const delivery = {
    conversationId,
    deliveryId: localDeliveryId(conversationId, deliveryId ?? deps.context.isolation.ids()),
    kind: 'message',
    text: message,
    details: detailsOf(received),
  } as const
  return platformOf(deps, platform).receive(delivery, authenticated)
}

export const receiveClosed = async (
  deps: ServerDeps,
  platform: LocalPlatformName,
  conversationId: string,
  authenticated: Authenticated | undefined,
): Promise<Accepted> => {
  const deliveryId = localDeliveryId(conversationId, deps.context.isolation.ids())
  return platformOf(deps, platform).close({ conversationId, deliveryId, details: {} }, authenticated)
}

const platformOf = ({ platforms }: ServerDeps, name: LocalPlatformName) => {
  const platform = platforms.get(name)
  if (platform === undefined) throw new HttpError(404, 'not-found', `the platform ${name} is off`)
  return platform
}

const assertAgent = ({ context: { agents } }: ServerDeps, agent: string | undefined): void => {
  if (agent === undefined || agents.has(agent)) return
  throw new HttpError(400, 'invalid', `agent: unknown agent ${JSON.stringify(agent)}`, {
    remedy: `available agents: ${[...agents.keys()].join(', ')}`,
  })
}

const detailsOf = ({ codebase, move, hints, agent, context }: Received): MessageDetails => ({
  ...(codebase !== undefined && { codebase }),
  ...(move === true && { move }),
  ...(hints !== undefined && { hints: defined(hints) }),
  ...(agent !== undefined && { agent }),
  ...(context !== undefined && { context }),
})

/** Drops undefined values. */
const defined = (hints: z.output<typeof hintsSchema>): IsolationHints =>
  Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== undefined))
