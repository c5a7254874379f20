import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import type { Agent, AgentEvent, AgentRequest, AgentResult } from '../../src/agents/agent.ts'
import { createClaudeAgent, type ClaudeAgentOptions } from '../../src/agents/claude/claude.ts'
import { type CodexAgentOptions, createCodexAgent } from '../../src/agents/codex/codex.ts'
import type { ProcessIdentity } from '../../src/domain/process-identity.ts'
import { identifySync } from '../../src/process/identity.ts'
import { type InstalledAgents, installAgents, installPackages } from '../../scripts/install-agents.ts'
import { makeSandbox, type Sandbox, type TestRepo } from '../helpers/repo.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'

export type Stage = {
  readonly box: Sandbox
  readonly repo: TestRepo
  /** The environment: a linked worktree on the branch `work`. */
  readonly directory: string
  [Symbol.dispose](): void
}

/** A repository with a linked worktree, for a user who has nothing but a made-up key. */
export const makeStage = (): Stage => {
  const box = makeSandbox()
  const repo = box.repo('project')
  const { path } = repo.worktree('environment', '-b', 'work')
  return { box, repo, directory: path, [Symbol.dispose]: () => box[Symbol.dispose]() }
}

/** Installing both takes about 20 seconds where the registry is near, and happens once per machine. */
export const INSTALL_TIMEOUT_MS = 600_000

/** Throws, and thereby fails what asked for it, when the programs cannot be had. */
export const programs = (): InstalledAgents => installAgents(process.env)

/** The last Codex with the older form of `codex sandbox`. */
export const olderCodex = (): string => installPackages(process.env, { '@openai/codex': '0.133.0' }, ['codex']).codex

export const claudeAt = (url: string, stage: Stage, options: Partial<ClaudeAgentOptions> = {}): Agent =>
  createClaudeAgent({
    command: programs().claude,
    permissionMode: 'acceptEdits',
    permissions: 'allow',
    silenceMs: 60_000,
    clock: Date.now,
    ids: randomUUID,
    ...options,
    ownEnvironment: {
      ...stage.box.env,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'made-up-key',
      // The tests reach for nothing but loopback.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ...options.ownEnvironment,
    },
  })

export const codexAt = (url: string, stage: Stage, options: Partial<CodexAgentOptions> = {}): Agent =>
  createCodexAgent({
    command: programs().codex,
    sandbox: undefined,
    silenceMs: 60_000,
    clock: Date.now,
    ids: randomUUID,
    ...options,
    ownEnvironment: { ...stage.box.env, CODEX_API_KEY: 'made-up-key', ...options.ownEnvironment },
    config: [...scriptedProvider(url), ...(options.config ?? [])],
  })

/** A provider of its own, without the retries that would make an error take minutes. */
export const scriptedProvider = (url: string): string[] => [
  'model_provider="scripted"',
  `model_providers.scripted={name="scripted", base_url="${url}/v1", wire_api="responses", env_key="CODEX_API_KEY", request_max_retries=0, stream_max_retries=0}`,
  'check_for_update_on_startup=false',
]

export type Told = AgentResult & {
  readonly events: readonly AgentEvent[]
  readonly session: string | undefined
  readonly lines: readonly string[]
  readonly started: readonly ProcessIdentity[]
}

/** One message, and everything that came of it. */
export const tell = async (agent: Agent, stage: Stage, overrides: Partial<AgentRequest> = {}): Promise<Told> => {
  const events: AgentEvent[] = []
  const started: ProcessIdentity[] = []
  const result = await agent.run({
    directory: stage.directory,
    prompt: 'fix the login bug',
    context: undefined,
    session: undefined,
    rules: { access: 'write', allowedTools: [], disallowedTools: [] },
    untrusted: false,
    environment: { ...stage.box.env },
    mark: { id: randomUUID(), cgroup: undefined },
    signal: new AbortController().signal,
    secrets: createSecrets(),
    ...overrides,
    emit: (event) => {
      events.push(event)
      overrides.emit?.(event)
    },
    onStart: async (identity) => {
      started.push(identity)
    },
  })
  return {
    ...result,
    events,
    started,
    session: events.flatMap((event) => (event.type === 'session' ? [event.id] : []))[0],
    lines: events.flatMap((event) => (event.type === 'tool' ? [event.line] : [])),
  }
}

/** The processes whose pids a script writes into this file, once there are so many. */
export const processesIn = async (file: string, count: number): Promise<ProcessIdentity[]> => {
  const pids = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : [])
  while (pids().length < count) await new Promise(setImmediate)
  return pids().flatMap((pid) => identifySync(Number(pid)) ?? [])
}

export const makeDirectory = (path: string): string => {
  mkdirSync(path, { recursive: true })
  return path
}
