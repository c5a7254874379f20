import type { ClaudePermissionMode } from '../../domain/config/agents.ts'
import type { AgentRequest, AgentRules } from '../agent.ts'

/** How `claude` is called for one message; the message itself comes on standard input. */
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
    // stream-json is refused without it
    '--verbose',
    '--permission-mode',
    permissions.mode,
    ...listed('--allowedTools', permissions.allowed),
    ...listed('--disallowedTools', permissions.denied),
    // Hooks, MCP servers, CLAUDE.md, skills and commands of a stranger's tree; the user's own stay.
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
 * Nobody sits there to be asked, so whatever would be asked about is denied. `acceptEdits` accepts edits inside the
 * directory only, and an `Edit` in the allow-list would be one of any file anywhere: so edits are never in that list.
 * The allow-list means nothing in `bypassPermissions`, so rules that have one never run in that mode.
 */
export const permissionsFor = (rules: AgentRules, mode: ClaudePermissionMode): ClaudePermissions => {
  const wanted = rules.allowedTools.filter(isRule)
  const outside = REACHES_OUTSIDE.filter((rule) => !wanted.includes(rule))
  const denied = [...outside, ...rules.disallowedTools.filter(isRule)]
  const allowed = wanted.filter((rule) => !EDITS.includes(rule))
  if (rules.access === 'read') {
    // A part of Bash may be allowed by name; without that the program has tools of its own to list and search.
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
 * What leaves the environment: the web, other worktrees, what goes on after the run, the machine's own settings. A list
 * against accidents and not a fence: a command can be written in more ways than a list has lines.
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

/** Threat: a "tool" in a repository's command that is an option of the program. */
const isRule = (rule: string): boolean => /^[A-Za-z_]/.test(rule)

const listed = (option: string, rules: readonly string[]): string[] => (rules.length === 0 ? [] : [option, ...rules])
