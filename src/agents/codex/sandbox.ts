import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CodexSandbox } from '../../domain/config/agents.ts'
import { readAdminDir, readToken, readWorktreeLink } from '../../git/admin-dir.ts'
import type { AgentRules } from '../agent.ts'
import type { Failure } from '../program-failure.ts'

export type SandboxChoice = {
  readonly rules: AgentRules
  /** As configured. */
  readonly wanted: CodexSandbox | undefined
  /** Whether Codex can fence its commands off here; asked only if it matters. */
  readonly works: () => Promise<boolean>
  readonly inContainer: boolean
}

/**
 * A container without the right to make namespaces is a fence of its own, so writing goes on there without a second one.
 * Reading is a promise that only the sandbox keeps: without it there is none.
 */
export const chooseSandbox = async ({
  rules,
  wanted,
  works,
  inContainer,
}: SandboxChoice): Promise<CodexSandbox | Failure> => {
  const mode = mayWrite(rules) ? (wanted ?? 'workspace-write') : 'read-only'
  if (mode === 'danger-full-access' || (await works())) return mode
  if (mode === 'workspace-write' && wanted === undefined && inContainer) return 'danger-full-access'
  return {
    problem: `Codex can't sandbox its commands on this machine, which ${mode} requires.`,
    remedy:
      mode === 'read-only'
        ? 'Allow user namespaces for the server, or use another agent: /agent.'
        : 'Allow user namespaces for the server, or set agent.codex.sandbox to danger-full-access in config.yaml.',
  }
}

/**
 * Codex knows no list of tools, but it has a fence: rules that leave no tool to write with are read-only. What else they
 * say is told to the model.
 */
const mayWrite = ({ access, allowedTools, disallowedTools }: AgentRules): boolean => {
  if (access === 'read') return false
  const allowed = allowedTools.length === 0 || allowedTools.some((rule) => WRITES.test(rule))
  return allowed && !['Edit', 'Write'].every((tool) => disallowedTools.includes(tool))
}

const WRITES = /^(?:Edit|MultiEdit|Write|NotebookEdit|Bash)\b/

/** Where the repository's own files lie: beside the environment, in the git directory that all its worktrees share. */
export type GitPlaces = {
  /** What a commit writes; not the configuration and not the hooks, which other worktrees and the user share. */
  readonly writable: readonly string[]
}

/** Codex takes a `.git` that lies in its directory for something to protect. A clone that Coppice made is the agent's own. */
const placesOfClone = async (path: string): Promise<GitPlaces | undefined> => {
  const gitDir = join(path, '.git')
  return (await readToken(gitDir)) === undefined ? undefined : { writable: [gitDir] }
}

/** Undefined for what is neither a linked worktree nor a clone of ours, or whose `.git` file does not lead back to it: an agent can rewrite that. */
export const gitPlaces = async (directory: string): Promise<GitPlaces | undefined> => {
  try {
    const path = realpathSync(directory)
    if (lstatSync(join(path, '.git')).isDirectory()) return await placesOfClone(path)
    const gitDir = await readWorktreeLink(path)
    const record = gitDir === undefined ? undefined : await readAdminDir(gitDir)
    if (gitDir === undefined || record?.worktreePath !== path || basename(dirname(gitDir)) !== 'worktrees')
      return undefined
    const common = dirname(dirname(gitDir))
    const places = [gitDir, ...['objects', 'refs', 'logs'].map((name) => join(common, name))]
    return {
      // A link among them would open another place than the one it stands in.
      writable: places.filter((place) => existsSync(place) && realpathSync(place) === place),
    }
  } catch {
    return undefined
  }
}
