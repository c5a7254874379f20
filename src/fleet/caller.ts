import type { Codebase } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { FleetAgent } from '../domain/fleet/agent.ts'
import type { DoneRefusal } from '../domain/fleet/done-refusal.ts'
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
