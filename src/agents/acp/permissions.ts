import type {
  RequestPermissionOutcome,
  RequestPermissionRequest,
  ToolCallUpdate,
  ToolKind,
} from '@agentclientprotocol/sdk'
import type { Permissions } from '../../domain/config/agents.ts'
import { untilAborted } from '../../domain/until-aborted.ts'
import type { AgentRequest, AgentRules } from '../agent.ts'
import type { AgentAnswer, AgentQuestion } from '../question.ts'
import { resolveInside } from './confined-files.ts'

export type Policy = {
  readonly root: string
  readonly rules: AgentRules
  readonly permissions: Permissions
}

type Decision = { readonly answer: 'allow' | 'ask' | 'reject'; readonly why: string }

/**
 * Answers an agent's permission request. Anything the rules deny or that reaches outside the environment is rejected
 * regardless of the setting; the setting decides the rest.
 */
const decidePermission = async (
  { root, rules, permissions }: Policy,
  request: RequestPermissionRequest,
): Promise<Decision> => {
  const { kind, name, title, locations } = request.toolCall
  if (rules.access === 'read' && mayChange(kind)) return { answer: 'reject', why: 'this run is read-only' }
  const names = [name, title, kind].filter((one) => typeof one === 'string')
  if (matchesAny(rules.disallowedTools, names, kind)) return { answer: 'reject', why: "this tool isn't allowed here" }
  if (rules.allowedTools.length > 0 && !matchesAny(rules.allowedTools, names, kind)) {
    return { answer: 'reject', why: "this tool isn't one of those allowed here" }
  }
  if (mayChange(kind)) {
    for (const { path } of locations ?? []) {
      const inside = await resolveInside(root, path).then(
        () => true,
        () => false,
      )
      if (!inside) return { answer: 'reject', why: `${path} is outside the worktree` }
    }
  }
  if (permissions === 'deny') return { answer: 'reject', why: 'agent.permissions is deny' }
  return { answer: permissions, why: `agent.permissions is ${permissions}` }
}

export type Permissible = {
  readonly policy: Policy
  readonly request: Pick<AgentRequest, 'ask' | 'signal'>
  readonly agent: string
  /** The agent took its request back. */
  readonly withdrawn: AbortSignal
  /** Some agents announce a call only by asking for it. */
  readonly onAllowed: (call: ToolCallUpdate) => void
  readonly onDenied: (line: string) => void
}

/** Decides, asking the user where the policy says so. */
export const answerPermission = async (
  { policy, request, agent, withdrawn, onAllowed, onDenied }: Permissible,
  params: RequestPermissionRequest,
): Promise<RequestPermissionOutcome> => {
  const { answer, why } = await decidePermission(policy, params)
  const what = params.toolCall.title ?? params.toolCall.kind ?? 'a tool'
  const question = { kind: 'permission', agent, what, ...detailOf(params.toolCall, what) } as const
  const said = answer === 'ask' ? await untilAnswered(request, question, withdrawn) : undefined
  // The protocol asks for this if the turn is cancelled while a request is pending.
  if (request.signal.aborted) return { outcome: 'cancelled' }
  if (answer === 'allow' || said?.kind === 'allowed') {
    onAllowed(params.toolCall)
    return outcomeOf('allow', params)
  }
  if (said === undefined) onDenied(`denied: ${what} (${answer === 'ask' ? 'nobody answered' : why})`)
  return outcomeOf('reject', params)
}

const untilAnswered = async (
  { ask, signal }: Pick<AgentRequest, 'ask' | 'signal'>,
  question: AgentQuestion,
  withdrawn: AbortSignal,
): Promise<AgentAnswer | undefined> =>
  Promise.race([ask?.(question, withdrawn), untilAborted(signal).then(() => undefined)])

/** The title is for people and may be shortened; the command is what runs. */
const detailOf = ({ rawInput }: Pick<ToolCallUpdate, 'rawInput'>, what: string): { readonly detail?: string } => {
  const command = typeof rawInput === 'object' && rawInput !== null && 'command' in rawInput ? rawInput.command : ''
  const detail = Array.isArray(command) ? command.map(String).join(' ') : command
  return typeof detail === 'string' && detail !== '' && detail !== what ? { detail } : {}
}

/** Prefers "once": "always" would outlive the run and may be saved in the agent's own settings. */
const outcomeOf = (
  answer: 'allow' | 'reject',
  { options }: Pick<RequestPermissionRequest, 'options'>,
): RequestPermissionOutcome => {
  const wanted =
    answer === 'allow' ? (['allow_once', 'allow_always'] as const) : (['reject_once', 'reject_always'] as const)
  const option = wanted.flatMap((kind) => options.find((one) => one.kind === kind) ?? [])[0]
  return option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option.optionId }
}

/** An unknown kind might write. */
const mayChange = (kind: ToolKind | null | undefined): boolean =>
  kind !== 'read' && kind !== 'search' && kind !== 'think' && kind !== 'fetch'

/** Rules use Claude Code's tool names; `Bash(git log:*)` refers to its Bash tool. */
const kindsByName: Readonly<Record<string, readonly ToolKind[]>> = {
  bash: ['execute'],
  edit: ['edit', 'delete', 'move'],
  multiedit: ['edit', 'delete', 'move'],
  write: ['edit', 'delete', 'move'],
  notebookedit: ['edit'],
  read: ['read'],
  grep: ['search'],
  glob: ['search'],
  webfetch: ['fetch'],
  websearch: ['fetch', 'search'],
}

const matchesAny = (tools: readonly string[], names: readonly string[], kind: ToolKind | null | undefined): boolean =>
  tools.some((tool) => {
    const plain = (tool.split('(')[0] ?? '').trim().toLowerCase()
    const known = kind !== undefined && kind !== null && (kindsByName[plain]?.includes(kind) ?? false)
    return known || names.some((name) => name.toLowerCase() === plain)
  })
