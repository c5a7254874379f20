import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import { agentMark } from '../../src/process/run-mark.ts'
import { processesOfRuns } from '../../src/process/run-processes.ts'
import { built } from '../helpers/built.ts'
import { startAnthropicServer } from '../helpers/model-servers/anthropic.ts'
import { startOpenAiServer } from '../helpers/model-servers/openai.ts'
import type { Asked, Call, ModelServer, Script } from '../helpers/model-servers/scripted.ts'
import { makeServerWorld, type ServerWorld, until } from '../helpers/server-process.ts'
import type { TestRepo } from '../helpers/repo.ts'
import { programs } from './stage.ts'

/** A program of the fleet, as its user has it: nothing is set up but its key or its model. */
export type FleetProgram = {
  readonly name: 'claude' | 'codex'
  readonly serve: (script: Script) => Promise<ModelServer>
  /** Into the home directory of a user who has never started it, before it is started. */
  readonly prepare: (userHome: string, url: string) => Record<string, string>
  readonly shell: (command: string) => Call
  readonly write: (path: string, content: string) => Call
  readonly read: (path: string) => Call
}

export const claudeProgram: FleetProgram = {
  name: 'claude',
  serve: startAnthropicServer,
  prepare: (_userHome, url) => ({
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: 'made-up-key-of-more-than-twenty-characters',
    // The tests reach for nothing but loopback.
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }),
  shell: (command) => ({ tool: 'Bash', input: { command, description: 'x' } }),
  write: (path, content) => ({ tool: 'Write', input: { file_path: path, content } }),
  read: (path) => ({ tool: 'Read', input: { file_path: path } }),
}

export const codexProgram: FleetProgram = {
  name: 'codex',
  serve: startOpenAiServer,
  prepare: (userHome, url) => {
    mkdirSync(join(userHome, '.codex'), { recursive: true })
    writeFileSync(
      join(userHome, '.codex', 'config.toml'),
      `model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "CODEX_API_KEY"
request_max_retries = 0
stream_max_retries = 0
`,
    )
    return { CODEX_API_KEY: 'made-up-key' }
  },
  shell: (cmd) => ({ tool: 'exec_command', input: { cmd, yield_time_ms: 30_000 } }),
  write: (path, content) => ({
    tool: 'apply_patch',
    input: { patch: `*** Begin Patch\n*** Add File: ${path}\n+${content}\n*** End Patch\n` },
  }),
  read: (path) => ({ tool: 'exec_command', input: { cmd: `cat '${path}'`, yield_time_ms: 30_000 } }),
}

export type AgentJson = {
  readonly name: string
  readonly state: string
  readonly spawn: string
  readonly item: number | null
  readonly session: { readonly kind: SessionKind; readonly pid: number } | null
  readonly environment: { readonly path: string; readonly branch: string }
}

export type ProgramWorld = ServerWorld & {
  readonly model: ModelServer
  readonly repo: TestRepo & { readonly origin: string }
  /** Adds an item and slings it by the command line. */
  start(title: string): Promise<AgentJson>
  /** The last request of the model's own conversation that contains this. */
  asked(part: string): Promise<Asked>
  /** By its number; -1 is the last one. */
  request(number: number): Asked
  agents(): Promise<readonly AgentJson[]>
  /** What `coppice` prints; it has to succeed. */
  coppice(...words: string[]): Promise<string>
  /** A file in the directory of the agent's session. */
  sessionFile(agent: string, name: string): string
  /** Nothing of this life of the agent is running, and no session is listed. */
  expectGone(agent: AgentJson): Promise<void>
}

export type ProgramWorldOptions = {
  readonly program: FleetProgram
  readonly kind: SessionKind
  readonly script: Script
  readonly wake?: 'resume' | 'fresh'
  /** More than an empty home directory: what a user has set up. */
  readonly user?: (userHome: string) => void
  readonly agent?: string
}

