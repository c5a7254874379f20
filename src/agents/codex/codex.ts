/*
 * Codex. In: a request. Out: its JSON lines as events, then the reply, the session and the usage.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock, Ids } from '../../domain/clock.ts'
import type { CodexSandbox } from '../../domain/config/agents.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import { AppError } from '../../domain/errors.ts'
import type {
  Agent,
  AgentAvailability,
  AgentRequest,
  AgentResult,
  AgentRules,
  InteractiveProgram,
  InteractiveRequest,
} from '../agent.ts'
import { codexArguments } from './arguments.ts'
import { type CodexEnding, createCodexReader } from './events.ts'
import { chooseSandbox, findGitPaths } from './sandbox.ts'
import { codexInTerminal } from './terminal.ts'
import { tooOld } from './version.ts'
import { contextOf } from '../attachments.ts'
import { contextBlock } from '../context-block.ts'
import { grantedVariables, type GrantList } from '../granted.ts'
import { askProgram, type InstalledProgram, cacheWhenReady, versionOf } from '../installed.ts'
import { asClause, endFailure, type Failure } from '../program-failure.ts'
import { runAgentProgram } from '../program.ts'
import { createReply } from '../reply.ts'
import { resumable } from '../resumable.ts'
import { notInstalled, TRY_LATER } from '../texts.ts'
import { remedy, shell } from '../../domain/remedy.ts'

export type CodexAgentOptions = {
  /** A program on PATH, or a path. */
  readonly command: string
  readonly sandbox: CodexSandbox | undefined
  readonly silenceMs: number
  readonly clock: Clock
  readonly ids: Ids
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
  readonly outputLimitBytes?: number
  /** Extra `-c` settings for each call. */
  readonly config?: readonly string[]
  readonly inContainer?: boolean
}

/** Chat messages hold at most 4,000 characters, so this already fills dozens of them. */
const REPLY_LIMIT_BYTES = 100_000

/** The user's own Codex, through its non-interactive JSON interface. */
export const createCodexAgent = (options: CodexAgentOptions): Agent => {
  const granted = grantedVariables(options.ownEnvironment, GRANTS)
  const installed = { ...options, own: options.ownEnvironment, granted }
  const parts = { ...options, granted, installed, sandboxWorks: untilTrue(() => sandboxWorks(installed)) }
  return {
    name: 'codex',
    enforcesReadOnly: true,
    availability: cacheWhenReady(() => availability(installed)),
    run: (request) => resumable(request, (given) => runOnce(parts, given)),
    granted,
    interactive: (request) => inTerminal(parts, request),
    confinesCommands: async () => (await sandboxFor(parts, WRITING)) !== 'danger-full-access',
  }
}

type Parts = CodexAgentOptions & {
  readonly granted: Readonly<Record<string, string>>
  readonly installed: InstalledProgram
  readonly sandboxWorks: () => Promise<boolean>
}

const WRITING = { access: 'write', allowedTools: [], disallowedTools: [] } as const

const inTerminal = async (parts: Parts, request: InteractiveRequest): Promise<InteractiveProgram | undefined> => {
  const sandbox = await sandboxFor(parts, WRITING)
  if (typeof sandbox === 'string') return codexInTerminal(request, { ...parts, config: parts.config ?? [], sandbox })
  const { problem, remedy: what } = tooOld(await versionOf(parts.installed), texts) ?? sandbox
  throw new AppError('program-failed', problem, { remedy: what })
}

const sandboxFor = (parts: Parts, rules: AgentRules): Promise<CodexSandbox | Failure> => {
  const { sandbox: wanted, sandboxWorks: works, inContainer = isContainer() } = parts
  return chooseSandbox({ rules, wanted, sandboxWorks: works, inContainer })
}

const runOnce = async (parts: Parts, request: AgentRequest): Promise<AgentResult | 'no-such-session'> => {
  if (request.signal.aborted) return { outcome: 'cancelled', text: '' }
  const { command, clock, ids, silenceMs, granted, config = [] } = parts
  const { rules, directory } = request
  const sandbox = await sandboxFor(parts, rules)
  if (typeof sandbox !== 'string') {
    const failure = tooOld(await versionOf(parts.installed), texts) ?? sandbox
    return { outcome: 'failed', text: '', ...failure }
  }
  const reply = createReply(parts.outputLimitBytes ?? REPLY_LIMIT_BYTES, request)
  const reader = createCodexReader(directory, { reply, emit: request.emit })
  const run = {
    command,
    args: codexArguments(request, { sandbox, gitPaths: await findGitPaths(directory), config }),
    stdin: message(request, ids()),
    granted,
    clock,
    silenceMs,
    onEvent: reader.onEvent,
    toolRunning: reader.toolRunning,
  }
  const end = await runAgentProgram(run, request)
  const ending = reader.ending()
  if (request.session !== undefined && end.how === 'ended' && /no rollout found/i.test(end.stderr)) {
    return 'no-such-session'
  }
  const text = reply.end()
  if (end.how === 'cancelled') return { outcome: 'cancelled', text }
  if (end.how === 'ended' && end.exitCode === 0 && ending?.failed === false) {
    // A resumed thread reports the total of all its messages, so this one's usage is unknown.
    return { outcome: 'done', text, usage: { turns: 1, ...(request.session === undefined ? ending.used : {}) } }
  }
  const failure =
    end.how === 'ended' && ending?.failed === true && ending.message !== ''
      ? reportedFailure({ ...ending, message: request.secrets.redact(ending.message) })
      : endFailure(end, { ...texts, silenceMs, directory })
  return { outcome: 'failed', text, ...failure }
}

