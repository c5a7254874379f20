import { existsSync } from 'node:fs'
import type { CodexSandbox } from '../../domain/config/agents.ts'
import type { AgentAttachment, AgentRequest } from '../agent.ts'
import { isImage, isOwn } from '../attachments.ts'
import type { GitPaths } from './sandbox.ts'

export type CodexCall = {
  readonly sandbox: CodexSandbox
  readonly gitPaths: GitPaths | undefined
  /** Extra `-c key=value`. */
  readonly config: readonly string[]
}

type CodexRequest = Pick<AgentRequest, 'directory' | 'session' | 'untrusted' | 'attachments' | 'outside'>

/** Arguments of `codex exec` for one message, which goes to stdin. */
export const codexArguments = (
  { directory, session, untrusted, attachments = [], outside }: CodexRequest,
  { sandbox, gitPaths, config }: CodexCall,
): string[] => {
  const settings = [
    ...sandboxSettings({ sandbox, gitPaths, outside }),
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

/** Settings rather than options: `resume` doesn't accept all of the options. */
export const sandboxSettings = ({
  sandbox,
  gitPaths,
  outside,
}: Pick<CodexCall, 'sandbox' | 'gitPaths'> & Pick<AgentRequest, 'outside'>): readonly string[] => {
  const writable = [...(gitPaths?.writable ?? []), ...(outside?.writable ?? [])]
  return [
    `sandbox_mode=${quoted(sandbox)}`,
    // Nobody is there to answer prompts.
    'approval_policy="never"',
    ...(sandbox === 'workspace-write' && writable.length > 0
      ? [`sandbox_workspace_write.writable_roots=[${writable.map(quoted).join(', ')}]`]
      : []),
    // A login shell reads /etc/profile, which on many systems resets PATH and so removes the session's `coppice`.
    ...(outside === undefined ? [] : ['allow_login_shell=false']),
  ]
}

/**
 * Joined, since the option takes several values and would take what follows for another image; a comma separates them.
 * An image that is gone would fail the run.
 */
const imageOption = ({ path }: AgentAttachment): string[] =>
  path.includes(',') || !existsSync(path) ? [] : [`--image=${path}`]

/**
 * Ignores a stranger's AGENTS.md, skills and `.codex/` (MCP servers, hooks). Codex trusts the worktrees of a trusted
 * repository unless the worktree itself is listed.
 */
const distrust = (directory: string): string[] => [
  directorySetting(directory, 'untrusted'),
  'project_doc_max_bytes=0',
  'skills.include_instructions=false',
]

/** As an inline table, because `-c` would split a key at the dots of a path. */
export const directorySetting = (directory: string, trust: 'trusted' | 'untrusted'): string =>
  `projects={${quoted(directory)}={trust_level="${trust}"}}`

/** A TOML string: JSON's form, plus DEL, which TOML requires to be escaped. */
export const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', String.raw`\u007f`)
