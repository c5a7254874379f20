import { command, isSet } from '../../commands/command.ts'
import { explainDone, refusalLines } from '../../commands/views/fleet-refusals.ts'
import { failureText } from '../../commands/views/failure.ts'
import { primerText } from '../../commands/views/primer.ts'
import { asProgram, plain, type View } from '../../commands/views/view.ts'
import type { CheckoutChange } from '../../domain/checkout-change.ts'
import { callerIn } from '../../fleet/caller.ts'
import { runAgentSession, type SessionEvent } from '../../fleet/agent-session.ts'
import type { Done } from '../../fleet/formulas/done.ts'
import { leaveOutside } from '../../fleet/formulas/leave-outside.ts'
import { readInput } from '../../process/input-lines.ts'
import type { CliCall } from '../cli-call.ts'

/** Started by `coppice done` in an agent's session: ends that session and finishes the formula. */
export const leaveCommand = command<string>({
  run: async (call) => {
    const [runId = '', starter = ''] = call.words
    const { outcome } = await leaveOutside(await (await call.open()).fleet(), runId, starter)
    return outcome
  },
  toText: () => '',
  toJson: (outcome) => ({ outcome }),
})

/** Runs in the session of an agent whose program has no terminal interface. */
export const agentSessionCommand = command<undefined, CliCall>({
  run: async (call) => {
    const { context, ...workplace } = await call.open()
    const fleet = await workplace.fleet()
    // A question parks the item while this goes on.
    context.store.events.onRecorded(() => void fleet.wakeServer())
    const view: View = { ...asProgram, paint: plain, now: context.clock() }
    const show = (text: string): void => call.live?.(text)
    const input = readInput(process.stdin)
    await runAgentSession(fleet, callerIn(context.ownEnvironment), {
      next: (unwanted, after) =>
        input.next(AbortSignal.any([call.signal, ...(unwanted === undefined ? [] : [unwanted])]), after),
      queued: () => input.queued(),
      show: (event) => show(eventText(event, view)),
      primed: (primer) => primerText(primer, { ...view, now: context.clock() }),
      signal: call.signal,
      fresh: isSet(call.values, 'fresh'),
    }).finally(() => input.close())
    return undefined
  },
  toText: () => '',
  toJson: () => ({}),
})

/** Text streams as it arrives; everything else gets its own lines. */
const eventText = (event: SessionEvent, view: View): string => {
  switch (event.kind) {
    case 'prompt':
      return `\n> ${event.text}\n\n`
    case 'text':
      return event.text
    case 'tool':
      return `\n  · ${event.text}\n`
    case 'question':
      return `\n${questionText(event)}\n`
    case 'answer-unclear':
      return 'Send the number or the name of a choice.\n'
    case 'ended':
      return `\n${endedText(event)}`
    case 'failed':
      return `\n${failureText(event.error, view)}\n`
    case 'done':
      return doneText(event.done, view)
    case 'waiting':
      return '\nWaiting for a message.\n'
  }
}

const questionText = ({ question }: Extract<SessionEvent, { kind: 'question' }>): string => {
  if (question.kind === 'permission') {
    return [`${question.agent} wants to ${question.what}.`, question.detail ?? '', 'Send yes or no.'].join('\n')
  }
  const choices = question.choices.map(({ label }, i) => `  ${i + 1}. ${label}`)
  return [question.question, ...choices, 'Send a number, a name or your own words.'].join('\n')
}

const endedText = ({ result }: Extract<SessionEvent, { kind: 'ended' }>): string => {
  if (result.outcome === 'limit') return 'The worktree limit is reached.\n'
  if (result.outcome === 'over-budget') return 'The budget is used up.\n'
  return [
    ...(result.problem === undefined ? [] : [result.problem]),
    ...(result.tripped.length === 0 ? [] : [`In the shared checkout: ${result.tripped.map(changeText).join(', ')}`]),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

const changeText = (change: CheckoutChange): string => {
  switch (change.kind) {
    case 'head-moved':
      return `HEAD moved from ${change.from} to ${change.to}`
    case 'unknown':
      return `couldn't be checked: ${change.message}`
    default:
      return `${change.path} (${change.kind})`
  }
}

const doneText = (done: Done, view: View): string => {
  switch (done.outcome) {
    case 'done':
    case 'handed-over':
      return 'Finished: this session ends now.\n'
    case 'busy':
    case 'intended':
    case 'waited-for':
      return 'The item is already being finished.\n'
    case 'not-started':
      return `${refusalLines("Can't finish", [explainDone(done.why, view)], view)}\n`
    case 'refused':
      return `${refusalLines(
        "Can't finish",
        done.why.map((why) => explainDone(why, view)),
        view,
      )}\n`
  }
}
