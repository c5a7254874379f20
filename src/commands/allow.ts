import { type AgentAnswer, answerIn, type QuestionReply } from '../agents/question.ts'
import { type Call, command, type QuestionOutcome } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'

const replying = (name: string, replyIn: (call: Call) => QuestionReply) =>
  command<QuestionOutcome>({
    run: async (call: Call) => onlyInChat(call, name).controls.answer?.(replyIn(call)) ?? { kind: 'nothing-asked' },
    toText,
    toJson: (outcome) => outcome,
  })

const toText = (outcome: QuestionOutcome): string => {
  if (outcome.kind === 'answered') return textOfAnswer(outcome.answer)
  if (outcome.kind === 'nothing-asked') return 'No pending question.'
  if (outcome.kind === 'other-question') return 'That question is no longer pending.'
  if (outcome.kind === 'permission-needed') return 'This is a request for permission: reply `/allow` or `/deny`.'
  return `Reply with a number from 1 to ${outcome.choices}, or with \`/answer\` and your own words.`
}

const textOfAnswer = (given: AgentAnswer): string => {
  if (given.kind === 'answered') return `Answered: ${given.text}`
  return given.kind === 'allowed' ? 'Allowed once.' : 'Denied.'
}

const agreeing =
  (agreed: boolean) =>
  ({ words: [to] }: Call): QuestionReply => ({ agreed, ...(to !== undefined && { to }) })

export const allow = replying('allow', agreeing(true))
export const deny = replying('deny', agreeing(false))
export const answer = replying('answer', ({ words: [text = ''] }) => answerIn(text))
