import type { StopReason } from '@agentclientprotocol/sdk'
import type { AgentResult, AgentUsage } from '../agent.ts'
import type { ReplyText } from '../reply.ts'
import { exitText } from '../texts.ts'

/** How the conversation with the program ended, seen from our side of it. */
export type Turn =
  | { readonly kind: 'done'; readonly usage: AgentUsage | undefined }
  | { readonly kind: 'stopped'; readonly reason: Exclude<StopReason, 'end_turn'> }
  | { readonly kind: 'logged-out' }
  | { readonly kind: 'stalled'; readonly minutes: number }
  | { readonly kind: 'protocol'; readonly version: number }
  /** It answered with an error, or what it sent was no protocol. */
  | { readonly kind: 'error'; readonly message: string }
  /** The connection ended before there was an answer. */
  | { readonly kind: 'gone' }

type Ended =
  | { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null; readonly stderr: string }
  | undefined

type Named = { readonly name: string; readonly command: readonly string[] }

/** One sentence of what happened and one of what to do. */
export const failureOf = (agent: Named, reply: ReplyText, turn: Turn | undefined, ended: Ended): AgentResult => {
  const { name, command } = agent
  const again = 'Send the message again, or choose another agent (/agent).'
  switch (turn?.kind) {
    case 'stopped':
      return failed(reply, `The agent ${name} stopped: ${stops[turn.reason]}`, again)
    case 'logged-out':
      return failed(reply, `The agent ${name} is not logged in`, loginRemedy(agent))
    case 'stalled':
      return failed(reply, `The agent ${name} printed nothing for ${minutes(turn.minutes)} and was stopped`, again)
    case 'protocol':
      return failed(
        reply,
        `The agent ${name} uses version ${turn.version} of the Agent Client Protocol, but Coppice supports only version 1`,
        `Update ${command[0] ?? name} or Coppice.`,
      )
    case 'error':
      return failed(reply, `The agent ${name} failed: ${oneLine(turn.message)}`, again)
    case 'gone':
    case 'done':
    case undefined:
      return failed(reply, `The agent ${name} ${endOf(ended)}${saidOf(ended)}`, remedyFor(agent, ended))
  }
}

export const failed = (reply: ReplyText, problem: string, remedy: string): AgentResult => ({
  outcome: 'failed',
  text: reply.end(),
  problem: /[.!?…]$/.test(problem) ? problem : `${problem}.`,
  remedy,
})

export const loginRemedy = ({ name, command }: Named): string =>
  `Log in with \`${command[0] ?? name}\` in a terminal, as the user that Coppice runs as, or pass it a key with agent.acp.${name}.variables in config.yaml.`

const stops: Record<Exclude<StopReason, 'end_turn'>, string> = {
  max_tokens: 'its model reached the token limit',
  max_turn_requests: 'it reached its limit of model requests per turn',
  refusal: 'its model refused to continue',
  cancelled: 'it reported that it was cancelled',
}

const minutes = (count: number): string =>
  count < 1 ? `${Math.round(count * 60)} seconds` : count === 1 ? 'a minute' : `${Math.round(count)} minutes`

const endOf = (ended: Ended): string => {
  return `${ended === undefined ? 'was stopped' : exitText(ended)} before it answered`
}

const saidOf = (ended: Ended): string => {
  const said = (ended?.stderr ?? '')
    .replaceAll('\0', '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(-3)
    .join(' · ')
  return said === '' ? '' : `: ${oneLine(said)}`
}

/** What a shell answers for a command that is not there (127) or may not be run (126). */
const remedyFor = ({ name, command }: Named, ended: Ended): string =>
  ended?.exitCode === 127 || ended?.exitCode === 126
    ? `Check that agent.acp.${name}.command in config.yaml is an executable on the server's PATH.`
    : `Run \`${command.join(' ')}\` yourself to see what fails, or choose another agent (/agent).`

const LONGEST = 500

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return (line.length > LONGEST ? `…${line.slice(-LONGEST)}` : line).replace(/\.$/, '')
}
