/** What an agent asks the user while it works. Facts only; `conversations/questions.ts` puts them into words. */
export type AgentQuestion =
  | {
      readonly kind: 'permission'
      readonly agent: string
      /** "run a command", "write src/login.ts" */
      readonly what: string
      /** Exactly what would be done, such as the command; shown as it is, line breaks included. */
      readonly detail?: string
    }
  | {
      readonly kind: 'choice'
      readonly agent: string
      readonly question: string
      readonly choices: readonly QuestionChoice[]
      /** More than one of them may be chosen. */
      readonly several: boolean
    }

export type QuestionChoice = { readonly label: string; readonly description?: string }

/** Only `allowed` permits anything. */
export type AgentAnswer =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'denied' }
  /** To a question with choices: the labels chosen, or the user's own words. */
  | { readonly kind: 'answered'; readonly text: string }

/**
 * What a user replied: `/allow`, `/deny`, or `/answer <text>`. `to`: the question's ID, from its button. A button stays
 * in the thread, and must not allow what is asked later.
 */
export type QuestionReply = { readonly to?: string } & ({ readonly agreed: boolean } | { readonly text: string })

/** What the button of a choice answers: `#<ID of the question> <number>`. No one writes that. */
export const choiceAnswer = (questionId: string, number: number): string => `#${questionId} ${number}`

/** What was written, or a button's answer. */
export const answerIn = (words: string): QuestionReply => {
  const [, to, text = ''] = /^#([0-9a-f]{12}) (\d{1,2})$/.exec(words) ?? []
  return to === undefined ? { text: words } : { to, text }
}

/** The answer, or why the reply isn't one. */
export type ReadReply =
  | { readonly kind: 'answer'; readonly answer: AgentAnswer }
  /** `/allow` to a question with choices. */
  | { readonly kind: 'choice-needed'; readonly choices: number }
  /** Words to a request for permission. */
  | { readonly kind: 'permission-needed' }
  | { readonly kind: 'unknown-choice'; readonly choices: number }

export const readReply = (question: AgentQuestion, reply: QuestionReply): ReadReply => {
  if ('agreed' in reply && !reply.agreed) return { kind: 'answer', answer: { kind: 'denied' } }
  if (question.kind === 'permission') {
    return 'agreed' in reply ? { kind: 'answer', answer: { kind: 'allowed' } } : { kind: 'permission-needed' }
  }
  const { choices, several } = question
  if ('agreed' in reply) return { kind: 'choice-needed', choices: choices.length }
  const words = reply.text.trim().slice(0, MAX_ANSWER_LENGTH)
  const parts = several ? words.split(',').map((part) => part.trim()) : [words]
  if (words === '' || parts.some((part) => isNumber(part) && choices[Number(part) - 1] === undefined)) {
    return { kind: 'unknown-choice', choices: choices.length }
  }
  const labels = parts.map((part) => choiceNamed(choices, part))
  // Anything but choices is the user's own words, commas and all.
  const known = labels.filter((label) => label !== undefined)
  const text = known.length === parts.length ? known.join(', ') : words
  return { kind: 'answer', answer: { kind: 'answered', text } }
}

/** A message that is just the number or name of a choice. Other messages aren't taken for an answer. */
export const isChoice = (question: AgentQuestion, text: string): boolean =>
  question.kind === 'choice' &&
  text.length <= MAX_CHOICE_LENGTH &&
  choiceNamed(question.choices, text.trim()) !== undefined

const MAX_ANSWER_LENGTH = 2_000
const MAX_CHOICE_LENGTH = 200

const choiceNamed = (choices: readonly QuestionChoice[], text: string): string | undefined =>
  (isNumber(text)
    ? choices[Number(text) - 1]
    : choices.find(({ label }) => label.trim().toLowerCase() === text.toLowerCase())
  )?.label

const isNumber = (text: string): boolean => /^\d{1,2}$/.test(text)
