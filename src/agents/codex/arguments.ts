import { existsSync } from 'node:fs'
import type { CodexSandbox } from '../../domain/config/agents.ts'
import type { AgentAttachment, AgentRequest, InteractiveRequest } from '../agent.ts'
import { isImage, isOwn } from '../attachments.ts'
import type { GitPaths } from './sandbox.ts'

export type CodexCall = {
  readonly sandbox: CodexSandbox
  readonly gitPaths: GitPaths | undefined
  /** Extra `-c key=value`. */
  readonly config: readonly string[]
}

type CodexRequest = Pick<AgentRequest, 'directory' | 'session' | 'untrusted' | 'attachments'>

/** Arguments of `codex exec` for one message, which goes to stdin. */
export const codexArguments = (
  { directory, session, untrusted, attachments = [] }: CodexRequest,
  { sandbox, gitPaths, config }: CodexCall,
): string[] => {
  const settings = [
    // Settings rather than options: `resume` doesn't accept all of the options.
    `sandbox_mode=${quoted(sandbox)}`,
    // Nobody is there to answer prompts.
    'approval_policy="never"',
    ...(sandbox === 'workspace-write' && gitPaths !== undefined
      ? [`sandbox_workspace_write.writable_roots=[${gitPaths.writable.map(quoted).join(', ')}]`]
      : []),
    ...(untrusted ? distrust(directory) : []),
    ...config,
  ]
  return [
    'exec',
    '--json',
    // We decide what counts as a worktree, not Codex.
    '--skip-git-repo-check',
    ...settings.flatMap((setting) => ['-c', setting]),
    ...(session === undefined ? [] : ['resume', session]),
    ...attachments.filter((one) => isOwn(one) && isImage(one)).flatMap(imageOption),
    '-',
  ]
}

/** Arguments of `codex` in a terminal: it starts without a question, and asks none. */
export const codexTerminalArguments = (
  { directory, prompt, resume, writable }: InteractiveRequest,
  { sandbox, gitPaths, config }: CodexCall,
): string[] => {
  const roots = [...(gitPaths?.writable ?? []), ...writable]
  const settings = [
    `sandbox_mode=${quoted(sandbox)}`,
    'approval_policy="never"',
    ...(sandbox === 'workspace-write'
      ? [`sandbox_workspace_write.writable_roots=[${roots.map(quoted).join(', ')}]`]
      : []),
    // It asks about every directory that it hasn't seen, and each worktree is new.
    `projects={${quoted(directory)}={trust_level="trusted"}}`,
    'check_for_update_on_startup=false',
    ...config,
  ]
  const options = settings.flatMap((setting) => ['-c', setting])
  // Of this directory's sessions: a worktree has one agent.
  return resume ? ['resume', '--last', ...options, '--', prompt] : [...options, '--', prompt]
}

/**
 * Joined, since the option takes several values and would take what follows for another image; a comma separates them.
 * An image that is gone would fail the run.
 */
const imageOption = ({ path }: AgentAttachment): string[] =>
  path.includes(',') || !existsSync(path) ? [] : [`--image=${path}`]

/**
 * Ignores a stranger's AGENTS.md, skills and `.codex/` (MCP servers, hooks). Codex trusts the worktrees of a trusted
 * repository unless the worktree itself is listed. In a table, since `-c` splits keys at every dot of a path.
 */
const distrust = (directory: string): string[] => [
  `projects={${quoted(directory)}={trust_level="untrusted"}}`,
  'project_doc_max_bytes=0',
  'skills.include_instructions=false',
]

/** A TOML string: JSON's form, plus DEL, which TOML requires to be escaped. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', String.raw`\u007f`)
