import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { ClaudePermissionMode, Permissions } from '../../domain/config/agents.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import { writeNewFileSync } from '../../process/files/replace-file.ts'
import type { InteractiveProgram, InteractiveRequest } from '../agent.ts'
import { fieldsOf } from '../fields.ts'
import { fileRules, permissionsFor } from './arguments.ts'

export type ClaudeTerminal = {
  readonly command: string
  readonly permissionMode: ClaudePermissionMode
  readonly permissions: Permissions
  readonly granted: Readonly<Record<string, string>>
  readonly ownEnvironment: Readonly<Record<string, string | undefined>>
}

/** In these modes Claude Code asks while it works, which a terminal that nobody watches can't handle. */
export const asksWhileWorking = ({
  permissionMode,
  permissions,
}: Pick<ClaudeTerminal, 'permissionMode' | 'permissions'>): boolean =>
  permissions === 'ask' || permissionMode === 'plan'

/**
 * Starts Claude Code in a terminal, with the permissions that it has in a conversation. A hook denies whatever its mode
 * and rules don't decide, because a dialog would take the Enter of the next message for a yes. Writes nothing into the
 * user's configuration.
 */
export const claudeInTerminal = async (
  { prompt, sessionId, resume, outside, files }: InteractiveRequest,
  terminal: ClaudeTerminal,
): Promise<InteractiveProgram> => {
  const { command, permissionMode, permissions, ownEnvironment } = terminal
  const rules = { access: 'write', allowedTools: [], disallowedTools: [] } as const
  const { mode, allowed, denied } = permissionsFor(rules, { mode: permissionMode, permissions, asks: true })
  const reading = fileRules(outside.readable)
  const session = await sessionArguments(sessionId, resume, ownEnvironment)
  const commandsFile = join(files, 'claude-commands.sh')
  writeNewFileSync(commandsFile, 'unset IS_DEMO CLAUDE_CODE_SANDBOXED\n', { mode: 0o600 })
  return {
    command: [
      command,
      '--permission-mode',
      mode,
      '--settings',
      JSON.stringify(await settingsFor(terminal)),
      '--allowedTools',
      ...allowed,
      ...reading.allowed,
      '--disallowedTools',
      ...denied,
      ...reading.denied,
      ...session,
      '--',
      prompt,
    ],
    variables: { ...startsWithoutQuestions, CLAUDE_ENV_FILE: commandsFile },
  }
}

/**
 * `IS_DEMO` skips the questions at startup: first-run setup, new terms, the repository's MCP servers (which then stay
 * off), imports in its CLAUDE.md. `CLAUDE_CODE_SANDBOXED` marks the directory as trusted, as `claude -p` always does;
 * only worktrees with the repository's own commits get here. The agent's commands get neither variable.
 */
const startsWithoutQuestions = {
  IS_DEMO: '1',
  CLAUDE_CODE_SANDBOXED: '1',
  // Otherwise it asks whether to summarize a large session that is resumed after 70 minutes.
  CLAUDE_CODE_RESUME_THRESHOLD_MINUTES: '1000000000',
  DISABLE_COST_WARNINGS: '1',
  CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY: '1',
  // In the normal screen, lines that have scrolled away can still be read, by `peek` and by an attached person.
  CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN: '1',
} as const

const DENIED = 'Nobody is at this terminal, so this was not allowed. Continue without it.'

const settingsFor = async (terminal: ClaudeTerminal): Promise<object> => {
  const decision = { behavior: 'deny', message: DENIED }
  const answer = JSON.stringify({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision } })
  const hook = { type: 'command', command: `printf '%s' ${shellWord(answer)}` }
  return {
    hooks: { PermissionRequest: [{ matcher: '*', hooks: [hook] }] },
    ...((await needsKeyHelper(terminal)) && { apiKeyHelper: `printenv ${KEY}` }),
  }
}

const KEY = 'ANTHROPIC_API_KEY'

/**
 * In a terminal, Claude Code asks before it uses an API key from the environment; `claude -p` doesn't. A helper avoids
 * the question for a key that the user has neither approved nor rejected.
 */
const needsKeyHelper = async ({ granted, ownEnvironment: own }: ClaudeTerminal): Promise<boolean> => {
  const key = granted[KEY]
  if (key === undefined || key === '') return false
  const home = own['CLAUDE_CONFIG_DIR'] ?? own['HOME']
  const text = home && (await readUntrustedText(join(home, '.claude.json'), CONFIGURATION).catch(() => undefined))
  try {
    const answers = fieldsOf(fieldsOf(JSON.parse(text ?? '{}'))['customApiKeyResponses'])
    const known = [answers['approved'], answers['rejected']].flat()
    return !known.includes(key.slice(-KEY_END))
  } catch {
    return true
  }
}

/** The user's file, which has an entry per project. */
const CONFIGURATION = { followLink: true, maxBytes: 50_000_000 }

/** Claude Code stores only the end of a key. */
const KEY_END = 20

/**
 * Claude Code refuses to start a session whose ID exists, and to resume one that doesn't exist. It does both with a
 * session that ended before its first message, so that one gets another ID.
 */
const sessionArguments = async (
  id: string,
  resume: boolean,
  own: ClaudeTerminal['ownEnvironment'],
): Promise<readonly string[]> => {
  for (let attempt = 0; attempt < MOST_UNUSED; attempt += 1) {
    const candidate = attempt === 0 ? id : derivedId(id, attempt)
    const file = await sessionFile(candidate, own)
    if (file === undefined) return ['--session-id', candidate]
    if (await hasMessages(file)) return resume ? ['--resume', candidate] : []
  }
  return []
}

const MOST_UNUSED = 20

/** Always the same for one ID, so that the next start finds the session. */
const derivedId = (id: string, attempt: number): string => {
  const hex = createHash('sha256').update(`${id}:${attempt}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** An unreadable or long file counts as a session with messages. */
const hasMessages = async (file: string): Promise<boolean> => {
  const text = await readUntrustedText(file, { maxBytes: BEGINNING }).catch(() => undefined)
  return text === undefined || /"type":\s?"user"/.test(text)
}

/** Before the first message, the file is far shorter. */
const BEGINNING = 64_000

const sessionFile = async (id: string, own: ClaudeTerminal['ownEnvironment']): Promise<string | undefined> => {
  const home = own['CLAUDE_CONFIG_DIR'] ?? (own['HOME'] === undefined ? undefined : join(own['HOME'], '.claude'))
  if (home === undefined) return undefined
  const projects = join(home, 'projects')
  for (const { name } of await namesIn(projects)) {
    const sessions = await namesIn(join(projects, name))
    if (sessions.some((session) => session.name === `${id}.jsonl`)) return join(projects, name, `${id}.jsonl`)
  }
  return undefined
}

const namesIn = (directory: string): Promise<readonly { readonly name: string }[]> =>
  listDirectory(Buffer.from(directory)).catch(() => [])
