import { parseDocument } from 'yaml'
import { AppError } from '../errors.ts'
import { duration } from '../config/rules.ts'
import { maxConfigLength } from '../config/size.ts'
import { type BuiltInStep, builtInSteps, type Formula, type FormulaStep } from './formula.ts'

/** In `.coppice/formulas/<name>.yaml`. */
const timeout = duration(1_000, 24 * 60 * 60_000, '15m')
const DEFAULT_TIMEOUT_MS = 15 * 60_000
const MOST_STEPS = 50

/** The steps that every formula must have, in this order. */
const required = ['validate', 'intent', 'settle', 'leave'] as const

/**
 * A repository's own formula: `steps:` with names of built-in steps, and `run: <command>` with an optional `timeout`.
 * `file` is for messages.
 */
export const parseFormula = (name: string, text: string, file: string): Formula => {
  const problem = (message: string, remedy?: string): AppError =>
    new AppError('config-invalid', `${file}: ${message}`, remedy === undefined ? {} : { remedy })
  if (text.length > maxConfigLength) throw problem('the file is too long')
  let content: unknown
  try {
    const document = parseDocument(text, { prettyErrors: false })
    const [error] = document.errors
    if (error !== undefined) throw error
    content = document.toJS({ maxAliasCount: 50 })
  } catch (cause) {
    throw new AppError('config-invalid', `${file}: invalid YAML`, { cause, remedy: 'fix the YAML' })
  }
  const { steps: given, ...unknown } = isRecord(content) ? content : {}
  const [other] = Object.keys(unknown)
  if (other !== undefined) throw problem(`unknown key ${JSON.stringify(other.slice(0, 60))}`, 'the only key is `steps`')
  if (!Array.isArray(given) || given.length === 0 || given.length > MOST_STEPS) {
    throw problem(`\`steps\` must be a list of 1 to ${MOST_STEPS} steps`, stepsRemedy)
  }
  const steps = given.map((step: unknown): FormulaStep => {
    const built = builtInSteps.find((one) => one === step)
    if (built !== undefined) return built
    const command = commandStep(step)
    if (command !== undefined) return command
    throw problem(`${JSON.stringify(step)?.slice(0, 80)} isn't a step`, stepsRemedy)
  })
  assertOrder(steps, problem)
  return { name, steps }
}

const stepsRemedy = `steps are ${builtInSteps.join(', ')}, and \`run: <command>\` with an optional \`timeout: 15m\``

const commandStep = (step: unknown): FormulaStep | undefined => {
  if (!isRecord(step)) return undefined
  const { run, timeout: wanted, ...unknown } = step
  if (typeof run !== 'string' || run.trim() === '' || run.includes('\0') || Object.keys(unknown).length > 0)
    return undefined
  const timeoutMs = wanted === undefined ? DEFAULT_TIMEOUT_MS : timeout.read(wanted)
  return timeoutMs === undefined ? undefined : { run, timeoutMs }
}

/** Whether a step changes something that others see. */
const hasEffect: Readonly<Record<BuiltInStep, boolean>> = {
  validate: false,
  'validate-discard': false,
  intent: false,
  push: true,
  'open-pr': true,
  enqueue: true,
  notify: true,
  settle: true,
  leave: true,
}

/** Nothing takes effect before the intent is recorded, and nothing comes between `settle` and `leave`, which is last. */
const assertOrder = (steps: readonly FormulaStep[], problem: (message: string, remedy?: string) => AppError): void => {
  const places = required.map((step) => steps.indexOf(step))
  const inOrder = places.every((place, i) => place >= 0 && place > (places[i - 1] ?? -1))
  const repeated = steps.find((step, i) => typeof step === 'string' && steps.indexOf(step) !== i)
  const early = steps.findIndex((step) => typeof step === 'string' && hasEffect[step])
  const remedy = `${required.join(', ')} are required, once each and in this order; other built-in steps come between intent and settle, and commands anywhere before settle`
  if (!inOrder || steps.at(-1) !== 'leave') throw problem('required steps are missing or out of order', remedy)
  if (typeof repeated === 'string') throw problem(`\`${repeated}\` is listed twice`, remedy)
  const [, intent = 0, settle = 0] = places
  // What failed there could no longer send the agent back to its item.
  if (settle !== steps.length - 2) throw problem('something happens between `settle` and `leave`', remedy)
  if (early >= 0 && early < intent) throw problem('something happens before `intent`', remedy)
  if (steps.includes('validate-discard')) throw problem('`validate-discard` is only for `discard`', remedy)
  const push = steps.indexOf('push')
  for (const step of ['open-pr', 'enqueue'] as const) {
    const at = steps.indexOf(step)
    if (at >= 0 && (push < 0 || at < push || at > settle))
      throw problem(`\`${step}\` must come after \`push\` and before \`settle\``)
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
