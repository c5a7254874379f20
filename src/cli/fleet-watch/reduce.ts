import { edited, inputText } from './input-line.ts'
import type { Key } from './keys.ts'
import { bodyRows, helpText, peekRows } from './layout.ts'
import { askedBy, askUndo, type Asked, describeAction, subjectOf } from './questions.ts'
import {
  type Action,
  type Effect,
  type Event,
  type Row,
  rowsOf,
  selectedRow,
  type State,
  type Step,
  type Undo,
} from './state.ts'

/** The state after an event, and what is to be done now. */
export const reduce = (state: State, event: Event): Step => {
  switch (event.kind) {
    case 'key':
      return pressed(state, event.key)
    case 'picture': {
      const isSelected = event.picture.rows.some(({ key }) => key === state.selected)
      // The row that takes the place of one that is gone.
      const at = Math.min(selectedIndex(state), event.picture.rows.length - 1)
      const selected = isSelected ? state.selected : event.picture.rows[Math.max(0, at)]?.key
      return only(visible({ ...state, picture: event.picture, problem: undefined, selected }))
    }
    case 'problem':
      return only({ ...state, problem: event.why })
    case 'peeked':
      return state.view.kind === 'peek' && state.view.agent.id === event.agent.id
        ? only({ ...state, view: { ...state.view, lines: event.lines } })
        : only(state)
    case 'finished': {
      const running = state.running.filter(({ number }) => number !== event.number)
      const done = state.running.find(({ number }) => number === event.number)
      // Undoing isn't undone in turn; if it failed, it can be tried again.
      const added = done?.undoes === undefined ? event.undo : event.message.tone === 'bad' ? done.undoes : undefined
      const undo = added === undefined ? state.undo : [...state.undo, added].slice(-MOST_UNDO)
      return only({ ...state, running, undo, message: event.message })
    }
    case 'message':
      return only({ ...state, message: event.message })
    case 'resized':
      return only(visible({ ...state, size: event.size }), { kind: 'redraw' })
    case 'tick':
      return only({ ...state, now: event.now })
  }
}

const MOST_UNDO = 50

const only = (state: State, ...effects: readonly Effect[]): Step => ({ state, effects })

const pressed = (state: State, key: Key): Step => {
  if ('name' in key) {
    if (key.name === 'interrupt' && state.prompt === undefined) return only(state, { kind: 'quit' })
    if (key.name === 'suspend') return only(state, { kind: 'suspend' })
    if (key.name === 'redraw') return only(state, { kind: 'redraw' })
  }
  if (state.prompt !== undefined) return answered(state, state.prompt, key)
  // Pasted text isn't keys: it could confirm what nobody meant.
  if ('pasted' in key) return only(state)
  const quiet: State = { ...state, message: undefined }
  if (state.view.kind === 'help') return inHelp(quiet, state.view, key)
  return state.view.kind === 'peek' ? inPeek(quiet, state.view, key) : inList(quiet, key)
}

const answered = (state: State, prompt: NonNullable<State['prompt']>, key: Key): Step => {
  const closed: State = { ...state, prompt: undefined }
  if (prompt.kind === 'confirm') {
    if (!('text' in key) || 'pasted' in key || key.text.toLowerCase() !== 'y') {
      return only({ ...closed, message: { text: 'Cancelled.', tone: 'plain' } })
    }
    return begin(closed, prompt.action, prompt.undoes)
  }
  if ('name' in key && (key.name === 'escape' || key.name === 'interrupt')) {
    return only({ ...closed, message: { text: 'Not sent.', tone: 'plain' } })
  }
  if ('name' in key && key.name === 'enter') {
    const text = inputText(prompt.input).trim()
    return text === '' ? only(state) : begin(closed, { kind: 'nudge', agent: prompt.agent, text })
  }
  return only({ ...state, prompt: { ...prompt, input: edited(prompt.input, key) } })
}

const begin = (state: State, action: Action, undoes?: Undo): Step => {
  const busy = state.running.find((one) => subjectOf(one.action) === subjectOf(action))
  if (busy !== undefined) {
    return only({ ...state, message: { text: `Wait: still ${describeAction(busy.action)}.`, tone: 'bad' } })
  }
  const number = state.started + 1
  const running = [...state.running, { number, action, since: state.now, undoes }]
  const undo = state.undo.filter((one) => one !== undoes)
  return only({ ...state, started: number, running, undo, message: undefined }, { kind: 'run', number, action })
}

