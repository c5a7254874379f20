/*
 * The rows of the patrol's table, one per file. In: what one look has seen of an agent, or of the whole fleet. Out:
 * whether it applies, and what was done about it.
 */
import type { Row } from '../row.ts'
import { crashed } from './crashed.ts'
import { formulaFailed } from './formula-failed.ts'
import { freeWorktree } from './free-worktree.ts'
import { hookedByNobody } from './hooked-by-nobody.ts'
import { interruptedDown } from './interrupted-down.ts'
import { interruptedStart } from './interrupted-start.ts'
import { interruptedStop } from './interrupted-stop.ts'
import { leftoverFiles } from './leftover-files.ts'
import { massDeath } from './mass-death.ts'
import { noRestartsLeft } from './no-restarts-left.ts'
import { orphanedHook } from './orphaned-hook.ts'
import { outlivedSession } from './outlived-session.ts'
import { respawn } from './respawn.ts'
import { revived } from './revived.ts'
import { straySession } from './stray-session.ts'
import { straySessions } from './stray-sessions.ts'
import { stuck } from './stuck.ts'
import { unfinishedFormula } from './unfinished-formula.ts'
import { worktreeMissing } from './worktree-missing.ts'
import { zombie } from './zombie.ts'

/** What a process left half done when it died. In order: a formula may still change its agent. */
export const recoveryRows: readonly Row[] = [
  unfinishedFormula,
  interruptedStart,
  interruptedStop,
  interruptedDown,
  orphanedHook,
  leftoverFiles,
]

/** The patrol's table, in order: what has died is recorded before anything is started again. */
export const rows: readonly Row[] = [
  ...recoveryRows,
  straySession,
  straySessions,
  outlivedSession,
  zombie,
  crashed,
  massDeath,
  formulaFailed,
  worktreeMissing,
  hookedByNobody,
  respawn,
  noRestartsLeft,
  freeWorktree,
  revived,
  stuck,
]
