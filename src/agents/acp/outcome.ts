import type { StopReason } from '@agentclientprotocol/sdk'
import type { AgentResult, AgentUsage } from '../agent.ts'
import type { ReplyText } from '../reply.ts'
import { exitText } from '../texts.ts'

/** How the turn ended, as seen by the client. */
export type TurnEnd =
  | { readonly kind: 'done'; readonly usage: AgentUsage | undefined }
  | { readonly kind: 'stopped'; readonly reason: Exclude<StopReason, 'end_turn'> }
  | { readonly kind: 'logged-out' }
  | { readonly kind: 'stalled'; readonly minutes: number }
  | { readonly kind: 'protocol'; readonly version: number }
  /** An error response, or invalid protocol data. */
  | { readonly kind: 'error'; readonly message: string }
  /** The connection closed before the agent answered. */
  | { readonly kind: 'gone' }

type Ended =
  | { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null; readonly stderr: string }
  | undefined

type AgentCommand = { readonly name: string; readonly command: readonly string[] }

/** Describes what happened and what to do. */
export const failureOf = (
  agent: AgentCommand,
  reply: ReplyText,
  turn: TurnEnd | undefined,
  ended: Ended,
): AgentResult => {
  const { name, command } = agent
  const retry = 'Send the message again, or choose another agent (/agent).'
  switch (turn?.kind) {
    case 'stopped':
      return failed(reply, `The agent ${name} stopped: ${stopReasons[turn.reason]}`, retry)
    case 'logged-out':
      return failed(reply, `The agent ${name} is not logged in`, loginRemedy(agent))
    case 'stalled':
      return failed(reply, `The agent ${name} printed nothing for ${minutes(turn.minutes)} and was stopped`, retry)
    case 'protocol':
      return failed(
        reply,
        `The agent ${name} uses version ${turn.version} of the Agent Client Protocol, but Coppice supports only version 1`,
        `Update ${command[0] ?? name} or Coppice.`,
      )
    case 'error':
      return failed(reply, `The agent ${name} failed: ${oneLine(turn.message)}`, retry)
    case 'gone':
    case 'done':
    case undefined:
      return failed(reply, `The agent ${name} ${exitClause(ended)}${stderrClause(ended)}`, remedyFor(agent, ended))
  }
}

export const failed = (reply: ReplyText, problem: string, remedy: string): AgentResult => ({
  outcome: 'failed',
  text: reply.end(),
  problem: /[.!?…]$/.test(problem) ? problem : `${problem}.`,
  remedy,
})

export const loginRemedy = ({ name, command }: AgentCommand): string =>
  `Log in with \`${command[0] ?? name}\` in a terminal, as the user that Coppice runs as, or pass it a key with agent.acp.${name}.variables in config.yaml.`

const stopReasons: Record<Exclude<StopReason, 'end_turn'>, string> = {
  max_tokens: 'its model reached the token limit',
  max_turn_requests: 'it reached its limit of model requests per turn',
  refusal: 'its model refused to continue',
  cancelled: 'it reported that it was cancelled',
}

const minutes = (count: number): string =>
  count < 1 ? `${Math.round(count * 60)} seconds` : count === 1 ? 'a minute' : `${Math.round(count)} minutes`

const exitClause = (ended: Ended): string => {
  return `${ended === undefined ? 'was stopped' : exitText(ended)} before it answered`
}

const stderrClause = (ended: Ended): string => {
  const lines = (ended?.stderr ?? '')
    .replaceAll('\0', '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(-3)
    .join(' · ')
  return lines === '' ? '' : `: ${oneLine(lines)}`
}

/** Shells exit with 127 if a command isn't found, 126 if it isn't executable. */
const remedyFor = ({ name, command }: AgentCommand, ended: Ended): string =>
  ended?.exitCode === 127 || ended?.exitCode === 126
    ? `Check that agent.acp.${name}.command in config.yaml is an executable on the server's PATH.`
    : `Run \`${command.join(' ')}\` yourself to see what fails, or choose another agent (/agent).`

const MAX_LENGTH = 500

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return (line.length > MAX_LENGTH ? `…${line.slice(-MAX_LENGTH)}` : line).replace(/\.$/, '')
}
