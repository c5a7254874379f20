import type { ClaudePermissionMode } from '../../domain/config/agents.ts'
import type { AgentRequest, AgentRules } from '../agent.ts'

/** Arguments of `claude` for one message, which goes to stdin. */
export const claudeArguments = (
  { rules, untrusted }: Pick<AgentRequest, 'rules' | 'untrusted'>,
  { mode, session }: { readonly mode: ClaudePermissionMode; readonly session: string | undefined },
): string[] => {
  const permissions = permissionsFor(rules, mode)
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
    ...listed('--allowedTools', permissions.allowed),
    ...listed('--disallowedTools', permissions.denied),
    // Ignore a stranger's hooks, MCP servers, CLAUDE.md, skills and commands; keep the user's own.
    ...(untrusted ? ['--setting-sources', 'user', '--strict-mcp-config'] : []),
    ...(session === undefined ? [] : ['--resume', session]),
  ]
}

export type ClaudePermissions = {
  readonly mode: ClaudePermissionMode
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
}

/**
 * Nobody is there to answer prompts, so anything that would prompt is denied. `acceptEdits` accepts edits inside the
 * directory only, but an allow-listed `Edit` covers any file anywhere, so edits are never allow-listed.
 * `bypassPermissions` ignores the allow-list, so rules that have one never run in that mode.
 */
export const permissionsFor = (rules: AgentRules, mode: ClaudePermissionMode): ClaudePermissions => {
  const wanted = rules.allowedTools.filter(isRule)
  const outside = REACHES_OUTSIDE.filter((rule) => !wanted.includes(rule))
  const denied = [...outside, ...rules.disallowedTools.filter(isRule)]
  const allowed = wanted.filter((rule) => !EDITS.includes(rule))
  if (rules.access === 'read') {
    // Parts of Bash may be allowed by name; otherwise Claude has its own tools to list and search.
    const shell = allowed.some((rule) => rule.startsWith('Bash(')) ? [] : ['Bash']
    return {
      mode: 'dontAsk',
      allowed: allowed.filter((rule) => rule !== 'Bash'),
      denied: [...EDITS, ...shell, ...denied],
    }
  }
  if (wanted.length === 0) return { mode, allowed: ['Bash'], denied }
  const edits = EDITS.filter((rule) => wanted.includes(rule))
  if (edits.length === 0) return { mode: 'dontAsk', allowed, denied: [...EDITS, ...denied] }
  return { mode: 'acceptEdits', allowed, denied: [...EDITS.filter((rule) => !edits.includes(rule)), ...denied] }
}

const EDITS: readonly string[] = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

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

/** Threat: a "tool" in a repository's command that is really a CLI option. */
const isRule = (rule: string): boolean => /^[A-Za-z_]/.test(rule)

const listed = (option: string, rules: readonly string[]): string[] => (rules.length === 0 ? [] : [option, ...rules])