/** Codex takes a single text, so the context comes first, marked as data. */
const message = (request: AgentRequest, mark: string): string => {
  const { prompt, rules } = request
  const context = contextOf(request)
  const before = [...toolRules(rules), ...(context === undefined ? [] : [contextBlock(context, mark)])]
  return before.length === 0 ? prompt : [...before, "The user's message:", prompt].join('\n\n')
}

const toolRules = ({ allowedTools, disallowedTools }: AgentRules): string[] => [
  ...(allowedTools.length === 0 ? [] : [`Use only tools and commands that correspond to: ${allowedTools.join(', ')}`]),
  ...(disallowedTools.length === 0
    ? []
    : [`Don't use tools or commands that correspond to: ${disallowedTools.join(', ')}`]),
]

const texts = {
  title: 'Codex',
  install: 'npm install -g @openai/codex',
  setting: 'COPPICE_CODEX_COMMAND (agent.codex.command in config.yaml)',
}

const reportedFailure = ({ message: said }: Extract<CodexEnding, { readonly failed: true }>): Failure => ({
  problem: `Codex failed: ${asClause(said)}.`,
  remedy: /\b40[13]\b|api key|log ?in|unauthorized/i.test(said)
    ? remedy`Run ${shell('codex login')} on the server, or set CODEX_API_KEY.`
    : TRY_LATER,
})

const availability = async (installed: InstalledProgram): Promise<AgentAvailability> => {
  const [version, login, customProvider] = await Promise.all([
    versionOf(installed),
    askProgram(installed, ['login', 'status']),
    hasCustomProvider(installed.own),
  ])
  if (version === undefined) {
    return { state: 'missing', ...notInstalled(texts, installed.command) }
  }
  const outdated = tooOld(version, texts)
  if (outdated !== undefined) return { state: 'missing', ...outdated }
  const loggedOut = /not logged in/i.test(`${login?.stdout ?? ''}${login?.stderr ?? ''}`)
  if (!loggedOut || customProvider || installed.granted['CODEX_API_KEY'] !== undefined)
    return { state: 'ready', version }
  return { state: 'logged-out', problem: 'Codex is not logged in', remedy: remedy`run: ${shell('codex login')}` }
}

/** A custom model provider in Codex's configuration needs no login. */
const hasCustomProvider = async (own: InstalledProgram['own']): Promise<boolean> => {
  const home = own['CODEX_HOME'] ?? (own['HOME'] === undefined ? undefined : join(own['HOME'], '.codex'))
  if (home === undefined) return false
  const text = await readUntrustedText(join(home, 'config.toml'), { followLink: true }).catch(() => undefined)
  return /^[ \t]*model_provider[ \t]*=/m.test(text ?? '')
}

/** On Linux, Codex uses bubblewrap or Landlock, which a container may forbid; elsewhere it is part of the system. */
const sandboxWorks = async (installed: InstalledProgram): Promise<boolean> => {
  if (process.platform !== 'linux') return true
  const answers = async (...form: string[]): Promise<boolean> =>
    (await askProgram(installed, ['sandbox', ...form, '--', 'true']))?.exitCode === 0
  // From 0.45.0 to 0.133.0, the name of the system came first; later versions take it for the command to run.
  return (await answers()) || (await answers('linux'))
}

/** Asks again after a no: Codex may have been updated, or the machine's settings changed. */
const untilTrue = (ask: () => Promise<boolean>): (() => Promise<boolean>) => {
  let known: Promise<boolean> | undefined
  return async () => {
    known ??= ask()
    const answer = await known
    if (!answer) known = undefined
    return answer
  }
}

const isContainer = (): boolean => ['/.dockerenv', '/run/.containerenv'].some((path) => existsSync(path))

/** Keys, endpoints, and where it stores threads. */
const GRANTS: GrantList = {
  names: [
    'CODEX_API_KEY',
    'CODEX_ACCESS_TOKEN',
    'CODEX_HOME',
    'CODEX_CA_CERTIFICATE',
    'OPENAI_API_KEY',
    'OPENAI_BASE_URL',
    'OPENAI_ORGANIZATION',
    'OPENAI_PROJECT',
    'AZURE_OPENAI_API_KEY',
  ],
}
