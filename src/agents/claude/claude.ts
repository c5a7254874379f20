/*
 * Claude Code. In: a request. Out: its JSON lines as events, then the reply, the session and the usage.
 */
import type { Clock, Ids } from '../../domain/clock.ts'
import type { ClaudePermissionMode, Permissions } from '../../domain/config/agents.ts'
import type { Agent, AgentAvailability, AgentRequest, AgentResult, InteractiveRequest } from '../agent.ts'
import { claudeArguments } from './arguments.ts'
import { asksWhileWorking, claudeInTerminal } from './interactive.ts'
import { createClaudeControl } from './control.ts'
import { type ClaudeEnding, createClaudeReader } from './events.ts'
import { claudeMessage } from './message.ts'
import { grantedVariables, type GrantList } from '../granted.ts'
import { askProgram, type InstalledProgram, cacheWhenReady, versionOf } from '../installed.ts'
import { asClause, endFailure, type Failure } from '../program-failure.ts'
import { type ProgramEnd, type ProgramRun, runAgentProgram } from '../program.ts'
import { createReply } from '../reply.ts'
import { resumable } from '../resumable.ts'
import { notInstalled, TRY_LATER } from '../texts.ts'
import { type Remedy, remedy, shell } from '../../domain/remedy.ts'

export type ClaudeAgentOptions = {
  /** A program on PATH, or a path. */
  readonly command: string
  readonly permissionMode: ClaudePermissionMode
  readonly permissions: Permissions
  readonly silenceMs: number
  readonly clock: Clock
  readonly ids: Ids
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
  readonly outputLimitBytes?: number
}

/** Chat messages hold at most 4,000 characters, so this already fills dozens of them. */
const REPLY_LIMIT_BYTES = 100_000

/** The user's own Claude Code, through its documented stream-json interface. */
export const createClaudeAgent = (options: ClaudeAgentOptions): Agent => {
  const granted = grantedVariables(options.ownEnvironment, grants(options.ownEnvironment))
  const installed = { ...options, own: options.ownEnvironment, granted }
  return {
    name: 'claude',
    enforcesReadOnly: true,
    availability: cacheWhenReady(() => availability(installed)),
    run: (request) => resumable(request, (given) => runOnce(options, granted, given)),
    granted,
    ...(!asksWhileWorking(options) && {
      interactive: (request: InteractiveRequest) => claudeInTerminal(request, { ...options, granted }),
    }),
  }
}

const runOnce = async (
  options: ClaudeAgentOptions,
  granted: Readonly<Record<string, string>>,
  request: AgentRequest,
): Promise<AgentResult | 'no-such-session'> => {
  const reply = createReply(options.outputLimitBytes ?? REPLY_LIMIT_BYTES, request)
  const reader = createClaudeReader(request.directory, { reply, emit: request.emit })
  const { permissionMode: mode, permissions, command, clock, silenceMs } = options
  const { ask, session } = request
  const control =
    ask === undefined || permissions === 'deny' || mode === 'dontAsk'
      ? undefined
      : createClaudeControl({ ...request, ask })
  const run: ProgramRun = {
    command,
    args: claudeArguments(request, { mode, permissions, session, asks: control !== undefined }),
    stdin: jsonLine(await claudeMessage(request, options.ids())),
    keepsInput: control !== undefined,
    granted,
    clock,
    silenceMs,
    onEvent: (event, input) => {
      reader.onEvent(event)
      control?.onEvent(event, (response) => input.write(jsonLine(response)))
      // It would wait for another message.
      if (event['type'] === 'result') input.end()
    },
    toolRunning: () => reader.toolRunning() || control?.isAsking() === true,
  }
  const end = await runAgentProgram(run, request)
  const ending = reader.ending()
  // Every request of a session contains its images, so one that the model rejects would end it for good.
  const isUnusable = isUnknownSession(end, ending) || (isRejectedFile(ending) && !reader.hasActed())
  if (request.session !== undefined && isUnusable) return 'no-such-session'
  const text = reply.end()
  const usage = ending === undefined ? {} : { usage: ending.usage }
  if (end.how === 'cancelled') return { outcome: 'cancelled', text, ...usage }
  if (end.how === 'ended' && end.exitCode === 0 && ending?.failed === false) return { outcome: 'done', text, ...usage }
  const failure =
    end.how === 'ended' && ending?.failed === true && ending.message !== ''
      ? reportedFailure({ ...ending, message: request.secrets.redact(ending.message) })
      : endFailure(end, { ...texts, silenceMs, directory: request.directory })
  return { outcome: 'failed', text, ...failure, ...usage }
}

