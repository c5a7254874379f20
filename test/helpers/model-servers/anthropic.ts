import { randomUUID } from 'node:crypto'
import {
  asList,
  asRecord,
  type Asked,
  type ModelServer,
  piecesOf,
  type Script,
  sendEvent,
  startModelServer,
  textOfContent,
  type Wire,
} from './scripted.ts'

/** Anthropic's Messages API, streaming. */
export const startAnthropicServer = async (script: Script): Promise<ModelServer> => startModelServer(wire, script)

const wire: Wire = {
  path: /^\/v1\/messages(\?|$)/,
  read: (body) => {
    const { messages, system, tools } = asRecord(body)
    // Titles and quota checks are asked without any tool.
    const names = asList(tools).map((tool) => String(asRecord(tool)['name']))
    if (names.length === 0) return undefined
    return {
      ...readMessages(asList(messages)),
      system: textOfContent(system),
      tools: names,
      whole: JSON.stringify(body),
    }
  },
  stream: (response, step) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    sendEvent(response, {
      type: 'message_start',
      message: {
        id: `msg_${randomUUID()}`,
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-5-20250929',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 100, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
      },
    })
    let index = 0
    const block = (start: Record<string, unknown>, deltas: readonly Record<string, unknown>[], open = false): void => {
      sendEvent(response, { type: 'content_block_start', index, content_block: start })
      for (const delta of deltas) sendEvent(response, { type: 'content_block_delta', index, delta })
      if (!open) sendEvent(response, { type: 'content_block_stop', index })
      index += 1
    }
    const text = (said: string): Record<string, unknown>[] =>
      piecesOf(said).map((piece) => ({ type: 'text_delta', text: piece }))
    if ('stall' in step) {
      block({ type: 'text', text: '' }, text(step.stall), true)
      return
    }
    if (step.say !== undefined) block({ type: 'text', text: '' }, text(step.say))
    if (step.call !== undefined) {
      const json = piecesOf(JSON.stringify(step.call.input))
      block(
        { type: 'tool_use', id: `toolu_${randomUUID().replaceAll('-', '')}`, name: step.call.tool, input: {} },
        json.map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
      )
    }
    const reason = step.call === undefined ? 'end_turn' : 'tool_use'
    sendEvent(response, {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: null },
      usage: { output_tokens: 20 },
    })
    sendEvent(response, { type: 'message_stop' })
    response.end()
  },
  refuse: (response, { status, type, message }) => {
    // As the real service does for what trying again does not mend; the program would wait for minutes otherwise.
    response.writeHead(status, { 'content-type': 'application/json', 'x-should-retry': 'false' })
    response.end(JSON.stringify({ type: 'error', error: { type, message } }))
  },
}

const readMessages = (messages: readonly unknown[]): Pick<Asked, 'said' | 'results'> => {
  const said: string[] = []
  let results: string[] = []
  for (const message of messages) {
    const { role, content } = asRecord(message)
    if (role !== 'user') continue
    const answers = asList(content).filter((block) => asRecord(block)['type'] === 'tool_result')
    if (answers.length > 0) {
      results.push(...answers.map((block) => textOfContent(asRecord(block)['content'])))
      continue
    }
    said.push(textOfContent(content))
    results = []
  }
  return { said, results }
}
