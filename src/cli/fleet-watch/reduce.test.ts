import { describe, expect, test } from 'vitest'
import { parseKeys, type Key } from './keys.ts'
import { reduce } from './reduce.ts'
import { type Effect, type Event, initialState, type Picture, type Row, type State } from './state.ts'

const rowOf = (name: string, change: Partial<Row> = {}): Row => ({
  key: `id-${name}`,
  agent: { id: `id-${name}`, name },
  agentState: 'working',
  style: 'green',
  isPausedFleet: false,
  isRunning: true,
  item: { id: 7, title: 'Fix login', isParked: false },
  codebase: 'app',
  branch: `agent/${name}`,
  dirty: 'clean',
  ahead: '0',
  lastSignAt: 0,
  need: '',
  details: [],
  ...change,
})

const pictureOf = (...rows: readonly Row[]): Picture => ({ at: 0, stopped: undefined, pools: '', items: '', rows })

const many = Array.from({ length: 40 }, (_, i) => rowOf(`a${String(i).padStart(2, '0')}`))

type Played = { readonly state: State; readonly effects: readonly Effect[] }

const play = (from: State | Played, ...events: readonly (Event | string)[]): Played => {
  let state = 'state' in from ? from.state : from
  const effects: Effect[] = []
  for (const event of events) {
    const all: readonly Event[] =
      typeof event === 'string'
        ? parseKeys(event, { isAll: true }).keys.map((key: Key): Event => ({ kind: 'key', key }))
        : [event]
    for (const one of all) {
      const step = reduce(state, one)
      state = step.state
      effects.push(...step.effects)
    }
  }
  return { state, effects }
}

const started = (...rows: readonly Row[]): State =>
  play(initialState({ now: 0, size: { columns: 80, rows: 24 } }), {
    kind: 'picture',
    picture: pictureOf(...rows),
  }).state

const [up, down, enter, escape, ctrlC] = ['\u001b[A', '\u001b[B', '\r', '\u001b', '\u0003']

describe('keys', () => {
  test.each([
    ['j\u001b[B\u001bOB', ['j', 'down', 'down']],
    [
      '\u001b[5~\u001b[6~\u001b[H\u001b[F\r\u007f\u0003\u001a',
      ['page-up', 'page-down', 'home', 'end', 'enter', 'backspace', 'interrupt', 'suspend'],
    ],
    ['日é', ['日', 'é']],
    ['\u001b[<0;3;4Mq', ['unknown', 'q']],
    ['\u001bq', ['unknown']],
  ])('%j', (input, expected) => {
    const { keys, rest } = parseKeys(input)
    expect(keys.map((key) => ('name' in key ? key.name : key.text))).toEqual(expected)
    expect(rest).toBe('')
  })

  test('the rest of a sequence may come later, and an escape alone is the key', () => {
    expect(parseKeys('j\u001b[')).toEqual({ keys: [{ text: 'j' }], rest: '\u001b[' })
    expect(parseKeys('\u001b')).toEqual({ keys: [], rest: '\u001b' })
    expect(parseKeys('\u001b', { isAll: true }).keys).toEqual([{ name: 'escape' }])
  })

  test('pasted text is one piece, however it arrives', () => {
    expect(parseKeys('\u001b[200~sy\n\u001b[201~q').keys).toEqual([{ text: 'sy\n', pasted: true }, { text: 'q' }])
    expect(parseKeys('\u001b[200~sy')).toEqual({ keys: [], rest: '\u001b[200~sy' })
  })
})

describe('the list', () => {
  test('moves by lines, by pages and to both ends, and scrolls along', () => {
    const state = started(...many)
    expect(state.selected).toBe('id-a00')
    expect(play(state, 'jj', down).state.selected).toBe('id-a03')
    expect(play(state, 'jj', up, 'k').state.selected).toBe('id-a00')
    const end = play(state, 'G').state
    expect(end.selected).toBe('id-a39')
    expect(end.top).toBeGreaterThan(20)
    expect(play(end, 'g').state).toMatchObject({ selected: 'id-a00', top: 0 })
    expect(play(state, '\u001b[6~').state.top).toBe(0)
    expect(play(state, '\u001b[6~\u001b[6~').state.top).toBeGreaterThan(0)
    expect(play(end, { kind: 'resized', size: { columns: 80, rows: 80 } }).state.top).toBe(0)
  })

  test('keeps the selected agent when others move, and the place when it is gone', () => {
    const [one, two, three] = [rowOf('one'), rowOf('two'), rowOf('three')]
    const state = play(started(one, two, three), 'j').state
    expect(play(state, { kind: 'picture', picture: pictureOf(two, three, one) }).state.selected).toBe('id-two')
    expect(play(state, { kind: 'picture', picture: pictureOf(one, three) }).state.selected).toBe('id-three')
    expect(play(state, { kind: 'picture', picture: pictureOf() }).state.selected).toBeUndefined()
    expect(play(play(state, { kind: 'picture', picture: pictureOf() }), 'sy').effects).toEqual([])
  })

  test('quits, suspends and draws again', () => {
    const state = started(rowOf('alder'))
    expect(play(state, 'q', ctrlC, '\u001a', '\u000c').effects.map(({ kind }) => kind)).toEqual([
      'quit',
      'quit',
      'suspend',
      'redraw',
    ])
    expect(play(state, { kind: 'problem', why: 'the disk is full' }).state).toMatchObject({
      problem: 'the disk is full',
      picture: { rows: [{ key: 'id-alder' }] },
    })
  })
})

