import type { AgentQuestion, AgentRequest } from '../agents/agent.ts'
import type { ConversationKey, InboxMessage } from '../store/store.ts'
import type { ConversationsContext } from './context.ts'
import { resumingNotice } from './notices.ts'
import type { WhileWaiting } from './inbox/run-slots.ts'
import { replyTarget, type NewReply, recordReplies } from './outbox/replies.ts'

/** Questions that running agents ask. In memory only: after a crash the agent asks again. */
export type Questions = {
  /** Resolves with the answer, or undefined if the run ends first. */
  ask(key: ConversationKey, signal: AbortSignal): Promise<boolean | undefined>
  /** The conversation's oldest question. */
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

/** Posts an agent's question in the thread and waits for `/allow` or `/deny`, without holding a slot. */
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
    // A command line comes from the agent and may contain a key. Redact before truncating: a truncated key can't be
    // recognised.
    const text = questionNotice({ ...question, what: redact(question.what) })
    const wait = async (): Promise<boolean | undefined> => {
      // Listen before posting the question, so that no answer is missed.
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
