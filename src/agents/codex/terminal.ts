import type { CodexSandbox } from '../../domain/config/agents.ts'
import type { InteractiveProgram, InteractiveRequest } from '../agent.ts'
import type { InstalledProgram } from '../installed.ts'
import { askCodex, type CodexHook, type CodexThread } from './app-server.ts'
import { directorySetting, quoted, sandboxSettings } from './arguments.ts'
import { findGitPaths } from './sandbox.ts'
import { isAtLeast } from './version.ts'

export type CodexTerminal = {
  readonly command: string
  readonly installed: InstalledProgram
  readonly sandbox: CodexSandbox
  /** Extra `-c key=value`. */
  readonly config: readonly string[]
}

/** Since then it may run in a server that all its terminals share, and which outlives them. */
const FIRST_WITH_DAEMON = '0.156.0'

/**
 * Codex in a terminal: it starts without a question, and asks none. Undefined if nobody is logged in, which only
 * `codex exec` doesn't ask about, or if Codex can't be asked. Nothing is written into the user's own configuration.
 */
export const codexInTerminal = async (
  request: InteractiveRequest,
  { command, installed, sandbox, config }: CodexTerminal,
): Promise<InteractiveProgram | undefined> => {
  const { directory, prompt, outside } = request
  const settings = [
    ...sandboxSettings({ sandbox, gitPaths: await findGitPaths(directory), outside }),
    // It asks about every directory that it hasn't seen, and each worktree is new.
    directorySetting(directory, 'trusted'),
    'check_for_update_on_startup=false',
    // A choice that would take the next message's Enter.
    'notice.hide_rate_limit_model_nudge=true',
    // What has scrolled away stays readable: for `peek`, and for whoever attaches.
    'tui.alternate_screen="never"',
    ...config,
  ]
  const state = await askCodex(installed, { directory, settings })
  if (state === undefined || state.needsLogin) return undefined
  const { version, unreviewedHooks, threads } = state
  const options = [...settings, ...hooksOff(unreviewedHooks)].flatMap((setting) => ['-c', setting])
  const thread = request.resume ? ownThread(request, threads) : undefined
  return {
    command: [
      command,
      ...(version !== undefined && isAtLeast(version, FIRST_WITH_DAEMON) ? ['--no-daemon'] : []),
      ...(thread === undefined ? [] : ['resume', thread.id]),
      ...options,
      '--',
      prompt,
    ],
    variables: {},
    escapeOnInterrupt: true,
  }
}

/**
 * It asks about hooks that are new or have changed. They stay off, as with `codex exec`; to be asked about, one must have
 * a hash that isn't known.
 */
const hooksOff = (hooks: readonly CodexHook[]): readonly string[] => {
  if (hooks.length === 0) return []
  const states = hooks.map(({ key, hash }) => `${quoted(key)}={enabled=false, trusted_hash=${quoted(hash)}}`)
  return [`hooks.state={${states.join(', ')}}`]
}

/** A person may have used Codex in the worktree, too: the agent's begins with words like these, and since it exists. */
const ownThread = (
  { prompt, since }: Pick<InteractiveRequest, 'prompt' | 'since'>,
  threads: readonly CodexThread[],
): CodexThread | undefined => {
  const opening = prompt.slice(0, prompt.indexOf('. ') + 1)
  return threads.find(({ createdAt, preview }) => createdAt + 1000 > since && preview.trimStart().startsWith(opening))
}
