import { setTimeout as delay } from 'node:timers/promises'
import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { DoneRefusal } from '../domain/fleet/done-refusal.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { livenessSeenBy } from '../process/identity.ts'
import type { FleetContext } from './context.ts'

/** The agent that a command claims to belong to, from its session's variables. */
export type AgentCaller = { readonly agent: string | undefined; readonly spawn: string | undefined }

export type NotTheAgent = { readonly why: Extract<DoneRefusal, { kind: 'no-agent' | 'other-life' }> }

export const callerIn = (env: Readonly<Record<string, string | undefined>> = {}): AgentCaller => ({
  agent: env['COPPICE_AGENT'],
  spawn: env['COPPICE_SPAWN'],
})

/** Whether this process is a command in the agent's own session. */
export const isInside = (
  { ownEnvironment = {} }: Pick<FleetContext['isolation'], 'ownEnvironment'>,
  { spawn }: Pick<FleetAgent, 'spawn'>,
): boolean => callerIn(ownEnvironment).spawn === spawn

/** The agent that runs this command, if the command belongs to its current session. */
export const currentAgent = async (
  { store, host }: Pick<FleetContext['isolation'], 'store' | 'host'>,
  { agent: name, spawn }: AgentCaller,
): Promise<{ readonly agent: FleetAgent; readonly codebase: Codebase } | NotTheAgent> => {
  if (name === undefined || spawn === undefined) return { why: { kind: 'no-agent' } }
  const agent = await store.fleetAgents.byName(host, name)
  if (agent === undefined || agent.spawn !== spawn) return { why: { kind: 'other-life', agent: name } }
  const codebase = await store.codebases.get(agent.codebaseId)
  if (codebase !== undefined) return { agent, codebase }
  throw new AppError('not-found', `the repository of ${agent.name} is no longer registered`)
}

/** Whether this command belongs to the current session of the fleet's supervisor. */
export const isSupervisor = async (
  isolation: Pick<FleetContext['isolation'], 'store' | 'host' | 'settings'>,
  caller: AgentCaller,
): Promise<boolean> => {
  const found = await currentAgent(isolation, caller)
  return !('why' in found) && found.agent.kind === 'crew' && found.agent.name === isolation.settings.supervisor
}

/**
 * Waits while the agent is `spawning`: a fast program may run before its start is recorded and its environment leased.
 * Throws if the process that starts it has died.
 */
export const startedAgent = async (
  isolation: Pick<FleetContext['isolation'], 'store' | 'host' | 'self'>,
  caller: AgentCaller,
  signal?: AbortSignal,
): ReturnType<typeof currentAgent> => {
  for (;;) {
    const found = await currentAgent(isolation, caller)
    if ('why' in found || found.agent.state !== 'spawning') return found
    const { name, holder } = found.agent
    if (livenessSeenBy(isolation.self, holder) === 'dead') {
      throw new AppError('busy', `the start of ${name} was interrupted`, {
        remedy: remedy`complete or undo it: ${coppice('fleet up')}`,
      })
    }
    signal?.throwIfAborted()
    await delay(20)
  }
}
