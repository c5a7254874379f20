import { join } from 'node:path'
import type { ClaudePermissionMode, Permissions } from '../../domain/config/agents.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import type { InteractiveProgram, InteractiveRequest } from '../agent.ts'
import { permissionsFor } from './arguments.ts'

export type ClaudeTerminal = {
  readonly command: string
  readonly permissionMode: ClaudePermissionMode
  readonly permissions: Permissions
  readonly granted: Readonly<Record<string, string>>
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
}

/**
 * Claude Code in a terminal. It works without asking, as in a conversation; what reaches outside is denied by list.
 *
 * `CLAUDE_CODE_SANDBOXED` skips its question whether the directory is trusted. It asks that for every directory it hasn't
 * seen, so for every worktree, and "No, exit" is preselected. Only worktrees of the repository's own commits get here.
 */
export const claudeInTerminal = async (
  { prompt, sessionId, resume }: InteractiveRequest,
  { command, permissionMode, permissions, ownEnvironment }: ClaudeTerminal,
): Promise<InteractiveProgram> => {
  const rules = { access: 'write', allowedTools: [], disallowedTools: [] } as const
  const { mode, allowed, denied } = permissionsFor(rules, { mode: permissionMode, permissions, asks: true })
  const isKnown = await hasSession(sessionId, ownEnvironment)
  const session = isKnown ? (resume ? ['--resume', sessionId] : []) : ['--session-id', sessionId]
  return {
    command: [
      command,
      '--permission-mode',
      mode,
      ...(allowed.length === 0 ? [] : ['--allowedTools', ...allowed]),
      ...(denied.length === 0 ? [] : ['--disallowedTools', ...denied]),
      ...session,
      '--',
      prompt,
    ],
    variables: { CLAUDE_CODE_SANDBOXED: '1' },
  }
}

/** It refuses to start with the ID of a session that exists, and to resume one that doesn't. */
const hasSession = async (id: string, own: ClaudeTerminal['ownEnvironment']): Promise<boolean> => {
  const home = own['CLAUDE_CONFIG_DIR'] ?? (own['HOME'] === undefined ? undefined : join(own['HOME'], '.claude'))
  if (home === undefined) return false
  const projects = join(home, 'projects')
  for (const { name } of await namesIn(projects)) {
    const sessions = await namesIn(join(projects, name))
    if (sessions.some((session) => session.name === `${id}.jsonl`)) return true
  }
  return false
}

const namesIn = (directory: string): Promise<readonly { readonly name: string }[]> =>
  listDirectory(Buffer.from(directory)).catch(() => [])
