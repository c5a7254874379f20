/*
 * Agents that use the Agent Client Protocol. In: a request, and the command from the settings. Out: the agent's updates
 * as events. The files and terminals that it asks for stay inside the worktree.
 */
import type { AcpAgentOptions } from './options.ts'
import { findProgram } from '../../process/find-program.ts'
import type { Agent, AgentAvailability } from '../agent.ts'

/**
 * Any program that speaks the Agent Client Protocol over stdio. The SDK is loaded only when an agent runs: most
 * commands just list the agents.
 */
export const createAcpAgent = (options: AcpAgentOptions): Agent => ({
  name: options.name,
  availability: async () => available(options),
  inspect: async () => {
    const found = available(options)
    return found.state === 'ready' ? (await import('./inspect.ts')).inspect(options) : found
  },
  run: async (request) => (await import('./run.ts')).runAcp(options, request),
})

/** Cheap, because it runs before the default agent is chosen. Login is checked when the agent runs. */
const available = ({ name, command, ownEnvironment }: AcpAgentOptions): AgentAvailability => {
  const [program = ''] = command
  if (findProgram(program, ownEnvironment['PATH']) !== undefined) return { state: 'ready', version: undefined }
  return {
    state: 'missing',
    problem: `${JSON.stringify(program)} not found on PATH`,
    remedy: `Install it, or fix agent.acp.${name}.command in config.yaml.`,
  }
}
