import { randomUUID } from 'node:crypto'
import { done } from '../../commands/fleet/done.ts'
import { prime } from '../../commands/fleet/prime.ts'
import { command, isSet, type LoadedCommand, textOf, type Values } from '../../commands/command.ts'
import { faultMessage, faultOf } from '../../commands/views/failure.ts'
import { asProgram, plain, type View } from '../../commands/views/view.ts'
import { AppError } from '../../domain/errors.ts'
import { callerIn } from '../../fleet/caller.ts'
import { agentDirectory } from '../../fleet/sessions/paths.ts'
import {
  askSession,
  giveAnswer,
  REQUESTS,
  type SessionAnswer,
  type SessionRequest,
  takeRequest,
} from '../../fleet/sessions/requests.ts'
import type { CliCall } from '../cli-call.ts'

/** Commands that an agent runs about itself. Inside a sandbox that blocks them, the session runs them instead. */
const throughSession = (
  inner: LoadedCommand,
  requestOf: (values: Values) => SessionRequest,
): LoadedCommand<CliCall> => ({
  execute: async (call) => {
    const requests = call.env[REQUESTS]
    if (requests === undefined) return inner.execute(call)
    const answer = await askSession(requests, requestOf(call.values), { id: randomUUID(), signal: call.signal })
    if ('error' in answer) {
      const { code, message, remedy } = answer.error
      throw new AppError(code, message, remedy === undefined ? {} : { remedy })
    }
    return { text: () => answer.text, json: () => answer.json, exitCode: answer.exitCode }
  },
})

export const ownPrime = throughSession(prime, () => ({ command: 'prime' }))

export const ownDone = throughSession(done, (values) => {
  const mode = textOf(values, 'mode')
  return { command: 'done', ...(mode !== undefined && { mode }), ...(isSet(values, 'close') && { close: true }) }
})

/** Run by the shell around an agent's program, outside the program's sandbox. */
export const answerCommand = command<undefined, CliCall>({
  run: async (call) => {
    const [id = ''] = call.words
    const { context } = await call.open()
    const { agent } = callerIn(call.env)
    if (agent === undefined) throw new AppError('usage', "not inside an agent's session")
    const directory = agentDirectory(context.home, agent)
    const answer = await answerFor(call, takeRequest(directory, id), {
      ...asProgram,
      paint: plain,
      now: context.clock(),
    })
    await giveAnswer(directory, id, answer)
    return undefined
  },
  toText: () => '',
  toJson: () => ({}),
})

const answerFor = async (call: CliCall, request: SessionRequest, view: View): Promise<SessionAnswer> => {
  const { command: name, ...values } = request
  try {
    const answered = await { prime, done }[name].execute({ ...call, words: [], values })
    return { text: answered.text(view), json: answered.json(view), exitCode: answered.exitCode }
  } catch (thrown) {
    const { fault } = faultOf(thrown, call.signal)
    return { error: { code: fault.code, message: faultMessage(fault, view), remedy: fault.remedy } }
  }
}
