import { AppError } from '../../domain/errors.ts'
import type { SessionChoice } from '../../domain/config/fleet.ts'
import type { SessionKind } from '../../domain/fleet/agent.ts'
import { findProgram } from '../../process/find-program.ts'
import type { SessionsContext } from './context.ts'
import { createProcessSessions } from './process-sessions.ts'
import type { SessionKindRules } from './session.ts'
import { createTmuxSessions } from './tmux-sessions.ts'

/** One line per kind. */
const kinds = { tmux: createTmuxSessions, process: createProcessSessions } as const satisfies Record<
  SessionKind,
  (context: SessionsContext) => SessionKindRules
>

export type Sessions = {
  /** For an existing session of this kind. */
  readonly of: (kind: SessionKind) => SessionKindRules
  /** For new sessions. */
  readonly chosen: () => SessionKindRules
  readonly all: () => readonly SessionKindRules[]
}

export const createSessions = (context: SessionsContext, choice: SessionChoice): Sessions => {
  const made = new Map<SessionKind, SessionKindRules>()
  const of = (kind: SessionKind): SessionKindRules => {
    const known = made.get(kind) ?? kinds[kind](context)
    made.set(kind, known)
    return known
  }
  const hasTmux = (): boolean => findProgram('tmux', context.env['PATH']) !== undefined
  return {
    of,
    chosen: () => {
      if (choice === 'tmux' && !hasTmux()) {
        throw new AppError('program-failed', 'tmux is not installed', {
          remedy: 'install it, or set fleet.session to process in config.yaml',
        })
      }
      return of(choice === 'auto' ? (hasTmux() ? 'tmux' : 'process') : choice)
    },
    all: () => (hasTmux() ? [of('tmux'), of('process')] : [of('process')]),
  }
}
