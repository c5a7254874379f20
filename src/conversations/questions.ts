import type { AgentQuestion, AgentRequest } from '../agents/agent.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { resumingNotice } from './notices.ts'
import type { WhileWaiting } from './inbox/run-slots.ts'
import { replyTarget, type NewReply, recordReplies } from './outbox/replies.ts'

/** What agents ask their conversations while they run. Kept in memory: after a crash the question is asked again. */
export type Questions = {
  /** Settles with the answer, or with undefined when the run ends first. */
  ask(key: ConversationKey, signal: AbortSignal): Promise<boolean | undefined>
  /** The oldest question of the conversation. */
  answer(key: ConversationKey, agreed: boolean): 'answered' | 'nothing-asked'
}

export const createQuestions = (): Questions => {
  const open = new Map<string, ((agreed: boolean | undefined) => void)[]>()
  const nameOf = ({ platform, conversationId }: ConversationKey): string => JSON.stringify([platform, conversationId])
  return {
    ask: async (key, signal) => {
      if (signal.aborted) return undefined
      const name = nameOf(key)
      const { promise, resolve } = Promise.withResolvers<boolean | undefined>()
      const onAbort = (): void => resolve(undefined)
      open.set(name, [...(open.get(name) ?? []), resolve])
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        return await promise
      } finally {
        signal.removeEventListener('abort', onAbort)
        const left = (open.get(name) ?? []).filter((one) => one !== resolve)
        if (left.length === 0) open.delete(name)
        else open.set(name, left)
      }
    },
    answer: (key, agreed) => {
      const name = nameOf(key)
      const [first, ...rest] = open.get(name) ?? []
      if (first === undefined) return 'nothing-asked'
      open.set(name, rest)
      first(agreed)
      return 'answered'
    },
  }
}

/** Puts an agent's question into the thread and waits for `/allow` or `/deny`, without keeping a place meanwhile. */
export const askInThread = (
  { isolation, queue, redact, platforms }: Pick<ConversationsContext, 'isolation' | 'queue' | 'redact' | 'platforms'>,
  message: InboxMessage,
  run: { readonly questions: Questions; readonly whileWaiting: WhileWaiting; readonly signal: AbortSignal },
): NonNullable<AgentRequest['ask']> => {
  let count = 0
  return async (question) => {
    count += 1
    const key = `ask:${message.attempts}:${count}`
    const tell = async (one: NewReply): Promise<void> => {
      await recordReplies({ isolation, redact, platforms }, isolation.store, replyTarget(message), [one])
      queue.outboxChanged()
    }
    // A command line is an agent's word like any other, and may have a key in it. Hidden before it is cut: half a key
    // would not be known for one.
    const text = questionNotice({ ...question, what: redact(question.what) })
    const wait = async (): Promise<boolean | undefined> => {
      // The answer is awaited before the question is out: nobody can be faster than we listen.
      const answer = run.questions.ask(message, run.signal)
      await tell({ key, role: 'system', text })
      return answer
    }
    const onFull = (): void => {
      void tell({ key: `${key}:resuming`, role: 'system', text: resumingNotice }).catch((error: unknown) =>
        isolation.log.warn('a notice could not be recorded', { error }),
      )
    }
    return run.whileWaiting(wait, onFull)
  }
}

const questionNotice = ({ agent, what }: AgentQuestion): string =>
  `\`${agent}\` asks for permission: ${what.replaceAll(/\s+/g, ' ').trim().slice(0, 500)}\nReply \`/allow\` or \`/deny\`. It waits for your answer; \`/stop\` ends the run.`
