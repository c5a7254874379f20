import type { AgentRequest } from '../agent.ts'
import { type Fields, fieldsOf, listOf, textOf } from '../fields.ts'
import type { ProgramEvent } from '../program.ts'
import type { AgentAnswer, AgentQuestion } from '../question.ts'
import { decideTool } from './permissions.ts'

export type ClaudeControl = {
  /** Handles control requests and ignores all other events. */
  readonly onEvent: (event: ProgramEvent, send: (response: object) => void) => void
  /** A question is open, so silence isn't a stall. */
  readonly isAsking: () => boolean
}

type Asks = Pick<AgentRequest, 'directory' | 'rules' | 'signal'> & { readonly ask: NonNullable<AgentRequest['ask']> }

/**
 * Claude Code's permission prompts and questions: a `control_request` on its stdout with a `can_use_tool`, answered by a
 * `control_response` on its stdin (`--permission-prompt-tool stdio`, as the vendor's Agent SDK does).
 */
export const createClaudeControl = (request: Asks): ClaudeControl => {
  const open = new Map<string, AbortController>()
  const answerTool = async (id: string, asked: Fields, withdrawn: AbortSignal): Promise<object> => {
    const decision = await decide(request, asked, withdrawn).catch(() => denial("couldn't ask the user"))
    return withdrawn.aborted ? failure(id, 'withdrawn') : success(id, decision)
  }
  return {
    isAsking: () => open.size > 0,
    onEvent: (event, send) => {
      const id = textOf(event['request_id'])
      if (id === undefined) return
      if (event['type'] === 'control_cancel_request') open.get(id)?.abort()
      if (event['type'] !== 'control_request') return
      const asked = fieldsOf(event['request'])
      if (asked['subtype'] !== 'can_use_tool') {
        send(failure(id, 'not supported'))
        return
      }
      const withdrawn = new AbortController()
      open.set(id, withdrawn)
      void answerTool(id, asked, withdrawn.signal)
        .then(send)
        .finally(() => open.delete(id))
    },
  }
}

const decide = async (request: Asks, asked: Fields, withdrawn: AbortSignal): Promise<object> => {
  const tool = textOf(asked['tool_name']) ?? ''
  const input = fieldsOf(asked['input'])
  const ask = (question: AgentQuestion): Promise<AgentAnswer | undefined> => request.ask(question, withdrawn)
  if (tool === 'AskUserQuestion') return askQuestions(ask, input)
  const reason = textOf(asked['decision_reason_type'])
  const decision = await decideTool({ root: request.directory, rules: request.rules }, { tool, input, reason })
  if ('denied' in decision) return denial(`Not allowed: ${decision.denied}.`)
  const answer = await ask(decision.ask)
  // Stopping answers every question with nothing.
  if (answer?.kind === 'allowed' && !request.signal.aborted) return { behavior: 'allow', updatedInput: input }
  return denial(answer === undefined ? UNANSWERED : 'The user denied this.')
}

/** One after the other; the first that isn't answered ends it. */
const askQuestions = async (
  ask: (question: AgentQuestion) => Promise<AgentAnswer | undefined>,
  input: Fields,
): Promise<object> => {
  const questions = listOf(input['questions']).slice(0, MOST_QUESTIONS)
  const answers: Record<string, string> = {}
  for (const one of questions) {
    const question = textOf(one['question']) ?? ''
    const choices = listOf(one['options']).slice(0, MOST_CHOICES).map(choiceOf)
    const several = one['multiSelect'] === true
    const answer = await ask({ kind: 'choice', agent: 'claude', question, choices, several })
    if (answer?.kind !== 'answered') return denial(answer === undefined ? UNANSWERED : 'The user declined to answer.')
    answers[question] = answer.text
  }
  return questions.length === 0
    ? denial('There was no question.')
    : { behavior: 'allow', updatedInput: { ...input, answers } }
}

const choiceOf = (option: Fields): { readonly label: string; readonly description?: string } => {
  const description = textOf(option['description'])
  return { label: textOf(option['label']) ?? '', ...(description !== undefined && { description }) }
}

/** It asks at most 4 questions with 4 choices each; a program that asks more is broken. */
const MOST_QUESTIONS = 10
const MOST_CHOICES = 20

const UNANSWERED = 'Nobody answered, so this was not allowed.'

const denial = (message: string): object => ({ behavior: 'deny', message })

const success = (id: string, response: object): object => ({
  type: 'control_response',
  response: { subtype: 'success', request_id: id, response },
})

const failure = (id: string, error: string): object => ({
  type: 'control_response',
  response: { subtype: 'error', request_id: id, error },
})
