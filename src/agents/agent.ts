import type { Launch } from '../domain/program.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { RunMark } from '../process/run-mark.ts'
import type { Remedy } from '../domain/remedy.ts'

/** The seam: Claude Code, Codex, an ACP agent, a command, the demo. One conformance suite over all of them. */
export type Agent = {
  readonly name: string
  /** Is it there, and can it work? Asked by `coppice agents` and before a default is chosen. */
  availability(): Promise<AgentAvailability>
  /** A closer look that may take seconds, where there is more to know: its version, whether it is logged in. */
  inspect?(): Promise<AgentAvailability>
  /**
   * Works in the directory until it is done. What it says on the way goes to `emit`, in order. Resolves for every end
   * that the agent itself can have; when `signal` aborts, its whole process tree is dead before this settles.
   */
  run(request: AgentRequest): Promise<AgentResult>
}

export type AgentAvailability =
  | { readonly state: 'ready'; readonly version: string | undefined }
  /** One sentence of what is missing and one of what fixes it. */
  | { readonly state: 'missing' | 'logged-out'; readonly problem: string; readonly remedy: Remedy }

export type AgentRequest = {
  /** The environment. The agent runs here and nowhere else. */
  readonly directory: string
  /** Exactly what the user said. */
  readonly prompt: string
  /** What surrounds it (earlier messages, an issue's text, that this is a rerun): data, marked as such. */
  readonly context: string | undefined
  /** The agent's own id of an earlier run in this conversation, to go on from. */
  readonly session: string | undefined
  readonly rules: AgentRules
  /** A stranger's tree (a fork's pull request): what it says about how agents work is not obeyed. */
  readonly untrusted: boolean
  /** The whole environment of its process: allow-listed, with the COPPICE_* variables and leased ports in it. */
  readonly environment: Readonly<Record<string, string>>
  /** How a program is started in the environment; undefined: in its directory, as it is. */
  readonly launch?: Launch | undefined
  /** Put on every process of the run, by which what it leaves behind is found. */
  readonly mark: RunMark
  readonly signal: AbortSignal
  /** What must not be said. Hidden here, before a reply or a line is cut: of half a secret nobody knows that it is one. */
  readonly secrets: Pick<Secrets, 'redact' | 'stream'>
  readonly emit: (event: AgentEvent) => void
  /** Called with the process as soon as it exists and awaited before it is given anything to do. */
  readonly onStart: (process: ProcessIdentity) => Promise<void>
  /** Asks the conversation whether the agent may do this; undefined when there is nobody to ask. */
  readonly ask?: (question: AgentQuestion) => Promise<boolean | undefined>
}

export type AgentQuestion = { readonly agent: string; readonly what: string }

export type AgentRules = {
  /** `read`: writing tools are denied. */
  readonly access: 'read' | 'write'
  readonly allowedTools: readonly string[]
  readonly disallowedTools: readonly string[]
}

export type AgentEvent =
  /** A piece of what it says; pieces put together are the reply. */
  | { readonly type: 'text'; readonly text: string }
  /** One short line about what it does: "edited src/login.ts". */
  | { readonly type: 'tool'; readonly line: string }
  /** Its own id, by which it can be resumed. Said as early as it is known: a crash may follow. */
  | { readonly type: 'session'; readonly id: string }

export type AgentResult = {
  readonly outcome: 'done' | 'failed' | 'cancelled'
  /** The whole reply; for `failed` what the agent had said until then. */
  readonly text: string
  /** For `failed`: what happened, in one sentence. */
  readonly problem?: string
  /** For `failed`: what to do about it. */
  readonly remedy?: Remedy
  readonly usage?: AgentUsage
}

export type AgentUsage = {
  readonly costUsd?: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly turns?: number
}
