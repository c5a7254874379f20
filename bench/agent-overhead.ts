import { randomUUID } from 'node:crypto'
import { spawn } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import type { Agent, AgentRequest } from '../src/agents/agent.ts'
import { claudeArguments } from '../src/agents/claude/arguments.ts'
import { codexArguments } from '../src/agents/codex/arguments.ts'
import { gitPlaces } from '../src/agents/codex/sandbox.ts'
import { programs, claudeAt, codexAt, scriptedProvider } from '../test/agents/stage.ts'
import { startAnthropicServer } from '../test/helpers/model-servers/anthropic.ts'
import { startOpenAiServer } from '../test/helpers/model-servers/openai.ts'
import { interleaved, ratioRow, type Row } from './measure.ts'
import type { Bench, Stage } from './stage.ts'
import { createSecrets } from '../src/process/redaction/redact.ts'

const rounds = 15

export const agentOverhead: Bench = {
  name: 'agent-overhead',
  title: 'an agent through Coppice, against the same program by hand',
  inside:
    'Ours: `run` of the agent, from the message to the first piece of text and to the result, with its own process group, the gate until it is recorded, the allow-listed environment and every event parsed. Raw: the same program with the same arguments and input, started by hand in its own session, as in a terminal, from its start to the first line with text and to its exit. Both against a scripted model on loopback that answers at once. The real programs, in a linked worktree of a repository with one file.',
  measure: async (stage) => [...(await claudeRows(stage)), ...(await codexRows(stage))],
}

const prompt = 'say hello'
const answer = { say: 'Hello, here I am, and this is an answer of a few words.' }
const rules = { access: 'write', allowedTools: [], disallowedTools: [] } as const

const place = (stage: Stage, name: string) => {
  const repo = stage.box.repo(`overhead-${name}`)
  const { path } = repo.worktree(`overhead-${name}-tree`, '-b', 'work')
  return { box: stage.box, repo, directory: path, [Symbol.dispose]: () => undefined }
}

const claudeRows = async (stage: Stage): Promise<Row[]> => {
  await using server = await startAnthropicServer(() => answer)
  const at = place(stage, 'claude')
  const content = [{ type: 'text', text: prompt }]
  const raw = {
    command: programs().claude,
    args: claudeArguments({ rules, untrusted: false }, { mode: 'acceptEdits', session: undefined }),
    stdin: `${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`,
    env: {
      ...stage.box.env,
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: 'made-up-key',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    first: '"text_delta"',
    cwd: at.directory,
  }
  return await rowsOf('Claude Code', claudeAt(server.url, at), raw)
}

const codexRows = async (stage: Stage): Promise<Row[]> => {
  await using server = await startOpenAiServer(() => answer)
  const at = place(stage, 'codex')
  const call = {
    sandbox: 'workspace-write',
    places: await gitPlaces(at.directory),
    config: scriptedProvider(server.url),
  } as const
  const raw = {
    command: programs().codex,
    args: codexArguments({ directory: at.directory, session: undefined, untrusted: false }, call),
    stdin: prompt,
    env: { ...stage.box.env, CODEX_API_KEY: 'made-up-key' },
    first: '"agent_message"',
    cwd: at.directory,
  }
  return await rowsOf('Codex', codexAt(server.url, at), raw)
}

type ByHand = {
  readonly command: string
  readonly args: readonly string[]
  readonly stdin: string
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** What a line with text has in it. */
  readonly first: string
}

const rowsOf = async (title: string, agent: Agent, raw: ByHand): Promise<Row[]> => {
  const firsts: Record<'ours' | 'raw', number[]> = { ours: [], raw: [] }
  const timed = async (
    side: 'ours' | 'raw',
    round: number,
    run: (heard: () => void) => Promise<void>,
  ): Promise<void> => {
    const began = performance.now()
    let took: number | undefined
    await run(() => (took ??= performance.now() - began))
    if (took === undefined) throw new Error(`${title} said nothing`)
    if (round > 0) firsts[side].push(took)
  }
  const whole = await interleaved(
    {
      ours: { run: (round) => timed('ours', round, (heard) => throughCoppice(agent, raw, heard)) },
      raw: { run: (round) => timed('raw', round, (heard) => byHand(raw, heard)) },
    },
    { rounds },
  )
  return [
    ratioRow(`${title}: message to first text, against the program by hand`, firsts, 1.1),
    ratioRow(`${title}: message to result, against the program by hand`, whole, 1.1),
  ]
}

const throughCoppice = async (agent: Agent, { cwd, env }: ByHand, heard: () => void): Promise<void> => {
  const { PATH = '', HOME = '', LC_ALL = '' } = env
  const request: AgentRequest = {
    directory: cwd,
    prompt,
    context: undefined,
    session: undefined,
    rules,
    untrusted: false,
    environment: { PATH, HOME, LC_ALL },
    mark: { id: randomUUID(), cgroup: undefined },
    signal: new AbortController().signal,
    secrets: createSecrets(),
    emit: ({ type }) => {
      if (type === 'text') heard()
    },
    onStart: async () => {},
  }
  const { outcome, problem } = await agent.run(request)
  if (outcome !== 'done') throw new Error(problem ?? outcome)
}

const byHand = async ({ command, args, stdin, env, cwd, first }: ByHand, heard: () => void): Promise<void> => {
  // A session of its own, as in a terminal: Linux shares the processor out by session, so on a busy machine one that
  // shares ours gets another part of it, and the figure would be about that.
  const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said = said.slice(-1_000) + chunk.toString('utf8')
    if (said.includes(first)) heard()
  })
  child.stdin.end(stdin)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`the program by hand ended with exit code ${code}`)
}
