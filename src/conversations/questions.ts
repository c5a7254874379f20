import type { AgentRequest } from '../agents/agent.ts'
import { type AgentAnswer, type AgentQuestion, isChoice, type QuestionReply, readReply } from '../agents/question.ts'
import type { QuestionOutcome } from '../commands/command.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { questionActions, questionNotice, resumingNotice, unansweredNotice } from './question-texts.ts'
import type { WhileWaiting } from './inbox/run-slots.ts'
import { replyTarget, type NewReply, recordReplies } from './outbox/replies.ts'

/** Questions that running agents ask. In memory only: after a crash the agent asks again. */
export type Questions = {
  /** Resolves with the answer, or undefined if the signal aborts first. `id`: how its buttons name it. */
  ask(key: ConversationKey, question: AgentQuestion, signal: AbortSignal, id?: string): Promise<AgentAnswer | undefined>
  /** To the conversation's oldest question. A reply to a particular one answers no other. */
  answer(key: ConversationKey, reply: QuestionReply): QuestionOutcome
  /** Whether this message just names a choice of the oldest question. */
  isAnswer(key: ConversationKey, text: string): boolean
}

type Open = {
  readonly id: string | undefined
  readonly question: AgentQuestion
  readonly resolve: (answer: AgentAnswer | undefined) => void
}

export const createQuestions = (): Questions => {
  const open = new Map<string, readonly Open[]>()
  const nameOf = ({ platform, conversationId }: ConversationKey): string => JSON.stringify([platform, conversationId])
  const close = (name: string, one: Open): void => {
    const left = (open.get(name) ?? []).filter((other) => other !== one)
    if (left.length === 0) open.delete(name)
    else open.set(name, left)
  }
  return {
    ask: async (key, question, signal, id) => {
      if (signal.aborted) return undefined
      const name = nameOf(key)
      const { promise, resolve } = Promise.withResolvers<AgentAnswer | undefined>()
      const one = { id, question, resolve }
      const onAbort = (): void => resolve(undefined)
      open.set(name, [...(open.get(name) ?? []), one])
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        return await promise
      } finally {
        signal.removeEventListener('abort', onAbort)
        close(name, one)
      }
    },
    answer: (key, reply) => {
      const name = nameOf(key)
      const [first] = open.get(name) ?? []
      if (first === undefined) return { kind: 'nothing-asked' }
      if ('to' in reply && reply.to !== first.id) return { kind: 'other-question' }
      const read = readReply(first.question, reply)
      if (read.kind !== 'answer') return read
      close(name, first)
      first.resolve(read.answer)
      return { kind: 'answered', answer: read.answer }
    },
    isAnswer: (key, text) => {
      const [first] = open.get(nameOf(key)) ?? []
      return first !== undefined && isChoice(first.question, text)
    },
  }
}

export type Asking = {
  readonly questions: Questions
  readonly whileWaiting: WhileWaiting
  readonly signal: AbortSignal
}

/**
 * Posts an agent's questions in the thread, one at a time, so that it is clear what an answer is for. Waits for the
 * answer without holding a slot.
 */
export const askInThread = (
  context: Pick<ConversationsContext, 'isolation' | 'queue' | 'redact' | 'platforms'>,
  message: InboxMessage,
  run: Asking,
): NonNullable<AgentRequest['ask']> => {
  const { isolation, queue, redact, platforms } = context
  let count = 0
  let last: Promise<unknown> = Promise.resolve()
  const tell = async (one: NewReply): Promise<void> => {
    await recordReplies({ isolation, redact, platforms }, isolation.store, replyTarget(message), [one])
    queue.outboxChanged()
  }
  const askOne = async (question: AgentQuestion, ended: AbortSignal): Promise<AgentAnswer | undefined> => {
    if (ended.aborted) return undefined
    count += 1
    const key = `ask:${message.attempts}:${count}`
    const id = isolation.ids().replaceAll('-', '').slice(0, QUESTION_ID_LENGTH)
    const { questionMinutes } = isolation.settings
    const tooLate = AbortSignal.timeout(Math.round(questionMinutes * 60_000))
    const wait = async (): Promise<AgentAnswer | undefined> => {
      // Listen before posting the question, so that no answer is missed.
      const answer = run.questions.ask(message, question, AbortSignal.any([ended, tooLate]), id)
      await tell({
        key,
        role: 'system',
        text: questionNotice(question, redact),
        actions: questionActions(question, id, redact),
      })
      return answer
    }
    const onFull = (): void => {
      void tell({ key: `${key}:resuming`, role: 'system', text: resumingNotice }).catch((error: unknown) =>
        isolation.log.warn('a notice could not be recorded', { error }),
      )
    }
    const answer = await run.whileWaiting(wait, onFull)
    if (answer === undefined && tooLate.aborted && !ended.aborted)
      await tell({ key: `${key}:late`, role: 'system', text: unansweredNotice(questionMinutes) })
    return answer
  }
  return (question, withdrawn) => {
    const ended = withdrawn === undefined ? run.signal : AbortSignal.any([run.signal, withdrawn])
    const answer = last.then(() => askOne(question, ended))
    last = answer.catch(() => undefined)
    return answer
  }
}

/** Too long to guess by accident, short enough for any platform's buttons. */
const QUESTION_ID_LENGTH = 12