describe('what changes something is asked first', () => {
  const stop = { kind: 'run', number: 1, action: { kind: 'stop', agent: { id: 'id-alder', name: 'alder' } } }

  test('stop says what will happen, and only y does it', () => {
    const asked = play(started(rowOf('alder')), 's')
    expect(asked.effects).toEqual([])
    expect(asked.state.prompt).toMatchObject({
      kind: 'confirm',
      question: [expect.stringContaining('Stop alder?'), expect.stringContaining('item 7')],
    })
    expect(play(asked, 'y').effects).toEqual([stop])
    for (const key of ['n', 'q', enter, escape, ctrlC, '\u001b[200~y\u001b[201~']) {
      expect(play(asked, key)).toMatchObject({
        effects: [],
        state: { prompt: undefined, message: { text: 'Cancelled.' } },
      })
    }
  })

  test('it goes to the agent that was asked about, not to the next one that has its row or name', () => {
    const asked = play(started(rowOf('alder'), rowOf('beech')), 's')
    const other = rowOf('alder', { key: 'id-2', agent: { id: 'id-2', name: 'alder' } })
    expect(play(asked, { kind: 'picture', picture: pictureOf(other) }, 'y').effects).toEqual([stop])
  })

  test('pasted text is not taken for keys', () => {
    for (const pasted of ['s', 'q', 'a', '?', 'sysysy']) {
      const { effects, state } = play(started(rowOf('alder')), `\u001b[200~${pasted}\u001b[201~`)
      expect({ effects, prompt: state.prompt, view: state.view }).toEqual({
        effects: [],
        prompt: undefined,
        view: { kind: 'list' },
      })
    }
  })

  test.each([
    ['s', rowOf('alder', { isRunning: false }), "alder isn't running."],
    ['s', rowOf('x', { agent: undefined }), 'No agent is working on item 7.'],
    ['n', rowOf('alder', { isRunning: false }), "alder isn't running. Press r to start it again."],
    ['a', rowOf('x', { agent: undefined }), 'No agent is working on item 7.'],
    ['r', rowOf('alder'), 'alder is running.'],
    ['r', rowOf('x', { agent: undefined }), 'Item 7 waits for its merge.'],
    ['l', rowOf('alder', { item: undefined }), 'alder has no item to land.'],
    ['u', rowOf('alder'), expect.stringContaining('Nothing to undo')],
  ])('%s says why not: %#', (key, row, text) => {
    expect(play(started(row), key)).toMatchObject({
      effects: [],
      state: { prompt: undefined, message: { text, tone: 'bad' } },
    })
  })

  test.each([
    [rowOf('alder', { isRunning: false }), { kind: 'start', agent: { name: 'alder' } }],
    [rowOf('x', { agent: undefined, item: undefined, isPausedFleet: true }), { kind: 'up' }],
    [rowOf('alder', { need: 'its session has ended' }), { kind: 'start', agent: { name: 'alder' } }],
    [rowOf('alder', { item: { id: 7, title: '', isParked: true } }), { kind: 'continue', item: 7 }],
    [rowOf('x', { agent: undefined, item: { id: 7, title: '', isParked: true } }), { kind: 'reopen', item: 7 }],
  ])('r does what the row needs: %#', (row, action) => {
    expect(play(started(row), 'ry').effects).toMatchObject([{ kind: 'run', action }])
  })

  test('l asks before it queues the item', () => {
    expect(play(started(rowOf('alder')), 'l').state.prompt).toMatchObject({
      question: [expect.stringContaining('Queue item 7 (agent/alder) for landing?'), expect.anything()],
    })
    expect(play(started(rowOf('alder')), 'ly').effects).toMatchObject([{ action: { kind: 'land', item: 7 } }])
  })

  test('starting an agent of a stopped fleet says that it brings up the fleet', () => {
    const picture = { ...pictureOf(rowOf('alder', { isRunning: false })), stopped: 'is down' }
    const { prompt } = play(started(), { kind: 'picture', picture }, 'r').state
    expect(prompt).toMatchObject({ question: [expect.anything(), expect.stringContaining('brings the fleet up')] })
  })
})

