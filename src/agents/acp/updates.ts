import { relative } from 'node:path'
import type { PromptResponse, SessionUpdate, ToolCall, ToolCallUpdate } from '@agentclientprotocol/sdk'
import type { AgentUsage } from '../agent.ts'
import type { ReplyText } from '../reply.ts'
import { toolLine, type ToolLine } from '../tool-line.ts'

export type Updates = {
  /** Reports only what follows: an agent that resumes may replay its whole history first. */
  begin(): void
  handle(update: SessionUpdate): void
  /** A call that was asked for starts now. */
  readonly allowed: (call: ToolCallUpdate) => void
  /** A tool that runs for ten minutes prints nothing. */
  toolRunning(): boolean
  usage(response: PromptResponse): AgentUsage | undefined
}

export type UpdatesOptions = {
  readonly root: string
  readonly reply: ReplyText
}

/** Turns an agent's updates into reply text and short lines about its tools. */
export const createUpdates = ({ root, reply }: UpdatesOptions): Updates => {
  const tools = new Map<string, ToolCallUpdate>()
  const times = new Map<string, number>()
  let live = false
  let hasText = false
  let afterTool = false
  let costBefore = 0
  let cost: number | undefined

  const tool = (update: ToolCall | ToolCallUpdate): void => {
    const known = tools.get(update.toolCallId)
    const given = Object.entries(update).filter(([, value]) => value !== null && value !== undefined)
    const call: ToolCallUpdate = { ...known, ...Object.fromEntries(given), toolCallId: update.toolCallId }
    tools.set(update.toolCallId, call)
    afterTool = true
    if (known !== undefined && isOver(known)) return
    const { started, failed } = lineOf(call, root)
    const before = known === undefined ? undefined : lineOf(known, root).started
    // Some agents announce a call before they know its details, and tell them in an update.
    const announced = times.get(update.toolCallId) ?? 0
    if (started !== before && announced < (isOver(call) ? 1 : MOST_LINES)) {
      times.set(update.toolCallId, announced + 1)
      reply.tool(started)
    }
    if (call.status === 'failed') reply.tool(failed)
  }

  return {
    begin: () => {
      live = true
      costBefore = cost ?? 0
      cost = undefined
    },
    handle: (update) => {
      switch (update.sessionUpdate) {
        case 'agent_message_chunk':
          if (!live || update.content.type !== 'text') return
          // Text before and after a tool call becomes separate paragraphs.
          if (afterTool && hasText) reply.add('\n\n')
          afterTool = false
          hasText = true
          reply.add(update.content.text)
          return
        case 'tool_call':
        case 'tool_call_update':
          if (live) tool(update)
          return
        case 'usage_update':
          if (update.cost?.currency.toUpperCase() === 'USD') cost = update.cost.amount
          return
        default:
      }
    },
    allowed: (call) => tool({ ...call, status: 'in_progress' }),
    toolRunning: () => [...tools.values()].some((call) => call.status === 'in_progress'),
    usage: (response) => {
      const tokens = tokensOf(response)
      // The protocol counts per session. A resumed agent that reported no earlier cost either started a new session or is
      // counted too high; a budget must not err the other way.
      const spent = cost === undefined ? undefined : Math.max(0, cost - costBefore)
      if (spent === undefined && tokens === undefined) return undefined
      return { ...tokens, ...(spent !== undefined && { costUsd: spent }) }
    },
  }
}

const isOver = ({ status }: Pick<ToolCallUpdate, 'status'>): boolean => status === 'completed' || status === 'failed'

/** As announced, and with its details. */
const MOST_LINES = 2

const verbs = {
  edit: ['editing', 'edit'],
  delete: ['deleting', 'delete'],
  move: ['moving', 'move'],
  read: ['reading', 'read'],
} as const

const lineOf = (call: ToolCallUpdate, root: string): Pick<ToolLine, 'started' | 'failed'> => {
  const { kind, title, locations } = call
  const paths = [...new Set((locations ?? []).map(({ path }) => shortPath(path, root)))]
  const about = (title ?? 'a tool').replaceAll(/\s+/g, ' ').trim()
  if ((kind === 'edit' || kind === 'delete' || kind === 'move' || kind === 'read') && paths.length > 0) {
    const [doing, infinitive] = verbs[kind]
    return toolLine(doing, infinitive, paths.join(', '))
  }
  return kind === 'execute' ? toolLine('running', 'run', about) : { started: about, failed: `failed: ${about}` }
}

const shortPath = (path: string, root: string): string => {
  const relativePath = relative(root, path)
  return relativePath === '' || relativePath.startsWith('..') ? path : relativePath
}

/** Not in the protocol yet: the draft has `usage`, Gemini CLI uses its own fields. */
const tokensOf = (response: PromptResponse): Pick<AgentUsage, 'inputTokens' | 'outputTokens'> | undefined => {
  const { usage, _meta: extra } = response as PromptResponse & { readonly usage?: unknown }
  const quota = record(record(extra)['quota'])
  const drafted = record(usage)
  const counted = record(quota['token_count'])
  const input = count(drafted['inputTokens']) ?? count(counted['input_tokens'])
  const output = count(drafted['outputTokens']) ?? count(counted['output_tokens'])
  if (input === undefined && output === undefined) return undefined
  return { ...(input !== undefined && { inputTokens: input }), ...(output !== undefined && { outputTokens: output }) }
}

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
