import type { CodexSandbox } from '../../domain/config/agents.ts'
import type { AgentRequest } from '../agent.ts'
import type { GitPlaces } from './sandbox.ts'

export type CodexCall = {
  readonly sandbox: CodexSandbox
  readonly places: GitPlaces | undefined
  /** More of `-c key=value`. */
  readonly config: readonly string[]
}

/** How `codex exec` is called for one message; the message itself comes on standard input. */
export const codexArguments = (
  { directory, session, untrusted }: Pick<AgentRequest, 'directory' | 'session' | 'untrusted'>,
  { sandbox, places, config }: CodexCall,
): string[] => {
  const settings = [
    // As settings and not as options: `resume` does not take all of these.
    `sandbox_mode=${quoted(sandbox)}`,
    // Nobody sits there to be asked.
    'approval_policy="never"',
    ...(sandbox === 'workspace-write' && places !== undefined
      ? [`sandbox_workspace_write.writable_roots=[${places.writable.map(quoted).join(', ')}]`]
      : []),
    ...(untrusted ? distrust(directory) : []),
    ...config,
  ]
  return [
    'exec',
    '--json',
    // The environment may be anything that git has as a worktree; whether it is one is for us to know.
    '--skip-git-repo-check',
    ...settings.flatMap((setting) => ['-c', setting]),
    ...(session === undefined ? [] : ['resume', session]),
    '-',
  ]
}

/**
 * A stranger's AGENTS.md, skills and `.codex/` (MCP servers, hooks). Codex trusts a worktree when the user trusts its
 * repository, unless the worktree itself is named; and in a table, since `-c` splits a key at every dot of a path.
 */
const distrust = (directory: string): string[] => [
  `projects={${quoted(directory)}={trust_level="untrusted"}}`,
  'project_doc_max_bytes=0',
  'skills.include_instructions=false',
]

/** A TOML string: as JSON writes it, and DEL too, which TOML does not take as it is. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', String.raw`\u007f`)
