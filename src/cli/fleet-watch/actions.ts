import { AppError, toAppError } from '../../domain/errors.ts'
import { withFullStop } from '../../domain/text/words.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { LoadedCommand, Values, Workplace } from '../../commands/command.ts'
import { land } from '../../commands/fleet/land.ts'
import { nudge } from '../../commands/fleet/peek-and-nudge.ts'
import { sling } from '../../commands/fleet/sling.ts'
import { itemReopen } from '../../commands/fleet/item-change.ts'
import { failureText } from '../../commands/views/failure.ts'
import { inWords } from '../../commands/views/notices.ts'
import type { View } from '../../commands/views/view.ts'
import { worktreeRestore } from '../../commands/worktree-restore.ts'
import { absentAgent, peekAt } from '../../fleet/peek-and-nudge.ts'
import type { CliCall } from '../cli-call.ts'
import { openLandingStates } from '../../domain/fleet/landing.ts'
import { withdrawLanding } from '../../fleet/landing/withdraw.ts'
import { changerOf } from '../../commands/fleet/scope.ts'
import { fleetDown, fleetUp } from '../commands/fleet-up-down.ts'
import { wakeServer } from '../wake-server.ts'
import { oneLine } from './line.ts'
import type { Action, Message, Target, Undo } from './state.ts'

export type Done = { readonly message: Message; readonly undo?: Undo }

export type Actions = {
  /** Never throws: a failure is a message, too. */
  readonly perform: (action: Action) => Promise<Done>
  /** The last lines of this very agent, even after it is gone. Undefined if another has its name now. */
  readonly peek: (agent: Target, lines: number) => Promise<readonly string[] | undefined>
  readonly failure: (error: unknown) => Message
}

export const replaced = (name: string): AppError =>
  new AppError('not-found', `${name} has finished and is gone; another agent has its name now`)

/** Runs what `coppice` would run for the same words, and says in a line what came of it. */
export const createActions = (workplace: Workplace, call: CliCall, view: View): Actions => {
  const { context } = workplace
  const { store, host } = context

  const failure = (error: unknown): Message => ({
    text: oneLine(context.secrets.redact(failureText(toAppError(error), view, ''))).trim(),
    tone: 'bad',
  })

  const run = async (
    command: LoadedCommand<CliCall>,
    words: readonly string[],
    { values = {}, codebase }: { readonly values?: Values; readonly codebase?: string } = {},
  ): Promise<{ readonly isDone: boolean; readonly text: string }> => {
    const notices: string[] = []
    const answered = await command.execute({
      ...call,
      words,
      values,
      codebase,
      open: async () => workplace,
      notice: (notice) => notices.push(inWords(notice, view)),
    })
    const lines = [answered.text(view), ...notices].flatMap((text) => text.split('\n')).map((line) => line.trim())
    const sentences = lines.map((line, i) => (i === lines.length - 1 ? line : withFullStop(line)))
    const text = oneLine(context.secrets.redactKnown(sentences.join(' ')))
    return { isDone: answered.exitCode === 0, text }
  }

  /** A name goes to another agent when its agent is gone. */
  const assertSame = async ({ id, name }: Target): Promise<FleetAgent> => {
    const found = await store.fleetAgents.byName(host, name)
    if (found?.id === id) return found
    throw found === undefined ? absentAgent(await workplace.fleet(), name) : replaced(name)
  }

  const told = ({ isDone, text }: { readonly isDone: boolean; readonly text: string }, good?: string): Message => ({
    text: isDone ? (good ?? text) : text,
    tone: isDone ? 'good' : 'bad',
  })

  const stop = async (agent: Target): Promise<Done> => {
    const { environmentId } = await assertSame(agent)
    const result = await run(fleetDown, [agent.name])
    const now = await store.fleetAgents.get(agent.id)
    if (!result.isDone || now?.state === 'working') return { message: told({ ...result, isDone: false }) }
    if (now !== undefined && now.state !== 'gone') {
      const undo: Undo = {
        action: { kind: 'start', agent },
        question: `start ${agent.name} again, in its own worktree?`,
      }
      return { message: { text: `Stopped ${agent.name}. Its worktree and item are kept.`, tone: 'good' }, undo }
    }
    const message: Message = { text: `${agent.name} has finished its item and is gone.`, tone: 'good' }
    const left = environmentId === undefined ? undefined : await store.environments.get(environmentId)
    const codebase = left?.status === 'removed' ? await store.codebases.get(left.codebaseId) : undefined
    if (left === undefined || codebase === undefined) return { message }
    const action: Action = { kind: 'restore', environment: left.id, branch: left.branch, codebase: codebase.name }
    return {
      message,
      undo: { action, question: `restore ${agent.name}'s worktree, which was removed with ${left.branch}?` },
    }
  }

  const start = async (agent: Target): Promise<Done> => {
    await assertSame(agent)
    const result = await run(fleetUp, [agent.name])
    const question = `stop ${agent.name} again? Its worktree and item stay.`
    return {
      message: told(result, `Started ${agent.name}.`),
      ...(result.isDone && { undo: { action: { kind: 'stop', agent }, question } }),
    }
  }

  const queue = async (item: number): Promise<Done> => {
    const parked = (await store.items.get(item))?.parked
    const open = { itemId: item, states: openLandingStates, limit: 1 }
    const [before] = await store.landings.list(open)
    const message = told(await run(land, [String(item)]))
    const [landing] = await store.landings.list(open)
    if (landing === undefined || landing.id === before?.id) return { message }
    const action: Action = { kind: 'withdraw', landing: landing.id, item, parked }
    return { message, undo: { action, question: `withdraw item ${item} from the landing queue?` } }
  }

  const send = async (agent: Target, text: string): Promise<Done> => {
    await assertSame(agent)
    return { message: told(await run(nudge, [agent.name, text])) }
  }

  const effect = async (action: Action): Promise<Done> => {
    switch (action.kind) {
      case 'stop':
        return stop(action.agent)
      case 'start':
        return start(action.agent)
      case 'nudge':
        return send(action.agent, action.text)
      case 'continue':
        return { message: told(await run(sling, [String(action.item)])) }
      case 'reopen':
        return { message: told(await run(itemReopen, [String(action.item)])) }
      case 'land':
        return queue(action.item)
      case 'withdraw': {
        const fleet = await workplace.fleet()
        const { landing, parked } = action
        await withdrawLanding(fleet, { landing, parked, by: changerOf(call, fleet) })
        return { message: { text: `Withdrew item ${action.item} from the landing queue.`, tone: 'good' } }
      }
      case 'up':
        return { message: told(await run(fleetUp, [])) }
      case 'restore':
        return { message: told(await run(worktreeRestore, [action.environment], { codebase: action.codebase })) }
    }
  }

  return {
    failure,
    perform: async (action) => {
      try {
        const done = await effect(action)
        await wakeServer(context, { command: 'fleet', first: undefined })
        return done
      } catch (error) {
        return { message: failure(error) }
      }
    },
    peek: async ({ id, name }, lines) => {
      const found = await store.fleetAgents.byName(host, name)
      if (found !== undefined && found.id !== id) return undefined
      return (await peekAt(await workplace.fleet(), name, lines)).split('\n')
    },
  }
}
