import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import {
  agent,
  type AgentContext,
  type ContentBlock,
  ndJsonStream,
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
  type SessionModeState,
} from '@agentclientprotocol/sdk'

/*
 * A small agent on the SDK's agent side, for tests: `node agent.ts <behaviour> <directory for traces>`. It behaves as
 * agentclientprotocol.com describes an agent; where it doesn't, that is what its behaviour is about. What it was
 * answered goes to the trace `answers`, one JSON per line.
 */

const [behaviour = 'works', traces = '/tmp'] = process.argv.slice(2)
const trace = (name: string): string => join(traces, name)

type Turn = {
  readonly client: AgentContext
  readonly sessionId: string
  readonly cwd: string
  readonly words: string
  readonly blocks: readonly ContentBlock[]
  readonly cancelled: Promise<void>
}

const say = (turn: Turn, text: string): Promise<void> =>
  turn.client.notify('session/update', {
    sessionId: turn.sessionId,
    update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
  })

/** Asks the client for something, and writes down what came of it. */
const ask = async (turn: Turn, method: string, params: Record<string, unknown>): Promise<unknown> => {
  try {
    const answer = await turn.client.request(method, { sessionId: turn.sessionId, ...params })
    appendFileSync(trace('answers'), `${JSON.stringify({ ok: answer ?? null })}\n`)
    return answer
  } catch (error) {
    const { code, message } = error as { code?: number; message?: string }
    appendFileSync(trace('answers'), `${JSON.stringify({ code: code ?? null, message: message ?? '' })}\n`)
    return undefined
  }
}

const end: PromptResponse = { stopReason: 'end_turn' }

