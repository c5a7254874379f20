import { asList, asRecord, type Asked, piecesOf, type Wire } from './scripted.ts'

/** The Gemini API as Gemini CLI speaks it: `POST /v1beta/models/<model>:streamGenerateContent?alt=sse`. */
export const google: Wire = {
  path: /:streamGenerateContent/,
  read: (body) => {
    const { contents, systemInstruction, tools } = asRecord(body)
    const turns = asList(contents).map((turn) => ({
      role: asRecord(turn)['role'],
      parts: asList(asRecord(turn)['parts']).map(asRecord),
    }))
    const lastWords = turns.findLastIndex(({ role, parts }) => role === 'user' && parts.some((part) => 'text' in part))
    const asked: Asked = {
      whole: JSON.stringify(body),
      system: JSON.stringify(systemInstruction ?? ''),
      said: turns.filter(({ role }) => role === 'user').map(({ parts }) => parts.map(textOf).join('\n')),
      results: turns
        .slice(lastWords + 1)
        .flatMap(({ parts }) => parts.filter((part) => 'functionResponse' in part).map((part) => JSON.stringify(part))),
      tools: asList(tools).flatMap((tool) =>
        asList(asRecord(tool)['functionDeclarations']).map((declared) => String(asRecord(declared)['name'])),
      ),
    }
    return asked
  },
  stream: (response, step) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (parts: readonly object[], finishReason?: string): void => {
      const candidate = {
        index: 0,
        content: { role: 'model', parts },
        ...(finishReason !== undefined && { finishReason }),
      }
      const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
      response.write(`data: ${JSON.stringify({ candidates: [candidate], usageMetadata })}\r\n\r\n`)
    }
    const said = 'stall' in step ? step.stall : (step.say ?? '')
    for (const text of said.length > 10_000 ? [said] : piecesOf(said)) send([{ text }])
    if ('stall' in step) return
    const { call } = step
    send(call === undefined ? [{ text: '' }] : [{ functionCall: { name: call.tool, args: call.input } }], 'STOP')
    response.end()
  },
  refuse: (response, { status, type, message }) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { code: status, message, status: type } }))
  },
}

const textOf = (part: Readonly<Record<string, unknown>>): string => {
  const text = part['text']
  return typeof text === 'string' ? text : ''
}
