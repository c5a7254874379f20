import type { ClaudePermissionMode, Permissions } from '../../domain/config/agents.ts'
import type { AgentRequest, AgentRules } from '../agent.ts'
import { directoriesOf } from '../attachments.ts'

export type ClaudeCall = {
  readonly mode: ClaudePermissionMode
  readonly permissions: Permissions
  /** Its prompts and questions come as control requests, and we answer them. */
  readonly asks: boolean
  readonly session: string | undefined
}

/** Arguments of `claude` for one message, which goes to stdin. */
export const claudeArguments = (
  { rules, untrusted, attachments, outside }: Pick<AgentRequest, 'rules' | 'untrusted' | 'attachments' | 'outside'>,
  call: ClaudeCall,
): string[] => {
  const permissions = permissionsFor(rules, call)
  const reading = fileRules([...directoriesOf(attachments), ...(outside?.readable ?? [])])
  return [
    '-p',
    '--output-format',
    'stream-json',
    '--input-format',
    'stream-json',
    '--include-partial-messages',
    // Required by stream-json.
    '--verbose',
    '--permission-mode',
    permissions.mode,
    ...(call.asks ? ['--permission-prompt-tool', 'stdio'] : []),
    ...listed('--allowedTools', [...permissions.allowed, ...reading.allowed]),
    ...listed('--disallowedTools', [...permissions.denied, ...reading.denied]),
    // Ignore a stranger's hooks, MCP servers, CLAUDE.md, skills and commands; keep the user's own.
    ...(untrusted ? ['--setting-sources', 'user', '--strict-mcp-config'] : []),
    ...(call.session === undefined ? [] : ['--resume', call.session]),
  ]
}

/** Permission rules for directories outside the worktree. Not --add-dir, which would also allow editing them. */
export const fileRules = (directories: readonly string[]): Pick<ClaudePermissions, 'allowed' | 'denied'> => {
  const plain = directories.filter(isPlainPath)
  return { allowed: plain.map((path) => `Read(/${path}/**)`), denied: plain.map((path) => `Edit(/${path}/**)`) }
}

/** In a rule, other characters would have a meaning. */
const isPlainPath = (path: string): boolean => /^\/[\w./ @+-]+$/.test(path)

export type ClaudePermissions = {
  readonly mode: ClaudePermissionMode | 'default'
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
}

/**
 * `acceptEdits` accepts edits inside the directory only, but an allow-listed `Edit` covers any file anywhere, so edits
 * are never allow-listed. `bypassPermissions` ignores the allow-list, so rules that have one never run in that mode.
 * `dontAsk` also denies questions, so if we answer, `default` takes its place, and we deny the rest.
 */
export const permissionsFor = (
  rules: AgentRules,
  { mode, permissions, asks }: Pick<ClaudeCall, 'mode' | 'permissions' | 'asks'>,
): ClaudePermissions => {
  const wanted = rules.allowedTools.filter(isRule)
  const outside = REACHES_OUTSIDE.filter((rule) => !wanted.includes(rule))
  const planning = mode === 'plan' && rules.access === 'write' && wanted.length === 0
  const denied = [...outside, ...(planning ? [] : PLANS), ...rules.disallowedTools.filter(isRule)]
  const allowed = wanted.filter((rule) => !EDITS.includes(rule))
  const unasked = asks ? 'default' : 'dontAsk'
  if (rules.access === 'read') {
    // Parts of Bash may be allowed by name; otherwise Claude has its own tools to list and search.
    const shell = allowed.some((rule) => rule.startsWith('Bash(')) ? [] : ['Bash']
    return {
      mode: unasked,
      allowed: allowed.filter((rule) => rule !== 'Bash'),
      denied: [...EDITS, ...shell, ...denied],
    }
  }
  const edits = EDITS.filter((rule) => wanted.includes(rule))
  if (wanted.length > 0 && edits.length === 0) return { mode: unasked, allowed, denied: [...EDITS, ...denied] }
  const others = wanted.length === 0 ? [] : EDITS.filter((rule) => !edits.includes(rule))
  if (permissions === 'ask') {
    // Stricter modes stay; the others would do without asking.
    const asking = mode === 'plan' || mode === 'dontAsk' ? mode : 'default'
    return { mode: asking, allowed, denied: [...others, ...denied] }
  }
  if (wanted.length === 0) return { mode, allowed: ['Bash'], denied }
  return { mode: 'acceptEdits', allowed, denied: [...others, ...denied] }
}

export const EDITS: readonly string[] = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

/**
 * Tools that reach outside the environment: the web, other worktrees, work after the run, machine settings. This
 * prevents accidents; it isn't a sandbox, since a command can be written in too many ways.
 */
const REACHES_OUTSIDE: readonly string[] = [
  'WebFetch',
  'WebSearch',
  'EnterWorktree',
  'ExitWorktree',
  'CronCreate',
  'CronDelete',
  'ScheduleWakeup',
  'RemoteTrigger',
  'Bash(sudo *)',
  'Bash(git worktree *)',
  'Bash(git config --global *)',
  'Bash(git config --system *)',
]

/** Offered where somebody can answer; a run that isn't in plan mode doesn't enter it. */
const PLANS: readonly string[] = ['EnterPlanMode', 'ExitPlanMode']

/** Threat: a "tool" in a repository's command that is really a CLI option. */
const isRule = (rule: string): boolean => /^[A-Za-z_]/.test(rule)

const listed = (option: string, rules: readonly string[]): string[] => (rules.length === 0 ? [] : [option, ...rules])
