/*
 * Agents, as a run sees them. In: a prompt with its context, a directory, the rules, and a signal that stops it. Out:
 * events while it works (text, tools, questions), then the reply, the session and the usage.
 */
import type { Launch } from '../domain/program.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { RunMark } from '../process/run-mark.ts'
import type { Remedy } from '../domain/remedy.ts'
import type { AgentAnswer, AgentQuestion } from './question.ts'

/** Implemented by Claude Code, Codex, ACP agents, a command and the demo; all pass one conformance suite. */
export type Agent = {
  readonly name: string
  /** With `access: 'read'` it really can't write: its program denies it. The others are only told. */
  readonly enforcesReadOnly?: true
  /** Is it installed and usable? Called by `coppice agents` and before the default is chosen. */
  availability(): Promise<AgentAvailability>
  /** A closer check that may take seconds, for agents that can report a version or login state. */
  inspect?(): Promise<AgentAvailability>
  /**
   * Works in the directory until done, sending output to `emit` in order. Resolves however the agent ends; when
   * `signal` aborts, its whole process tree is dead before this settles.
   */
  run(request: AgentRequest): Promise<AgentResult>
  /**
   * How to start the program's own terminal interface, to which a person can attach. It must never ask anything,
   * because the next message would be typed as the answer. Missing, or undefined where that can't be ensured: only
   * `run` works.
   */
  interactive?(request: InteractiveRequest): Promise<InteractiveProgram | undefined>
  /** Whether its commands run in a sandbox without network and with writing limited to the worktree. Missing: no. */
  confinesCommands?(): Promise<boolean>
  /** Variables that are passed to its program, such as its model's key. */
  readonly granted?: Readonly<Record<string, string>>
  /** It can't run commands, so Coppice runs `prime` and `done` for it. */
  readonly runsNoCommands?: true
}

export type InteractiveRequest = {
  readonly directory: string
  /** The first message. */
  readonly prompt: string
  /** A UUID for the program's session, so that it can be resumed. */
  readonly sessionId: string
  /** When the agent was created. Earlier sessions in this directory belong to somebody else. */
  readonly since: number
  /** Continue the session, if there is one. */
  readonly resume: boolean
  readonly outside: OutsideDirectories
  /** A private directory for files that the program needs. Deleted with the session. */
  readonly files: string
}

/** Directories outside the worktree that an agent of the fleet needs. */
export type OutsideDirectories = {
  /** For messages that are too long to type. */
  readonly readable: readonly string[]
  /** For requests to the session, if its commands run in a sandbox. */
  readonly writable: readonly string[]
}

export type InteractiveProgram = {
  readonly command: readonly [string, ...string[]]
  /** In addition to `granted`. */
  readonly variables: Readonly<Record<string, string>>
  /** While it waits, Ctrl-C would end it. So an attached person's Ctrl-C is sent as Escape, which only interrupts. */
  readonly escapeOnInterrupt?: true
}

export type AgentAvailability =
  | { readonly state: 'ready'; readonly version: string | undefined }
  /** One sentence on what is missing and one on how to fix it. */
  | { readonly state: 'missing' | 'logged-out'; readonly problem: string; readonly remedy: Remedy }

export type AgentRequest = {
  /** The environment. The agent runs only here. */
  readonly directory: string
  /** The user's exact message. */
  readonly prompt: string
  /** Data, marked as such: earlier messages, an issue's text, whether this is a rerun. */
  readonly context: string | undefined
  /** Files sent with the message. The agent may read them, not change them. */
  readonly attachments?: readonly AgentAttachment[]
  /** The agent's session id from an earlier run in this conversation, to resume. */
  readonly session: string | undefined
  readonly rules: AgentRules
  /** Only in a session of the fleet. */
  readonly outside?: OutsideDirectories | undefined
  /** A stranger's tree (a fork's pull request): its instructions for agents are ignored. */
  readonly untrusted: boolean
  /** The process's whole environment: allow-listed, with the COPPICE_* variables and leased ports. */
  readonly environment: Readonly<Record<string, string>>
  /** How to start a program in the environment (default: directly, in its directory). */
  readonly launch?: Launch | undefined
  /** Put on every process of the run, to find any it leaves behind. */
  readonly mark: RunMark
  readonly signal: AbortSignal
  /** Redacted before a reply or line is cut: half a secret can't be recognized. */
  readonly secrets: Pick<Secrets, 'redact' | 'stream'>
  readonly emit: (event: AgentEvent) => void
  /** Called as soon as the process exists, and awaited before it gets any work. */
  readonly onStart: (process: ProcessIdentity) => Promise<void>
  /**
   * Asks the user. Undefined without an answer: nobody answered in time, the run was stopped, or `withdrawn` aborted.
   * Missing if there is nobody to ask.
   */
  readonly ask?: (question: AgentQuestion, withdrawn?: AbortSignal) => Promise<AgentAnswer | undefined>
}

export type AgentAttachment = {
  /** Absolute, outside the worktree, readable by the run. */
  readonly path: string
  /** The name it was sent with, as the sender wrote it. */
  readonly name: string
  /** As checked by the downloader: "image/png". */
  readonly mediaType: string
  readonly bytes: number
  /** For an image: in pixels. */
  readonly longestSide?: number
  /** Posted by others in the thread, so it is data, not part of the user's message. */
  readonly fromOthers?: true
}

export type AgentRules = {
  /** `read` denies writing tools. */
  readonly access: 'read' | 'write'
  readonly allowedTools: readonly string[]
  readonly disallowedTools: readonly string[]
}

export type AgentEvent =
  /** A piece of the reply; joined, the pieces are the whole reply. */
  | { readonly type: 'text'; readonly text: string }
  /** A short line about one action: "edited src/login.ts". */
  | { readonly type: 'tool'; readonly line: string }
  /** The agent's session id, for resuming. Emitted as soon as it is known, in case of a crash. */
  | { readonly type: 'session'; readonly id: string }
  /** The given session couldn't be resumed, so a new one begins. `unsupported`: the agent can never resume one. */
  | { readonly type: 'session-lost'; readonly why: 'unknown' | 'unsupported' }
  /** The run is read-only, but the agent has no mode that keeps it from writing by itself. */
  | { readonly type: 'not-read-only' }

export type AgentResult = {
  readonly outcome: 'done' | 'failed' | 'cancelled'
  /** The whole reply; if it failed, the reply up to that point. */
  readonly text: string
  /** If it failed: what happened, in one sentence. */
  readonly problem?: string
  /** If it failed: what to do. */
  readonly remedy?: Remedy
  readonly usage?: AgentUsage
}

export type AgentUsage = {
  readonly costUsd?: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly turns?: number
}
