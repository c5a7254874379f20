import type { ReadStream, WriteStream } from 'node:tty'
import type { Workplace } from '../../commands/command.ts'
import type { View } from '../../commands/views/view.ts'
import type { CodebaseId } from '../../domain/names.ts'
import { fleetSnapshot, watchedTrees, type WatchRow } from '../../fleet/watch/snapshot.ts'
import { createTreeFacts } from '../../fleet/watch/tree-facts.ts'
import { runInForeground } from '../../process/attach.ts'
import type { CliCall } from '../cli-call.ts'
import { attachCommandOf } from '../commands/attach.ts'
import { createActions, replaced } from './actions.ts'
import type { LinePaint } from './line.ts'
import { pictureOf } from './present.ts'
import { describeAction } from './questions.ts'
import { reduce } from './reduce.ts'
import { render } from './render.ts'
import { openScreen, type Screen } from './screen.ts'
import { type Effect, type Event, initialState, type State, type Target } from './state.ts'

export type WatchOptions = {
  readonly workplace: Workplace
  readonly call: CliCall
  readonly codebaseId: CodebaseId | undefined
  readonly view: () => View
  readonly paint: LinePaint
  readonly input: ReadStream
  readonly output: WriteStream
  /** What we are waiting for, once the screen is restored. */
  readonly progress: (message: string) => void
}

const TICK_MS = 1_000
/** Listing tmux's sessions is one process. */
const REFRESH_MS = 2_000
const FACTS_MS = 3_000
const PEEK_LINES = 500

/**
 * Shows the fleet until a key, a signal or the end of the terminal. Resolves when nothing it began is running, to what
 * came of the actions that were still running then.
 */
export const watchFleet = async (options: WatchOptions): Promise<readonly string[]> => {
  const { workplace, call, codebaseId, view } = options
  const { clock, log } = workplace.context
  const fleet = await workplace.fleet()
  const actions = createActions(workplace, call, view())
  const facts = createTreeFacts(workplace.context)
  const ending = new AbortController()
  const ended = new Promise<void>((resolve) => ending.signal.addEventListener('abort', () => resolve()))
  const quit = (): void => ending.abort()
  const pending = new Set<Promise<void>>()
  const late: string[] = []
  let rows: readonly WatchRow[] = []
  let isDrawing = false

  const screen: Screen = openScreen({
    ...options,
    onKey: (key) => dispatch({ kind: 'key', key }),
    onResized: () => setImmediate(() => dispatch({ kind: 'resized', size: screen.size() })),
    onLost: quit,
  })
  let state: State = initialState({ now: clock(), size: screen.size() })

  const dispatch = (event: Event): void => {
    if (ending.signal.aborted) return
    const step = reduce(state, event)
    state = step.state
    for (const effect of step.effects) carryOut(effect)
    if (isDrawing) return
    // Once for all events of this turn.
    isDrawing = true
    setImmediate(() => {
      isDrawing = false
      if (!ending.signal.aborted) screen.draw(render(state))
    })
  }

  /** Awaited at the end, because the store is closed then. */
  const inBackground = (work: Promise<void>): void => {
    const tracked = work.catch((error: unknown) => {
      log.warn('fleet watch', { error })
      dispatch({ kind: 'message', message: actions.failure(error) })
    })
    pending.add(tracked)
    void tracked.finally(() => pending.delete(tracked))
  }

  const carryOut = (effect: Effect): void => {
    switch (effect.kind) {
      case 'quit':
        return quit()
      case 'redraw':
        return screen.forget()
      case 'suspend':
        return inBackground(screen.suspend())
      case 'attach':
        return inBackground(attachTo(effect.agent))
      case 'peek':
        return inBackground(peekAgain(effect.agent))
      case 'run':
        return inBackground(
          actions.perform(effect.action).then((done) => {
            if (ending.signal.aborted) late.push(done.message.text)
            dispatch({ kind: 'finished', number: effect.number, ...done })
            return refresh()
          }),
        )
    }
  }

  const attachTo = async ({ id, name }: Target): Promise<void> => {
    try {
      const { agent, command, env } = await attachCommandOf(fleet, name)
      if (agent.id !== id) throw replaced(name)
      let exitCode = 0
      await screen.lend(async () => {
        exitCode = await runInForeground(command, env)
      })
      const text = exitCode === 0 ? `Detached from ${name}.` : `${name}'s terminal was closed (exit code ${exitCode}).`
      dispatch({ kind: 'message', message: { text, tone: exitCode === 0 ? 'plain' : 'bad' } })
    } catch (error) {
      dispatch({ kind: 'message', message: actions.failure(error) })
    }
    await refresh()
  }

  const peekAgain = async (agent: Target): Promise<void> => {
    const lines = await actions.peek(agent, PEEK_LINES)
    if (lines !== undefined) dispatch({ kind: 'peeked', agent, lines })
  }

  const refresh = async (): Promise<void> => {
    try {
      const snapshot = await fleetSnapshot(fleet, facts, { codebaseId })
      rows = snapshot.rows
      dispatch({ kind: 'picture', picture: pictureOf(snapshot, view()) })
    } catch (error) {
      dispatch({ kind: 'problem', why: actions.failure(error).text })
    }
  }

  const askGit = async (): Promise<void> => {
    if ((await facts.refresh(await watchedTrees(fleet, rows), ending.signal)) > 0) await refresh()
  }

  const every = (intervalMs: number, work: () => Promise<void> | undefined): void => {
    let isRunning = false
    const timer = setInterval(() => {
      const begun = isRunning || !screen.isOpen() ? undefined : work()
      if (begun === undefined) return
      isRunning = true
      inBackground(begun.finally(() => (isRunning = false)))
    }, intervalMs)
    ending.signal.addEventListener('abort', () => clearInterval(timer))
  }

  try {
    if (call.signal.aborted) quit()
    call.signal.addEventListener('abort', quit)
    dispatch({ kind: 'resized', size: screen.size() })
    inBackground(refresh().then(askGit))
    every(TICK_MS, () => {
      dispatch({ kind: 'tick', now: clock() })
      return undefined
    })
    every(TICK_MS, () => (state.view.kind === 'peek' ? peekAgain(state.view.agent) : undefined))
    every(REFRESH_MS, refresh)
    every(FACTS_MS, askGit)
    await ended
  } finally {
    ending.abort()
    call.signal.removeEventListener('abort', quit)
    screen.close()
    if (state.running.length > 0) options.progress(state.running.map(({ action }) => describeAction(action)).join(', '))
    await Promise.all(pending)
  }
  return late
}
