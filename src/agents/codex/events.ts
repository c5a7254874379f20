import type { AgentEvent, AgentUsage } from '../agent.ts'
import { type Fields, fieldsOf, listOf, numberOf, textOf } from '../fields.ts'
import type { ProgramEvent } from '../program.ts'
import type { ReplyText } from '../reply.ts'
import { editing, running, toolLine, type ToolLine } from '../tool-line.ts'

export type CodexReader = {
  readonly onEvent: (event: ProgramEvent) => void
  readonly toolRunning: () => boolean
  readonly ending: () => CodexEnding | undefined
}

export type CodexEnding =
  | { readonly failed: false; readonly used: Pick<AgentUsage, 'inputTokens' | 'outputTokens'> }
  | { readonly failed: true; readonly message: string }

/** Parses `codex exec --json` as it arrives. */
export const createCodexReader = (
  directory: string,
  { reply, emit }: { readonly reply: ReplyText; readonly emit: (event: AgentEvent) => void },
): CodexReader => {
  const runningTools = new Set<string>()
  const shown = new Set<string>()
  let ending: CodexEnding | undefined
  const onItem = (item: Fields, completed: boolean): void => {
    const id = textOf(item['id']) ?? ''
    const line = toolLineOf(item, directory)
    // A search is announced before its words are known.
    if (line !== undefined && !shown.has(id) && (completed || item['query'] !== '')) {
      shown.add(id)
      reply.tool(line.started)
    }
    if (line !== undefined && !completed) runningTools.add(id)
    if (!completed) return
    runningTools.delete(id)
    if (item['type'] === 'agent_message') {
      reply.paragraph()
      reply.add(textOf(item['text']) ?? '')
    }
    if (line !== undefined && !worked(item)) reply.tool(line.failed)
  }
  const onEvent = (event: ProgramEvent): void => {
    const thread = textOf(event['thread_id'])
    switch (event['type']) {
      case 'thread.started':
        if (thread !== undefined) emit({ type: 'session', id: thread })
        return
      case 'item.started':
      case 'item.updated':
      case 'item.completed':
        onItem(fieldsOf(event['item']), event['type'] === 'item.completed')
        return
      case 'turn.completed':
        ending = { failed: false, used: tokensOf(fieldsOf(event['usage'])) }
        return
      case 'turn.failed':
        ending = { failed: true, message: textOf(fieldsOf(event['error'])['message']) ?? '' }
        return
      case 'error':
        // Also sent before a retry; then another ending follows.
        ending = { failed: true, message: textOf(event['message']) ?? '' }
    }
  }
  return { onEvent, toolRunning: () => runningTools.size > 0, ending: () => ending }
}

const toolLineOf = (item: Fields, directory: string): ToolLine | undefined => {
  switch (item['type']) {
    case 'command_execution':
      return running(withoutShell(textOf(item['command']) ?? 'a command'))
    case 'file_change':
      return editing(
        listOf(item['changes']).flatMap(({ path }) => textOf(path) ?? []),
        directory,
      )
    case 'mcp_tool_call':
      return toolLine('using', 'use', `${textOf(item['server']) ?? 'mcp'}.${textOf(item['tool']) ?? 'tool'}`)
    case 'web_search':
      return toolLine('searching the web for', 'search the web for', textOf(item['query']) ?? 'something')
    default:
      return undefined
  }
}

/** Shows `/bin/bash -lc 'npm test'` as `npm test`. */
const withoutShell = (command: string): string => {
  const inner = /^\S*\/(?:ba|z|da)?sh -l?c (.+)$/s.exec(command)?.[1]
  if (inner === undefined) return command
  const quote = inner[0]
  return (quote === "'" || quote === '"') && inner.endsWith(quote) && inner.length > 1 ? inner.slice(1, -1) : inner
}

const worked = (item: Fields): boolean =>
  item['status'] !== 'failed' && item['status'] !== 'declined' && (numberOf(item['exit_code']) ?? 0) === 0

const tokensOf = (used: Fields): Pick<AgentUsage, 'inputTokens' | 'outputTokens'> => {
  const [inputTokens, outputTokens] = [numberOf(used['input_tokens']), numberOf(used['output_tokens'])]
  return { ...(inputTokens !== undefined && { inputTokens }), ...(outputTokens !== undefined && { outputTokens }) }
}
