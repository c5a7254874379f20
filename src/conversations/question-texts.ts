import { type AgentQuestion, choiceAnswer } from '../agents/question.ts'
import { block, printable } from '../commands/views/view.ts'
import type { ReplyAction } from '../domain/message.ts'
import { withoutInvisible } from '../domain/text/visible.ts'
import { counted } from '../domain/text/words.ts'

/**
 * What the agent asks comes from its model and may contain a key. Redact before truncating: half a key can't be
 * recognised.
 */
export const questionNotice = (question: AgentQuestion, redact: (text: string) => string): string => {
  const { agent } = question
  const short = (text: string): string => cut(oneLine(redact(text)), SHOWN_LINE)
  if (question.kind === 'permission') {
    const { what, detail } = question
    return [
      `\`${agent}\` asks for permission: ${short(what)}`,
      ...(detail === undefined ? [] : [block(printable(cut(redact(detail).trim(), SHOWN_DETAIL)), { chat: true })]),
      'Reply `/allow` or `/deny`. It waits for your answer; `/stop` ends the run.',
    ].join('\n')
  }
  const choices = question.choices.map(({ label, description }, at) =>
    short(`${at + 1}. ${label}${description === undefined || description === '' ? '' : `: ${description}`}`),
  )
  const several = question.several ? ' (several: `/answer 1,2`)' : ''
  return [
    `\`${agent}\` asks: ${short(question.question)}`,
    ...choices,
    `Reply with a number${several}, or with \`/answer\` and your own words; \`/deny\` declines. It waits for your answer; \`/stop\` ends the run.`,
  ].join('\n')
}

/** One choice is pressed; several have to be written, since each press would be the whole answer. */
export const questionActions = (
  question: AgentQuestion,
  id: string,
  redact: (text: string) => string,
): readonly ReplyAction[] => {
  if (question.kind === 'permission') {
    return [
      { label: 'Allow once', command: `/allow ${id}`, style: 'primary' },
      { label: 'Deny', command: `/deny ${id}`, style: 'danger' },
    ]
  }
  const choices = question.several ? [] : question.choices
  return [
    ...choices.map(({ label }, at) => ({
      label: buttonLabel(`${at + 1}. ${redact(label)}`),
      command: `/answer ${choiceAnswer(id, at + 1)}`,
    })),
    { label: 'Decline', command: `/deny ${id}` },
  ]
}

const buttonLabel = (text: string): string => {
  const line = oneLine(withoutInvisible(text))
  if (line.length <= SHOWN_LABEL) return line
  // Never half a character.
  return `${line.slice(0, SHOWN_LABEL - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** The whole choice is above the buttons. */
const SHOWN_LABEL = 40

export const unansweredNotice = (minutes: number): string =>
  `No answer within ${minutes % 60 === 0 ? counted(minutes / 60, 'hour') : counted(minutes, 'minute')}: taken as a no.`

const SHOWN_LINE = 500
const SHOWN_DETAIL = 3_000

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** Says how much is missing: nobody should allow what they can't see without knowing it. */
const cut = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `${text.slice(0, most).toWellFormed()}… (${counted(text.length - most, 'more character')})`

/** It was answered, but all slots are taken. */
export const resumingNotice =
  'The concurrency limit is reached. The agent continues with your answer when a slot frees up.'
