import { test } from 'vitest'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import { findProgram } from '../../src/process/find-program.ts'

/** Coppice works without tmux, and so do the tests. A whole run says what it leaves out, and CI installs it. */
export const hasTmux = findProgram('tmux', process.env['PATH']) !== undefined

/** Those that this machine can run. */
export const runnableKinds: readonly [SessionKind, ...SessionKind[]] = hasTmux ? ['tmux', 'process'] : ['process']

/** Of what exists in a terminal only. */
// oxlint-disable-next-line vitest/no-disabled-tests, vitest/valid-title -- a condition, not a title
export const testInTmux = test.runIf(hasTmux)