const jsonLine = (value: object): string => `${JSON.stringify(value)}\n`

const isUnknownSession = (end: ProgramEnd, ending: ClaudeEnding | undefined): boolean =>
  end.how === 'ended' && end.exitCode !== 0 && /No conversation found/i.test(`${end.stderr}\n${ending?.message ?? ''}`)

/** `Could not process image`, `image exceeds 5 MB maximum`, `The PDF specified is password protected`. */
const isRejectedFile = (ending: ClaudeEnding | undefined): boolean =>
  ending?.failed === true && ending.apiStatus === 400 && /\b(?:image|pdf)\b/i.test(ending.message)

const texts = {
  title: 'Claude Code',
  install: 'npm install -g @anthropic-ai/claude-code',
  setting: 'COPPICE_CLAUDE_COMMAND (agent.claude.command in config.yaml)',
}

const LOG_IN = 'Start Claude Code on the server and log in (/login), or set ANTHROPIC_API_KEY.'

const reportedFailure = (ending: ClaudeEnding): Failure => ({
  problem: `Claude Code failed: ${asClause(ending.message)}.`,
  remedy: remedyFor(ending),
})

const remedyFor = (ending: ClaudeEnding): Remedy => {
  if (isRejectedFile(ending)) return 'Send the message again without that image or PDF.'
  const { apiStatus, message } = ending
  return apiStatus === 401 || apiStatus === 403 || /api key|log ?in/i.test(message) ? LOG_IN : TRY_LATER
}

const availability = async (installed: InstalledProgram): Promise<AgentAvailability> => {
  const [version, login] = await Promise.all([
    versionOf(installed),
    askProgram(installed, ['auth', 'status']).then((answer) => answer?.stdout ?? ''),
  ])
  if (version === undefined) {
    return { state: 'missing', ...notInstalled(texts, installed.command) }
  }
  // Versions without this command count as logged in; if they aren't, the run says so.
  if (!/"loggedIn":\s*false/.test(login)) return { state: 'ready', version }
  return {
    state: 'logged-out',
    problem: 'Claude Code is not logged in',
    remedy: remedy`run: ${shell('claude auth login')}`,
  }
}

/** Keys, endpoints and behaviour. Not all of CLAUDE_CODE_*: if we run inside a session, its tokens are there. */
const grants = (own: Readonly<Record<string, string | undefined>>): GrantList => ({
  prefixes: ['ANTHROPIC_', 'CLAUDE_CODE_USE_', 'CLAUDE_CODE_SKIP_', 'CLAUDE_CODE_DISABLE_', 'CLAUDE_CODE_MAX_'],
  names: [
    'CLAUDE_CONFIG_DIR',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CODE_API_KEY_HELPER_TTL_MS',
    'CLAUDE_CODE_SUBAGENT_MODEL',
    'CLAUDE_CODE_CLIENT_CERT',
    'CLAUDE_CODE_CLIENT_KEY',
    'API_TIMEOUT_MS',
    'BASH_DEFAULT_TIMEOUT_MS',
    'BASH_MAX_TIMEOUT_MS',
    'MAX_THINKING_TOKENS',
    'DISABLE_TELEMETRY',
    'DISABLE_ERROR_REPORTING',
    'DISABLE_AUTOUPDATER',
    // Cloud credentials open more than a model: granted only if the model is configured to be there.
    ...(own['CLAUDE_CODE_USE_BEDROCK'] === undefined ? [] : AWS),
    ...(own['CLAUDE_CODE_USE_VERTEX'] === undefined ? [] : GOOGLE),
  ],
})

const AWS = [
  'AWS_REGION',
  'AWS_PROFILE',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_BEARER_TOKEN_BEDROCK',
]
const GOOGLE = ['CLOUD_ML_REGION', 'GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT']
