import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import {
  asList,
  asRecord,
  type Asked,
  type Call,
  type ModelServer,
  piecesOf,
  type Script,
  sendEvent,
  startModelServer,
  textOfContent,
  type Wire,
} from './scripted.ts'

/** OpenAI's Responses API, streaming. */
export const startOpenAiServer = async (script: Script): Promise<ModelServer> => startModelServer(wire, script)

const wire: Wire = {
  path: /^\/v1\/responses(\?|$)/,
  read: (body) => {
    const { input, instructions, tools } = asRecord(body)
    const offered = [...asList(tools), ...asList(input).flatMap((item) => asList(asRecord(item)['tools']))]
    const names = offered.flatMap(namesOf)
    const read = readInput(asList(input))
    if (names.length === 0 || isTitleRequest(read.said)) return undefined
    return {
      ...read,
      system: textOfContent(instructions),
      tools: names,
      whole: JSON.stringify(body),
    }
  },
  stream: (response, step, offered) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    const id = `resp_${randomUUID()}`
    sendEvent(response, { type: 'response.created', response: { id, status: 'in_progress', output: [] } })
    if ('stall' in step) {
      message(response, step.stall, true)
      return
    }
    if (step.say !== undefined) message(response, step.say)
    if (step.call !== undefined) toolCall(response, step.call, offered)
    const usage = {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 120,
    }
    sendEvent(response, { type: 'response.completed', response: { id, status: 'completed', output: [], usage } })
    response.end()
  },
  refuse: (response, { status, type, message: said }) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { type, code: type, message: said, param: null } }))
  },
}

/** In a terminal, Codex asks for a title of the session, with the tools that every request has. */
const isTitleRequest = (said: readonly string[]): boolean =>
  said.at(-1)?.startsWith('Generate a concise, single-line task title') === true

/** The newer models get their tools as an item of the input, in namespaces. */
const namesOf = (tool: unknown): string[] => {
  const { name, type, tools } = asRecord(tool)
  return tools === undefined ? [String(name ?? type)] : asList(tools).flatMap(namesOf)
}

const message = (response: ServerResponse, text: string, open = false): void => {
  const id = `msg_${randomUUID()}`
  const item = { id, type: 'message', role: 'assistant', status: 'in_progress', content: [] as unknown[] }
  sendEvent(response, { type: 'response.output_item.added', output_index: 0, item })
  for (const delta of piecesOf(text)) {
    sendEvent(response, { type: 'response.output_text.delta', item_id: id, output_index: 0, content_index: 0, delta })
  }
  if (open) return
  const content = [{ type: 'output_text', text, annotations: [] }]
  sendEvent(response, {
    type: 'response.output_item.done',
    output_index: 0,
    item: { ...item, status: 'completed', content },
  })
}

/**
 * The newer models have one tool that runs JavaScript, and in it all the others. Codex before that offers functions
 * (Responses API, "Function calling").
 */
const toolCall = (response: ServerResponse, { tool, input }: Call, offered: readonly string[]): void => {
  const call_id = `call_${randomUUID().replaceAll('-', '')}`
  if (!offered.includes('exec')) {
    const called = { id: `fc_${randomUUID()}`, type: 'function_call', call_id, name: tool }
    const item = { ...called, status: 'completed', arguments: JSON.stringify(input) }
    sendEvent(response, { type: 'response.output_item.done', output_index: 1, item })
    return
  }
  const item = {
    id: `ctc_${randomUUID()}`,
    type: 'custom_tool_call',
    status: 'completed',
    call_id,
    name: 'exec',
    input: `text(await tools.${tool}(${JSON.stringify(tool === 'apply_patch' ? input['patch'] : input)}))`,
  }
  sendEvent(response, { type: 'response.output_item.added', output_index: 1, item: { ...item, input: '' } })
  sendEvent(response, { type: 'response.output_item.done', output_index: 1, item })
}

const readInput = (input: readonly unknown[]): Pick<Asked, 'said' | 'results'> => {
  const said: string[] = []
  let results: string[] = []
  for (const item of input) {
    const { type, role, content, output } = asRecord(item)
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      results.push(typeof output === 'string' ? output : textOfContent(output))
    } else if (type === 'message' && role === 'user') {
      said.push(textOfContent(content))
      results = []
    }
  }
  return { said, results }
}
