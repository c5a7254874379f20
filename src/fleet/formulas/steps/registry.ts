/*
 * The steps of formulas, one file each. In: the agent, its item and its environment. Out: what was done, or what the
 * agent has to do first.
 */
import type { BuiltInStep, FormulaStep } from '../../../domain/fleet/formula.ts'
import type { Step } from '../step.ts'
import { runCommand } from './command.ts'
import { enqueue } from './enqueue.ts'
import { intent } from './intent.ts'
import { leave } from './leave.ts'
import { notify } from './notify.ts'
import { openPullRequest } from './open-pr.ts'
import { push } from './push.ts'
import { settle } from './settle.ts'
import { validate, validateDiscard } from './validate.ts'

const builtIn: Readonly<Record<BuiltInStep, Step>> = {
  validate,
  'validate-discard': validateDiscard,
  intent,
  push,
  'open-pr': openPullRequest,
  enqueue,
  notify,
  settle,
  leave,
}

export const stepOf = (step: FormulaStep): Step => (typeof step === 'string' ? builtIn[step] : runCommand(step))