describe('actions', () => {
  const undoStop = {
    action: { kind: 'start', agent: { id: 'id-alder', name: 'alder' } },
    question: 'start alder again?',
  } as const
  const finished = (number: number, undo?: typeof undoStop, tone: 'good' | 'bad' = 'good'): Event => ({
    kind: 'finished',
    number,
    message: { text: 'Stopped alder.', tone },
    ...(undo && { undo }),
  })

  test('two at once on one agent are refused, on two agents they are not', () => {
    const state = play(started(rowOf('alder'), rowOf('beech')), 'sy').state
    expect(play(state, 'sy')).toMatchObject({
      effects: [],
      state: { message: { text: 'Wait: still stopping alder.' } },
    })
    expect(play(state, 'jsy').effects).toMatchObject([{ number: 2, action: { agent: { name: 'beech' } } }])
    expect(play(state, 'jsy', finished(1), 'ksy').effects).toHaveLength(2)
  })

  test('undo says what it will undo, does it once, and can be tried again if it failed', () => {
    const stopped = play(started(rowOf('alder')), 'sy', finished(1, undoStop)).state
    expect(stopped.message).toEqual({ text: 'Stopped alder.', tone: 'good' })
    const asked = play(stopped, 'u')
    expect(asked.state.prompt).toMatchObject({ question: ['Undo: start alder again?'] })
    expect(play(asked, 'n').state.undo).toEqual([undoStop])
    const undoing = play(asked, 'y')
    expect(undoing.effects).toEqual([{ kind: 'run', number: 2, action: undoStop.action }])
    expect(undoing.state.undo).toEqual([])
    // What undid something isn't undone in turn: the next undo is of what was done before.
    expect(play(undoing, finished(2, undoStop)).state.undo).toEqual([])
    expect(play(undoing, finished(2, undefined, 'bad')).state.undo).toEqual([undoStop])
  })

  test('a message is typed on one line and sent by Enter', () => {
    const typing = play(started(rowOf('alder')), 'nuse the old', '\u0017', 'new\u001b[200~\nAPI\u001b[201~')
    expect(typing.effects).toEqual([])
    expect(play(typing, enter).effects).toEqual([
      {
        kind: 'run',
        number: 1,
        action: { kind: 'nudge', agent: { id: 'id-alder', name: 'alder' }, text: 'use the new API' },
      },
    ])
    for (const key of [escape, ctrlC]) {
      expect(play(typing, key)).toMatchObject({
        effects: [],
        state: { prompt: undefined, message: { text: 'Not sent.' } },
      })
    }
    expect(play(typing, '\u0015', enter)).toMatchObject({ effects: [], state: { prompt: { kind: 'nudge' } } })
    const middle = play(started(rowOf('alder')), 'nac\u001b[Db', enter)
    expect(middle.effects).toMatchObject([{ action: { text: 'abc' } }])
  })
})

describe('peek and help', () => {
  const peeked = (lines: readonly string[]): Event => ({
    kind: 'peeked',
    agent: { id: 'id-alder', name: 'alder' },
    lines,
  })
  const long = Array.from({ length: 100 }, (_, i) => `line ${i}`)

  test('peek follows until it is scrolled up, and again at the end', () => {
    const opened = play(started(rowOf('alder')), enter)
    expect(opened.effects).toEqual([{ kind: 'peek', agent: { id: 'id-alder', name: 'alder' } }])
    const top = (from: Played): number | undefined => (from.state.view.kind === 'peek' ? from.state.view.top : -1)
    const full = play(opened, peeked(long))
    expect(top(full)).toBeUndefined()
    expect(top(play(full, 'kk'))).toBeGreaterThan(50)
    expect(top(play(full, 'kk', peeked([...long, 'more'])))).toBe(top(play(full, 'kk')))
    expect(top(play(full, 'kkjj'))).toBeUndefined()
    expect(top(play(full, 'g'))).toBe(0)
    expect(top(play(full, 'gG'))).toBeUndefined()
    expect(play(full, 'q').state.view).toEqual({ kind: 'list' })
    expect(play(full, 'nhello', enter)).toMatchObject({
      effects: [{ action: { kind: 'nudge' } }],
      state: { view: { kind: 'peek' } },
    })
  })

  test('what another agent printed, or one that is gone, is not mixed in', () => {
    const opened = play(started(rowOf('alder')), 'p', peeked(['mine']))
    expect(
      play(opened, { kind: 'peeked', agent: { id: 'id-2', name: 'alder' }, lines: ['theirs'] }).state.view,
    ).toMatchObject({ lines: ['mine'] })
    const gone = play(opened, { kind: 'picture', picture: pictureOf(rowOf('beech')) })
    expect(play(gone, 's')).toMatchObject({
      effects: [],
      state: { prompt: undefined, message: { text: 'alder has finished and is gone.' } },
    })
  })

  test('help goes back to where it was opened', () => {
    const opened = play(started(rowOf('alder')), 'p', '?')
    expect(opened.state.view.kind).toBe('help')
    expect(play(opened, 'j').state.view.kind).toBe('help')
    expect(play(opened, 'q')).toMatchObject({ effects: [], state: { view: { kind: 'peek' } } })
  })
})
