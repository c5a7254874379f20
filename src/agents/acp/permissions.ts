import type { RequestPermissionOutcome, RequestPermissionRequest, ToolKind } from '@agentclientprotocol/sdk'
import type { Permissions } from '../../domain/config/agents.ts'
import type { AgentRules } from '../agent.ts'
import { placeInside } from './inside.ts'

export type Policy = {
  readonly root: string
  readonly rules: AgentRules
  readonly permissions: Permissions
}

export type Verdict = { readonly answer: 'allow' | 'ask' | 'reject'; readonly why: string }

/**
 * What an agent that asks before it acts is told. What the rules deny and what reaches outside of the environment is
 * rejected, whatever the setting says; the rest is the setting's.
 */
export const judge = async (
  { root, rules, permissions }: Policy,
  request: RequestPermissionRequest,
): Promise<Verdict> => {
  const { kind, name, title, locations } = request.toolCall
  if (rules.access === 'read' && changes(kind)) return { answer: 'reject', why: 'this run is read-only' }
  const names = [name, title, kind].filter((one) => typeof one === 'string')
  if (isNamed(rules.disallowedTools, names, kind)) return { answer: 'reject', why: "this tool isn't allowed here" }
  if (rules.allowedTools.length > 0 && !isNamed(rules.allowedTools, names, kind)) {
    return { answer: 'reject', why: "this tool isn't one of those allowed here" }
  }
  if (changes(kind)) {
    for (const { path } of locations ?? []) {
      const inside = await placeInside(root, path).then(
        () => true,
        () => false,
      )
      if (!inside) return { answer: 'reject', why: `${path} is outside the worktree` }
    }
  }
  if (permissions === 'deny') return { answer: 'reject', why: 'agent.permissions is deny' }
  return { answer: permissions, why: `agent.permissions is ${permissions}` }
}

/** Once only: an answer for always would outlive the run, and may be written into the agent's own settings. */
export const outcomeOf = (
  answer: 'allow' | 'reject',
  { options }: Pick<RequestPermissionRequest, 'options'>,
): RequestPermissionOutcome => {
  const wanted =
    answer === 'allow' ? (['allow_once', 'allow_always'] as const) : (['reject_once', 'reject_always'] as const)
  const option = wanted.flatMap((kind) => options.find((one) => one.kind === kind) ?? [])[0]
  return option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option.optionId }
}

/** A kind that nobody named may be anything. */
const changes = (kind: ToolKind | null | undefined): boolean =>
  kind !== 'read' && kind !== 'search' && kind !== 'think' && kind !== 'fetch'

/** Rules are written with the names that Claude Code has for its tools; `Bash(git log:*)` is about its tool. */
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

const isNamed = (tools: readonly string[], names: readonly string[], kind: ToolKind | null | undefined): boolean =>
  tools.some((tool) => {
    const plain = (tool.split('(')[0] ?? '').trim().toLowerCase()
    const known = kind !== undefined && kind !== null && (kindsByName[plain]?.includes(kind) ?? false)
    return known || names.some((name) => name.toLowerCase() === plain)
  })
