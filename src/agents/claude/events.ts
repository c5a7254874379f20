import type { AgentEvent, AgentUsage } from '../agent.ts'
import { claudeToolLine } from './tools.ts'
import { type Fields, fieldsOf, listOf, numberOf, textOf } from '../fields.ts'
import type { ProgramEvent } from '../program.ts'
import type { ReplyText } from '../reply.ts'
import type { ToolLine } from '../tool-line.ts'

export type ClaudeReader = {
  readonly onEvent: (event: ProgramEvent) => void
  readonly toolRunning: () => boolean
  /** Whether it has written or done anything. */
  readonly hasActed: () => boolean
  /** How it ended, in its own words; undefined if it reported nothing. */
  readonly ending: () => ClaudeEnding | undefined
}

export type ClaudeEnding = {
  readonly failed: boolean
  readonly message: string
  readonly apiStatus: number | undefined
  readonly usage: AgentUsage
}

/** Parses `claude --output-format stream-json` as it arrives. */
export const createClaudeReader = (
  directory: string,
  { reply, emit }: { readonly reply: ReplyText; readonly emit: (event: AgentEvent) => void },
): ClaudeReader => {
  const tools = new Map<string, ToolLine>()
  const streamed = new Set<string>()
  let hasText = false
  let hasUsedTool = false
  let ending: ClaudeEnding | undefined
  const addText = (text: string): void => {
    hasText ||= text !== ''
    reply.add(text)
  }
  const onStream = (event: Fields): void => {
    if (event['type'] === 'message_start') streamed.add(textOf(fieldsOf(event['message'])['id']) ?? '')
    // Text before and after a tool call becomes separate paragraphs.
    if (event['type'] === 'content_block_start' && fieldsOf(event['content_block'])['type'] === 'text')
      reply.paragraph()
    if (event['type'] === 'content_block_delta') addText(textOf(fieldsOf(event['delta'])['text']) ?? '')
  }
  const onAssistant = (message: Fields, topLevel: boolean): void => {
    // A synthetic message is a model error, which the ending reports.
    const notStreamed = topLevel && message['model'] !== '<synthetic>' && !streamed.has(textOf(message['id']) ?? '')
    for (const block of listOf(message['content'])) {
      if (block['type'] === 'text' && notStreamed) {
        reply.paragraph()
        addText(textOf(block['text']) ?? '')
      }
      const id = textOf(block['id'])
      if (block['type'] !== 'tool_use' || id === undefined) continue
      const line = claudeToolLine(textOf(block['name']) ?? 'a tool', fieldsOf(block['input']), directory)
      hasUsedTool = true
      tools.set(id, line)
      reply.tool(line.started)
    }
  }
  const onResults = (message: Fields): void => {
    for (const block of listOf(message['content'])) {
      const id = textOf(block['tool_use_id'])
      const line = id === undefined ? undefined : tools.get(id)
      if (id === undefined || line === undefined) continue
      tools.delete(id)
      if (block['is_error'] === true) reply.tool(line.failed)
    }
  }
  const onEvent = (event: ProgramEvent): void => {
    const topLevel = event['parent_tool_use_id'] === null || event['parent_tool_use_id'] === undefined
    const session = textOf(event['session_id'])
    switch (event['type']) {
      case 'system':
        if (event['subtype'] === 'init' && session !== undefined) emit({ type: 'session', id: session })
        // It retries for minutes before giving up, with no other output.
        if (event['subtype'] === 'api_retry') reply.tool("the model didn't respond; retrying")
        return
      case 'stream_event':
        if (topLevel) onStream(fieldsOf(event['event']))
        return
      case 'assistant':
        onAssistant(fieldsOf(event['message']), topLevel)
        return
      case 'user':
        onResults(fieldsOf(event['message']))
        return
      case 'result':
        ending = endingOf(event)
        if (!ending.failed && !hasText) addText(ending.message)
    }
  }
  return { onEvent, toolRunning: () => tools.size > 0, hasActed: () => hasText || hasUsedTool, ending: () => ending }
}

const endingOf = (event: ProgramEvent): ClaudeEnding => {
  const errors = Array.isArray(event['errors']) ? event['errors'].map((error) => textOf(error) ?? '') : []
  return {
    failed: event['is_error'] === true || event['subtype'] !== 'success',
    message: textOf(event['result']) ?? errors.join(' · '),
    apiStatus: numberOf(event['api_error_status']),
    usage: usageOf(event),
  }
}

const usageOf = (event: ProgramEvent): AgentUsage => {
  const used = fieldsOf(event['usage'])
  const input = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'].map((name) =>
    numberOf(used[name]),
  )
  const [costUsd, outputTokens, turns] = [costOf(event), numberOf(used['output_tokens']), numberOf(event['num_turns'])]
  return {
    ...(costUsd !== undefined && { costUsd }),
    ...(input[0] !== undefined && { inputTokens: input.reduce<number>((sum, part) => sum + (part ?? 0), 0) }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(turns !== undefined && { turns }),
  }
}

/** The total covers the whole session; this run's cost is listed separately, by model. */
const costOf = (event: ProgramEvent): number | undefined => {
  const perModel = Object.values(fieldsOf(event['model_usage_since_last_result']))
  const costs = perModel.map((used) => numberOf(fieldsOf(used)['costUSD']))
  if (costs.length === 0 || costs.includes(undefined)) return numberOf(event['total_cost_usd'])
  return costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)
}
