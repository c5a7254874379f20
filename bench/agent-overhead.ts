import { randomUUID } from 'node:crypto'
import { spawn } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import type { Agent, AgentRequest } from '../src/agents/agent.ts'
import { claudeArguments } from '../src/agents/claude/arguments.ts'
import { codexArguments } from '../src/agents/codex/arguments.ts'
import { findGitPaths } from '../src/agents/codex/sandbox.ts'
import { programs, claudeAt, codexAt, scriptedProvider } from '../test/agents/stage.ts'
import { startAnthropicServer } from '../test/helpers/model-servers/anthropic.ts'
import { startOpenAiServer } from '../test/helpers/model-servers/openai.ts'
import { interleaved, ratioRow, type Row } from './measure.ts'
import type { Bench, Stage } from './stage.ts'
import { createSecrets } from '../src/process/redaction/redact.ts'

const rounds = 15

export const agentOverhead: Bench = {
  name: 'agent-overhead',
  title: 'an agent through Coppice, against the same program alone',
  description:
    'Coppice: `run` of the agent, from the message to the first text and to the result, including its own process group, the gate until its process is recorded, the allow-listed environment and the parsing of every event. Baseline: the same program with the same arguments and input, started directly in its own session as in a terminal, from its start to the first line with text and to its exit. Both use a scripted model on loopback that answers at once. The real programs, in a linked worktree of a repository with one file.',
  measure: async (stage) => [...(await claudeRows(stage)), ...(await codexRows(stage))],
}

const prompt = 'say hello'
const answer = { say: 'Hello, here I am, and this is an answer of a few words.' }
const rules = { access: 'write', allowedTools: [], disallowedTools: [] } as const

const createWorktree = (stage: Stage, name: string) => {
  const repo = stage.box.repo(`overhead-${name}`)
  const { path } = repo.worktree(`overhead-${name}-tree`, '-b', 'work')
  return { box: stage.box, repo, directory: path, [Symbol.dispose]: () => undefined }
}

const claudeRows = async (stage: Stage): Promise<Row[]> => {
  await using server = await startAnthropicServer(() => answer)
  const at = createWorktree(stage, 'claude')
  const content = [{ type: 'text', text: prompt }]
  const raw = {
    command: programs().claude,
    args: claudeArguments(
      { rules, untrusted: false },
      { mode: 'acceptEdits', permissions: 'allow', asks: false, session: undefined },
    ),
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
  const at = createWorktree(stage, 'codex')
  const call = {
    sandbox: 'workspace-write',
    gitPaths: await findGitPaths(at.directory),
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

type DirectRun = {
  readonly command: string
  readonly args: readonly string[]
  readonly stdin: string
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Marks a line with text. */
  readonly first: string
}

const rowsOf = async (title: string, agent: Agent, raw: DirectRun): Promise<Row[]> => {
  const firsts: Record<'ours' | 'raw', number[]> = { ours: [], raw: [] }
  const timed = async (
    side: 'ours' | 'raw',
    round: number,
    run: (onText: () => void) => Promise<void>,
  ): Promise<void> => {
    const began = performance.now()
    let took: number | undefined
    await run(() => (took ??= performance.now() - began))
    if (took === undefined) throw new Error(`${title} printed nothing`)
    if (round > 0) firsts[side].push(took)
  }
  const whole = await interleaved(
    {
      ours: { run: (round) => timed('ours', round, (onText) => throughCoppice(agent, raw, onText)) },
      raw: { run: (round) => timed('raw', round, (onText) => runDirectly(raw, onText)) },
    },
    { rounds },
  )
  return [
    ratioRow(`${title}: message to first text, against the program alone`, firsts, 1.1),
    ratioRow(`${title}: message to result, against the program alone`, whole, 1.1),
  ]
}

const throughCoppice = async (agent: Agent, { cwd, env }: DirectRun, onText: () => void): Promise<void> => {
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
      if (type === 'text') onText()
    },
    onStart: async () => {},
  }
  const { outcome, problem } = await agent.run(request)
  if (outcome !== 'done') throw new Error(problem ?? outcome)
}

const runDirectly = async ({ command, args, stdin, env, cwd, first }: DirectRun, onText: () => void): Promise<void> => {
  // In its own session, as in a terminal: Linux shares the CPU between sessions, so on a busy machine a program in our
  // session would get a different share, which would distort the figure.
  const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said = said.slice(-1_000) + chunk.toString('utf8')
    if (said.includes(first)) onText()
  })
  child.stdin.end(stdin)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`the program alone exited with code ${code}`)
}