const behaviours: Record<string, (turn: Turn) => Promise<PromptResponse>> = {
  works: async (turn) => {
    await say(turn, 'Grüße, ')
    await ask(turn, 'fs/write_text_file', { path: join(turn.cwd, 'done.txt'), content: turn.words })
    await say(turn, `${turn.words} — fertig`)
    return end
  },
  fails: async (turn) => {
    await say(turn, 'half')
    throw RequestError.internalError({ details: 'no such model' })
  },
  hangs: async (turn) => {
    await say(turn, 'working')
    await turn.client.notify('session/update', {
      sessionId: turn.sessionId,
      update: { sessionUpdate: 'tool_call', toolCallId: '1', title: 'npm test', kind: 'execute', status: 'pending' },
    })
    process.on('SIGTERM', () => undefined)
    const script = `trap '' TERM; echo $$ >> '${trace('pids')}'; while :; do sleep 1; done`
    spawn('/bin/sh', ['-c', script], { stdio: 'ignore', detached: true })
    appendFileSync(trace('pids'), `${process.pid}\n`)
    return new Promise(() => setInterval(() => undefined, 1_000))
  },
  tells: async (turn) => {
    const command = `env -0 > '${trace('env')}'; pwd -P > '${trace('cwd')}'`
    const made = (await ask(turn, 'terminal/create', { command })) as { terminalId: string }
    await ask(turn, 'terminal/wait_for_exit', made)
    await ask(turn, 'terminal/release', made)
    return end
  },
  rambles: async (turn) => {
    for (let n = 0; n < 300; n += 1) await say(turn, 'ünïcödé\n'.repeat(700))
    await say(turn, '\nthe end\n')
    return end
  },
  forks: async (turn) => {
    const child = spawn('/bin/sh', ['-c', `trap '' HUP; echo $$ > '${trace('pids')}'; exec sleep 600`], {
      stdio: 'ignore',
      detached: true,
    })
    child.unref()
    while (!existsSync(trace('pids')) || readFileSync(trace('pids'), 'utf8') === '') await new Promise(setImmediate)
    await say(turn, 'bye\n')
    return end
  },
  /** Asks for whatever stands in the file `requests`: [[method, params], …]. */
  asks: async (turn) => {
    for (const [method, params] of JSON.parse(readFileSync(trace('requests'), 'utf8')) as [string, object][]) {
      await ask(turn, method, { ...params })
    }
    await say(turn, 'asked')
    return end
  },
  /** A terminal that never ends, and is left behind. */
  'leaves-terminal': async (turn) => {
    const command = `trap '' TERM; echo $$ >> '${trace('pids')}'; while :; do sleep 1; done`
    await ask(turn, 'terminal/create', { command })
    while (!existsSync(trace('pids')) || readFileSync(trace('pids'), 'utf8') === '') await new Promise(setImmediate)
    return end
  },
  terminal: async (turn) => {
    const { terminalId } = (await ask(turn, 'terminal/create', {
      command: 'sh',
      args: ['-c', 'printf "0123456789ü"; echo "$GIVEN"; exit 3'],
      env: [{ name: 'GIVEN', value: 'given' }],
      outputByteLimit: 10,
    })) as { terminalId: string }
    await ask(turn, 'terminal/wait_for_exit', { terminalId })
    await ask(turn, 'terminal/output', { terminalId })
    const other = (await ask(turn, 'terminal/create', { command: 'sleep', args: ['600'] })) as { terminalId: string }
    await ask(turn, 'terminal/kill', other)
    await ask(turn, 'terminal/output', other)
    await ask(turn, 'terminal/release', other)
    await ask(turn, 'terminal/output', other)
    return end
  },
  reports: async (turn) => {
    const tell = (update: object): Promise<void> =>
      turn.client.notify('session/update', { sessionId: turn.sessionId, update })
    await say(turn, 'I look first.')
    await tell({
      sessionUpdate: 'tool_call',
      toolCallId: '1',
      title: 'Edit file',
      kind: 'edit',
      status: 'in_progress',
      locations: [{ path: join(turn.cwd, 'src/login.ts') }],
    })
    await tell({ sessionUpdate: 'tool_call_update', toolCallId: '1', status: 'completed' })
    await tell({ sessionUpdate: 'tool_call', toolCallId: '2', title: 'npm\n test', kind: 'execute', status: 'pending' })
    await tell({ sessionUpdate: 'tool_call_update', toolCallId: '2', status: 'failed' })
    await tell({ sessionUpdate: 'tool_call_update', toolCallId: '2', status: 'failed' })
    await tell({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'secret thoughts' } })
    await tell({ sessionUpdate: 'from_the_future', content: 1 })
    await tell({ sessionUpdate: 'usage_update', used: 10, size: 100, cost: { amount: 0.25, currency: 'USD' } })
    await say(turn, 'Done.')
    return { ...end, _meta: { quota: { token_count: { input_tokens: 7, output_tokens: 5 } } } }
  },
  echoes: async (turn) => {
    await say(turn, JSON.stringify(turn.blocks))
    return end
  },
  stalls: async (turn) => {
    await say(turn, 'so far')
    return new Promise(() => setInterval(() => undefined, 1_000))
  },
  crashes: async (turn) => {
    await say(turn, 'before the fall')
    process.stderr.write('first line\npanic: no such model\n')
    await new Promise((resolve) => setTimeout(resolve, 50))
    process.exit(7)
  },
  garbage: async (turn) => {
    process.stdout.write('Loading model… 10%\n{"jsonrpc": "2.0", broken\n[1,2]\n"text"\n{}\n')
    await say(turn, 'all the same')
    return end
  },
  flood: async () => {
    process.stdout.write('x'.repeat(40 * 1024 * 1024))
    return new Promise(() => setInterval(() => undefined, 1_000))
  },
  refuses: async () => ({ stopReason: 'refusal' }),
  /** "Prompt Turn", "Cancellation": puts down what it holds when it is told to stop, and says `cancelled`. */
  obeys: async (turn) => {
    appendFileSync(trace('pids'), `${process.pid}\n`)
    await turn.cancelled
    writeFileSync(trace('cancelled'), 'yes')
    return { stopReason: 'cancelled' }
  },
  /** Goes on after it was told to stop. */
  insists: async (turn) => {
    appendFileSync(trace('pids'), `${process.pid}\n`)
    await turn.cancelled
    await ask(turn, 'fs/write_text_file', { path: join(turn.cwd, 'late.txt'), content: 'late' })
    await ask(turn, 'terminal/create', { command: `touch '${trace('ran')}'` })
    return { stopReason: 'cancelled' }
  },
}

