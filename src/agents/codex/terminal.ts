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

/** The first version whose terminals can run in a shared server that outlives them. */
const FIRST_WITH_DAEMON = '0.156.0'

/**
 * Starts Codex in a terminal without any questions. Undefined if nobody is logged in (only `codex exec` doesn't ask
 * about that) or if `askCodex` gets no answer. Writes nothing into the user's configuration.
 */
export const codexInTerminal = async (
  request: InteractiveRequest,
  { command, installed, sandbox, config }: CodexTerminal,
): Promise<InteractiveProgram | undefined> => {
  const { directory, prompt, outside } = request
  const settings = [
    ...sandboxSettings({ sandbox, gitPaths: await findGitPaths(directory), outside }),
    // Codex asks whether to trust each new directory, and every worktree is new.
    directorySetting(directory, 'trusted'),
    'check_for_update_on_startup=false',
    // A dialog that would take the Enter of the next message as its answer.
    'notice.hide_rate_limit_model_nudge=true',
    // Lines that have scrolled away can still be read, by `peek` and by an attached person.
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
 * Codex asks about hooks that are new or have changed. They are turned off, as in `codex exec`. Their hash is recorded
 * as known, because Codex asks about any hook with an unknown hash.
 */
const hooksOff = (hooks: readonly CodexHook[]): readonly string[] => {
  if (hooks.length === 0) return []
  const states = hooks.map(({ key, hash }) => `${quoted(key)}={enabled=false, trusted_hash=${quoted(hash)}}`)
  return [`hooks.state={${states.join(', ')}}`]
}

/** The agent's own thread, not a person's: it is no older than the agent and begins like the agent's first prompt. */
const ownThread = (
  { prompt, since }: Pick<InteractiveRequest, 'prompt' | 'since'>,
  threads: readonly CodexThread[],
): CodexThread | undefined => {
  const opening = prompt.slice(0, prompt.indexOf('. ') + 1)
  return threads.find(({ createdAt, preview }) => createdAt + 1000 > since && preview.trimStart().startsWith(opening))
}
