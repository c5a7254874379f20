import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CodexSandbox } from '../../domain/config/agents.ts'
import { readAdminDir, readToken, readWorktreeLink } from '../../git/admin-dir.ts'
import type { AgentRules } from '../agent.ts'
import type { Failure } from '../program-failure.ts'

export type SandboxChoice = {
  readonly rules: AgentRules
  readonly wanted: CodexSandbox | undefined
  /** Whether Codex can sandbox commands here; called only if it matters. */
  readonly sandboxWorks: () => Promise<boolean>
  readonly inContainer: boolean
}

/**
 * A container that can't create namespaces is already a sandbox, so writing is allowed there without a second one.
 * Read-only access relies on Codex's sandbox, so without it the run fails.
 */
export const chooseSandbox = async ({
  rules,
  wanted,
  sandboxWorks,
  inContainer,
}: SandboxChoice): Promise<CodexSandbox | Failure> => {
  const mode = mayWrite(rules) ? (wanted ?? 'workspace-write') : 'read-only'
  if (mode === 'danger-full-access' || (await sandboxWorks())) return mode
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
 * Codex has no tool list but does have a sandbox: rules that leave no writing tool make it read-only. The model is told
 * the rest of the rules.
 */
const mayWrite = ({ access, allowedTools, disallowedTools }: AgentRules): boolean => {
  if (access === 'read') return false
  const allowed = allowedTools.length === 0 || allowedTools.some((rule) => WRITES.test(rule))
  return allowed && !['Edit', 'Write'].every((tool) => disallowedTools.includes(tool))
}

const WRITES = /^(?:Edit|MultiEdit|Write|NotebookEdit|Bash)\b/

/** The repository's files outside the environment, in the git directory that all worktrees share. */
export type GitPaths = {
  /** What a commit writes, without the config and hooks, which other worktrees and the user share. */
  readonly writable: readonly string[]
}

/** Codex protects a `.git` inside its directory, but a clone made by Coppice belongs to the agent. */
const gitPathsOfClone = async (path: string): Promise<GitPaths | undefined> => {
  const gitDir = join(path, '.git')
  return (await readToken(gitDir)) === undefined ? undefined : { writable: [gitDir] }
}

/**
 * Undefined unless this is a linked worktree or one of our clones. The `.git` file must lead back here: an agent can
 * rewrite it.
 */
export const findGitPaths = async (directory: string): Promise<GitPaths | undefined> => {
  try {
    const path = realpathSync(directory)
    if (lstatSync(join(path, '.git')).isDirectory()) return await gitPathsOfClone(path)
    const gitDir = await readWorktreeLink(path)
    const record = gitDir === undefined ? undefined : await readAdminDir(gitDir)
    if (gitDir === undefined || record?.worktreePath !== path || basename(dirname(gitDir)) !== 'worktrees')
      return undefined
    const common = dirname(dirname(gitDir))
    const paths = [gitDir, ...['objects', 'refs', 'logs'].map((name) => join(common, name))]
    return {
      // A link would grant access to somewhere else.
      writable: paths.filter((place) => existsSync(place) && realpathSync(place) === place),
    }
  } catch {
    return undefined
  }
}
