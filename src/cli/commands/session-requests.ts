import { randomUUID } from 'node:crypto'
import { done } from '../../commands/fleet/done.ts'
import { prime } from '../../commands/fleet/prime.ts'
import { command, isSet, type LoadedCommand, textOf, type Values } from '../../commands/command.ts'
import { faultMessage, faultOf } from '../../commands/views/failure.ts'
import { asProgram, plain, type View } from '../../commands/views/view.ts'
import { AppError } from '../../domain/errors.ts'
import { shared } from '../../commands/table.ts'
import { callerIn, isSupervisor } from '../../fleet/caller.ts'
import { REQUESTS } from '../../domain/fleet/agent.ts'
import { agentDirectory } from '../../fleet/sessions/paths.ts'
import {
  askSession,
  giveAnswer,
  type SessionAnswer,
  type SessionRequest,
  supervisorCommands,
  takeRequest,
} from '../../fleet/sessions/requests.ts'
import type { CliCall } from '../cli-call.ts'

/** Commands that an agent runs about itself. Inside a sandbox that blocks them, the session runs them instead. */
const throughSession = (
  inner: LoadedCommand,
  requestOf: (values: Values, words: readonly string[]) => SessionRequest,
): LoadedCommand<CliCall> => ({
  execute: async (call) => {
    const requests = call.env[REQUESTS]
    if (requests === undefined) return inner.execute(call)
    const answer = await askSession(requests, requestOf(call.values, call.words), {
      id: randomUUID(),
      signal: call.signal,
    })
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

/** Commands that are about other agents or items: in a sandbox, only the fleet's supervisor has some of them. */
export const throughSupervisor = (name: string, inner: LoadedCommand): LoadedCommand<CliCall> =>
  throughSession(inner, (_values, words) => {
    const command = supervisorCommands.find((one) => one === name)
    if (command === undefined) throw new AppError('refused', `\`coppice ${name}\` can't be used in a sandbox`)
    return { command, words: [...words] }
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
  try {
    const answered = await answeredBy(call, request)
    return { text: answered.text(view), json: answered.json(view), exitCode: answered.exitCode }
  } catch (thrown) {
    const { fault } = faultOf(thrown, call.signal)
    return { error: { code: fault.code, message: faultMessage(fault, view), remedy: fault.remedy } }
  }
}

const answeredBy = async (call: CliCall, request: SessionRequest): ReturnType<LoadedCommand['execute']> => {
  if (!('words' in request)) {
    const { command: name, ...values } = request
    return { prime, done }[name].execute({ ...call, words: [], values })
  }
  const { command: name, words } = request
  const { context } = await call.open()
  const row = shared.find((one) => one.name === name)
  if (row === undefined || !(await isSupervisor(context, callerIn(call.env)))) {
    throw new AppError('refused', "only the fleet's supervisor can do this from a sandbox")
  }
  const [fewest, most] = row.words
  if (words.length < fewest || words.length > most) throw new AppError('usage', `wrong number of words for ${name}`)
  return (await row.load()).execute({ ...call, words, values: {} })
}
