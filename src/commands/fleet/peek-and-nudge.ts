import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { nudgeAgent, peekAt } from '../../fleet/peek-and-nudge.ts'
import { type Call, command, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { block, printable, type View } from '../views/view.ts'
import { assertVisibleAgent } from './scope.ts'

const DEFAULT_LINES = 40
const MOST_LINES = 1_000

type Peeked = { readonly agent: string; readonly text: string }

const runPeek = async (call: Call): Promise<Peeked> => {
  const given = textOf(call.values, 'lines') ?? String(DEFAULT_LINES)
  const lines = /^[1-9]\d{0,3}$/.test(given) ? Math.min(Number(given), MOST_LINES) : undefined
  if (lines === undefined)
    throw usage(`invalid --lines ${JSON.stringify(given)}`, `usage: --lines <1 to ${MOST_LINES}>`)
  const workplace = await call.open()
  const [agent = ''] = call.words
  await assertVisibleAgent(call, workplace, agent)
  return { agent, text: await peekAt(await workplace.fleet(), agent, lines) }
}

export const peek = command<Peeked>({
  run: runPeek,
  toText: ({ agent, text }, view: View) =>
    text.trim() === '' ? `${agent} has printed nothing yet.` : block(printable(text), view),
  toJson: ({ agent, text }) => ({ agent, lines: text === '' ? [] : text.split('\n') }),
})

const runNudge = async (call: Call): Promise<FleetAgent> => {
  const workplace = await call.open()
  const [agent = '', ...text] = call.words
  await assertVisibleAgent(call, workplace, agent)
  return nudgeAgent(await workplace.fleet(), agent, text.join(' '))
}

export const nudge = command<FleetAgent>({
  run: runNudge,
  toText: ({ name }) => `Sent to ${name}.`,
  toJson: ({ name }) => ({ agent: name, sent: true }),
})