/** As "Session Modes" and "Session Config Options" of the protocol's documentation describe them. */
let mode = 'code'
const enter = (by: string, id: string): void => {
  mode = id
  appendFileSync(trace('modes'), `${by} ${id}\n`)
}
const optionsOf = (): SessionConfigOption[] => {
  const values = [
    { value: 'code', name: 'Code' },
    { value: 'https://agent.example/modes#plan', name: 'Planning' },
  ]
  const options = behaviour === 'grouped-options' ? [{ group: 'all', name: 'All', options: values }] : values
  return [
    { type: 'select', id: 'model', name: 'Model', currentValue: 'big', options: [{ value: 'big', name: 'Big' }] },
    { type: 'select', id: 'mode', name: 'Mode', category: 'mode', currentValue: mode, options },
  ]
}
const modesOf = (): { modes?: SessionModeState; configOptions?: SessionConfigOption[] } => {
  const writing = { id: 'code', name: 'Code' }
  const planning = { id: 'plan', name: 'Plan' }
  switch (behaviour) {
    case 'modes':
    case 'refuses-modes':
      return { modes: { currentModeId: mode, availableModes: [writing, planning] } }
    case 'only-writes':
      return { modes: { currentModeId: mode, availableModes: [writing] } }
    case 'grouped-options':
    case 'ignores-options':
      return { configOptions: optionsOf() }
    case 'config-options':
      // One that has both, for older clients.
      return {
        configOptions: optionsOf(),
        modes: { currentModeId: mode, availableModes: [writing, planning] },
      }
    default:
      return {}
  }
}

const directories = new Map<string, string>()
const cancels = new Map<string, () => void>()

const app = agent({ name: 'for tests' })
  .onRequest('initialize', ({ params }) => {
    appendFileSync(trace('introductions'), `${JSON.stringify(params)}\n`)
    return {
      protocolVersion: behaviour === 'new-protocol' ? 2 : 1,
      agentInfo: { name: 'for-tests', version: '1.2.3' },
      agentCapabilities: {
        loadSession: behaviour !== 'forgets',
        promptCapabilities: { embeddedContext: behaviour !== 'plain', image: behaviour === 'sees' },
      },
    }
  })
  .onRequest('session/new', ({ params }) => {
    if (behaviour === 'logged-out') throw RequestError.authRequired()
    const sessionId = randomUUID()
    directories.set(sessionId, params.cwd)
    appendFileSync(trace('sessions'), `${sessionId}\n`)
    writeFileSync(trace(`directory-of-${sessionId}`), params.cwd)
    return { sessionId, ...modesOf() }
  })
  .onRequest('session/set_mode', ({ params }) => {
    if (behaviour === 'refuses-modes') throw RequestError.invalidParams(undefined, 'no such mode')
    enter('mode', params.modeId)
    return {}
  })
  .onRequest('session/set_config_option', ({ params }) => {
    if (behaviour !== 'ignores-options') enter('option', String(params.value))
    return { configOptions: optionsOf() }
  })
  .onRequest('session/load', async ({ params, client }) => {
    const known = existsSync(trace('sessions')) ? readFileSync(trace('sessions'), 'utf8').split('\n') : []
    if (!known.includes(params.sessionId)) throw RequestError.resourceNotFound(params.sessionId)
    // As some agents do: a session belongs to the directory that it began in.
    const began = readFileSync(trace(`directory-of-${params.sessionId}`), 'utf8')
    if (behaviour === 'stays' && began !== params.cwd) throw RequestError.resourceNotFound(params.sessionId)
    directories.set(params.sessionId, params.cwd)
    await client.notify('session/update', {
      sessionId: params.sessionId,
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'what I said long ago' } },
    })
    return {}
  })
  .onNotification('session/cancel', ({ params }) => cancels.get(params.sessionId)?.())
  .onRequest('session/prompt', ({ params, client }) => {
    const cancelled = new Promise<void>((resolve) => cancels.set(params.sessionId, resolve))
    const words = params.prompt.flatMap((block) => (block.type === 'text' ? [block.text] : [])).at(-1) ?? ''
    const run = behaviours[behaviour] ?? behaviours['echoes']
    writeFileSync(trace('mode-at-prompt'), mode)
    if (run === undefined) throw RequestError.internalError()
    const cwd = directories.get(params.sessionId) ?? process.cwd()
    return run({ client, sessionId: params.sessionId, cwd, words, blocks: params.prompt, cancelled })
  })

const { closed } = app.connect(
  ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>),
)
await closed