export const makeProgramWorld = async (options: ProgramWorldOptions): Promise<ProgramWorld> => {
  const { program, kind, script, wake = 'resume' } = options
  const world = makeServerWorld()
  const { box, home, env } = world
  // Codex's sandbox may write to the temporary directory, which mustn't be around everything else.
  mkdirSync(box.path('tmp'))
  env['TMPDIR'] = box.path('tmp')
  // As of a server without a terminal: the session's is another.
  env['TERM'] = 'dumb'
  const model = await program.serve(script)
  Object.assign(env, program.prepare(box.home, model.url))
  options.user?.(box.home)
  const pools = `workers: { max: 3, done: push, names: [alder, beech, cedar], wake: ${wake} }`
  writeFileSync(
    join(home, 'config.yaml'),
    `worktrees: { spares: 0 }
agent: { default: ${program.name}, ${program.name}: { command: "${programs()[program.name]}" }${options.agent ?? ''} }
fleet: { session: ${kind}, pools: { ${pools} } }
`,
  )
  const repo = await world.project()
  const coppice = async (...words: string[]): Promise<string> => {
    const { code, out, err } = await world.cli(repo.path, ...words)
    if (code !== 0) throw new Error(`coppice ${words.join(' ')}: exit code ${code}\n${out}\n${err}`)
    return out
  }
  const sessions = (): string => {
    const socket = join(home, 'fleet', 'tmux')
    if (!existsSync(socket)) return ''
    try {
      return execFileSync('tmux', ['-S', socket, 'list-sessions'], { encoding: 'utf8', stdio: 'pipe' })
    } catch {
      return ''
    }
  }
  const agents = async (): Promise<readonly AgentJson[]> =>
    (await world.json<{ agents: AgentJson[] }>(repo.path, 'fleet', 'status')).agents
  return {
    ...world,
    model,
    repo,
    coppice,
    agents,
    start: async (title) => {
      const { id } = await world.json<{ id: number }>(repo.path, 'item', 'add', title)
      return world.json<AgentJson>(repo.path, 'sling', String(id))
    },
    asked: (part) =>
      until(`the model hears ${part}`, async () => model.asked.findLast(({ whole }) => whole.includes(part)), 60_000),
    request: (number) => {
      const asked = model.asked.at(number)
      if (asked === undefined) throw new Error(`the model was asked ${model.asked.length} times`)
      return asked
    },
    sessionFile: (agent, name) => join(home, 'fleet', 'agents', agent, name),
    expectGone: async ({ name, spawn, environment }) => {
      await until(
        `${name} is gone`,
        async () => ((await agents()).every((one) => one.name !== name) ? true : undefined),
        30_000,
      )
      const { rows, complete } = await processesOfRuns([agentMark(home, spawn)])
      expect({ rows, complete }).toEqual({ rows: [], complete: true })
      expect([existsSync(environment.path), sessions()]).toEqual([false, expect.not.stringContaining(name)])
    },
    [Symbol.asyncDispose]: async () => {
      await world.cli(repo.path, 'fleet', 'down', '--grace', '0')
      try {
        execFileSync('tmux', ['-S', join(home, 'fleet', 'tmux'), 'kill-server'], { stdio: 'ignore' })
      } catch {
        // None was started, or it ended with its last session.
      }
      await model[Symbol.asyncDispose]()
      await world[Symbol.asyncDispose]()
    },
  }
}

export const textIn = (file: string): string | undefined =>
  existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined

/** A person's terminal in which they have typed a command of `coppice`: a tmux of their own. */
export type Terminal = {
  screen(): string
  press(key: string): void
  type(text: string): void
  [Symbol.asyncDispose](): Promise<void>
}

export const openTerminal = async ({ box, home, env }: ServerWorld, ...words: string[]): Promise<Terminal> => {
  const tmux = (...args: string[]): string =>
    execFileSync('tmux', ['-S', box.path('terminal'), '-f', '/dev/null', '-u', ...args], {
      encoding: 'utf8',
      env: { ...env, TERM: 'xterm-256color' },
    })
  const command = [process.execPath, built('src/main.ts'), ...words, '--home', home]
  tmux('new-session', '-d', '-s', 'person', '-x', '150', '-y', '40', '--', ...command)
  return {
    screen: () => tmux('capture-pane', '-p', '-t', 'person'),
    press: (key) => void tmux('send-keys', '-t', 'person', key),
    type: (text) => void tmux('send-keys', '-l', '-t', 'person', text),
    [Symbol.asyncDispose]: async () => void tmux('kill-server'),
  }
}