const inList = (state: State, key: Key): Step => {
  const moved = movement(key, bodyRows(state.size))
  if (moved !== undefined) return only(moveBy(state, moved))
  if ('name' in key) return key.name === 'enter' ? acting(state, 'p', selectedRow(state)) : only(state)
  if (key.text === 'q') return only(state, { kind: 'quit' })
  return acting(state, key.text, selectedRow(state))
}

const acting = (state: State, text: string, row: Row | undefined): Step => {
  if (text === '?') return only({ ...state, view: { kind: 'help', top: 0, back: state.view } })
  const asked = text === 'u' ? askUndo(state) : askedBy(text, state, row)
  return asked === undefined ? only(state) : follow(state, asked)
}

const follow = (state: State, asked: Asked): Step => {
  if ('why' in asked) return only({ ...state, message: { text: asked.why, tone: 'bad' } })
  if ('prompt' in asked) return only({ ...state, prompt: asked.prompt })
  const { agent } = asked
  if (asked.do === 'attach') return only(state, { kind: 'attach', agent })
  const title = rowsOf(state).find((row) => row.agent?.id === agent.id)?.item?.title ?? ''
  return only(
    { ...state, view: { kind: 'peek', agent, title, lines: undefined, top: undefined } },
    { kind: 'peek', agent },
  )
}

const inPeek = (state: State, view: Extract<State['view'], { kind: 'peek' }>, key: Key): Step => {
  const { lines, height } = peekRows(state, view)
  const last = Math.max(0, lines.length - height)
  const moved = movement(key, height)
  if (moved !== undefined) {
    const top = Math.max(0, (view.top ?? last) + moved)
    return only({ ...state, view: { ...view, top: top >= last ? undefined : top } })
  }
  const isBack = 'name' in key ? key.name === 'escape' || key.name === 'left' : key.text === 'q'
  if (isBack) return only({ ...state, view: { kind: 'list' } })
  if ('name' in key) return only(state)
  const row = rowsOf(state).find(({ agent }) => agent?.id === view.agent.id)
  if (row === undefined && key.text !== '?' && key.text !== 'u') {
    return only({ ...state, message: { text: `${view.agent.name} has finished and is gone.`, tone: 'bad' } })
  }
  return key.text === 'p' ? only(state) : acting(state, key.text, row)
}

const inHelp = (state: State, view: Extract<State['view'], { kind: 'help' }>, key: Key): Step => {
  const height = Math.max(1, state.size.rows - 1)
  const moved = movement(key, height)
  if (moved === undefined) {
    const isBack = 'text' in key || key.name === 'escape' || key.name === 'enter'
    return only(isBack ? { ...state, view: view.back } : state)
  }
  const last = Math.max(0, helpText.length - height)
  return only({ ...state, view: { ...view, top: Math.min(last, Math.max(0, view.top + moved)) } })
}

/** By how many lines a key moves. Undefined if it doesn't. */
const movement = (key: Key, page: number): number | undefined => {
  const name = 'name' in key ? key.name : texts[key.text]
  switch (name) {
    case 'up':
      return -1
    case 'down':
      return 1
    case 'page-up':
      return -Math.max(1, page - 1)
    case 'page-down':
      return Math.max(1, page - 1)
    case 'home':
      return -Infinity
    case 'end':
      return Infinity
    default:
      return undefined
  }
}

const texts: Readonly<Record<string, string>> = {
  k: 'up',
  j: 'down',
  g: 'home',
  G: 'end',
  ' ': 'page-down',
  b: 'page-up',
}

const selectedIndex = (state: State): number =>
  Math.max(
    0,
    rowsOf(state).findIndex(({ key }) => key === state.selected),
  )

const moveBy = (state: State, by: number): State => {
  const rows = rowsOf(state)
  const at = Math.min(rows.length - 1, Math.max(0, selectedIndex(state) + by))
  return visible({ ...state, selected: rows[at]?.key })
}

/** Scrolls so that the selected row is shown. */
const visible = (state: State): State => {
  const height = bodyRows(state.size)
  const at = selectedIndex(state)
  const most = Math.max(0, rowsOf(state).length - height)
  const top = Math.min(most, Math.max(Math.min(state.top, at), at - height + 1))
  return { ...state, top }
}
