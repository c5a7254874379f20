import { styleText } from 'node:util'
import { describe, expect, test } from 'vitest'
import { aNewItem, anAgent } from '../../../test/helpers/fleet-values.ts'
import { anEnvironment } from '../../../test/helpers/store-values.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import { toBranchName } from '../../domain/names.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { NeedsYou } from '../../fleet/status.ts'
import { type FleetSnapshot, sortedRows, type WatchRow } from '../../fleet/watch/snapshot.ts'
import { asProgram } from '../../commands/views/view.ts'
import { displayWidth } from '../../domain/text/width.ts'
import { parseKeys } from './keys.ts'
import { type LinePaint, paintLine, plainText } from './line.ts'
import { pictureOf } from './present.ts'
import { reduce } from './reduce.ts'
import { render } from './render.ts'
import { type Event, initialState, type State } from './state.ts'

const now = 1_700_000_000_000
const minute = 60_000

const anItem = (id: number, change: Partial<Item> = {}): Item => ({
  ...aNewItem('Fix login'),
  id,
  state: 'hooked',
  environmentId: undefined,
  parked: undefined,
  pullRequest: undefined,
  updatedAt: now,
  ...change,
})

const rowOf = (name: string, change: Partial<WatchRow> = {}, agent: Partial<FleetAgent> = {}): WatchRow => ({
  key: name,
  agent: anAgent(name, { state: 'working', itemId: 7, ...agent }),
  item: anItem(7),
  landing: undefined,
  codebase: 'app',
  environment: anEnvironment('one', { status: 'active', branch: toBranchName(`agent/${name}-mwo2mcrc`) }),
  facts: { dirty: { changed: 0, untracked: 0, hidden: 0, halfDone: [], submodules: 0, unpushed: 0 }, ahead: 2 },
  lastSignAt: now - 5 * minute,
  needs: [],
  ...change,
})

const snapshotOf = (rows: readonly WatchRow[], change: Partial<FleetSnapshot> = {}): FleetSnapshot => ({
  at: now,
  control: { state: 'up', why: '', since: 0 },
  pools: [{ name: 'workers', min: 0, max: 5, live: rows.length, paused: false }],
  items: { open: 2, ready: 1, hooked: 1, in_review: 0, parked: 0, landed: 3, closed: 4 },
  rows,
  ...change,
})

const view = { ...asProgram, now }

const stateOf = (snapshot: FleetSnapshot, size = { columns: 80, rows: 24 }, ...events: readonly Event[]): State =>
  [{ kind: 'picture', picture: pictureOf(snapshot, view) } as const, ...events].reduce<State>(
    (state, event) => reduce(state, event).state,
    initialState({ now, size }),
  )

const typed = (text: string): Event[] => parseKeys(text, { isAll: true }).keys.map((key) => ({ kind: 'key', key }))

const shown = (state: State): string => render(state).lines.map(plainText).join('\n')

const coloured: LinePaint = (style, text) => styleText(style, text, { validateStream: false })

const stuck = (agent: string): NeedsYou => ({ kind: 'stuck', item: 7, agent, since: now })

const sizes = [200, 132, 80, 60, 40, 20, 8, 1].flatMap((columns) =>
  [60, 24, 15, 8, 7, 3, 2, 1].map((rows) => ({ columns, rows })),
)

describe('the list', () => {
  test('shows who, item, state, branch, dirty, ahead, last sign of life and what needs you', () => {
    const screen = shown(
      stateOf(snapshotOf([rowOf('alder', { needs: [stuck('alder')] }, { state: 'stuck' })]), {
        columns: 132,
        rows: 24,
      }),
    )
    const [summary, headings, row] = screen.split('\n')
    expect(summary).toBe('Fleet  1 needs you  1 agent  workers 1/5  2 open, 1 hooked')
    expect(headings).toMatch(/AGENT +STATE +ITEM +BRANCH +DIRTY +AHEAD +LAST SIGN +NEEDS YOU/)
    expect(row).toMatch(/> alder +stuck +7 Fix login +agent\/alder-mwo2mcrc +clean +2 +5 min +no sign of life/)
    expect(screen).toContain('No sign of life from alder for a while.')
    expect(screen).toContain('  See what it does: coppice peek alder')
  })

  test('what is unknown is not shown as clean, and a missing worktree is named', () => {
    const cells = (change: Partial<WatchRow>): string =>
      shown(stateOf(snapshotOf([rowOf('alder', change)]))).split('\n')[2] ?? ''
    expect(cells({ facts: undefined })).toMatch(/ … +… /)
    expect(cells({ facts: { dirty: undefined, ahead: undefined } })).toMatch(/ \? +\? /)
    expect(cells({ environment: anEnvironment('one', { status: 'missing' }) })).toContain(' missing ')
    const dirty = { changed: 2, untracked: 1, hidden: 0, halfDone: [], submodules: 0, unpushed: 0 }
    expect(cells({ facts: { dirty, ahead: 0 } })).toContain(' 3 files ')
    expect(
      cells({ facts: { dirty: { ...dirty, changed: 0, untracked: 0, halfDone: ['rebase'] }, ahead: 0 } }),
    ).toContain(' yes ')
  })

  test('sorts by what needs a person, then by state and name', () => {
    const parked = rowOf('item-9', { agent: undefined, item: anItem(9, { state: 'parked' }), needs: [stuck('x')] })
    const rows = [
      rowOf('review', { agent: undefined, item: anItem(8, { state: 'in_review' }) }),
      rowOf('birch'),
      rowOf('alder'),
      parked,
      rowOf('stopped', {}, { state: 'stopped' }),
      rowOf('zelkova', { needs: [stuck('zelkova')] }),
    ]
    expect(sortedRows(rows).map(({ key }) => key)).toEqual(['zelkova', 'item-9', 'stopped', 'alder', 'birch', 'review'])
  })

  test('a fleet that is down or paused says so', () => {
    const why = '3 agents died within 30 s'
    const need: NeedsYou = { kind: 'paused', why }
    const ofFleet = rowOf('fleet', {
      agent: undefined,
      item: undefined,
      codebase: '',
      environment: undefined,
      needs: [need],
    })
    const snapshot = snapshotOf([ofFleet, rowOf('alder')], { control: { state: 'paused', why, since: 0 } })
    const screen = shown(stateOf(snapshot))
    expect(screen).toContain('Fleet  is paused (coppice fleet up)  1 needs you  1 agent ')
    expect(screen).toMatch(/^> – +paused .*3 agents died/m)
    expect(screen).toContain('Continue: coppice fleet up')
    expect(screen).not.toContain('REPOSITORY')
    expect(shown(stateOf(snapshotOf([])))).toContain('No agents. Start one in another terminal: coppice sling <item>')
    expect(shown(stateOf(snapshotOf([]), undefined, { kind: 'problem', why: 'the disk is full' }))).toContain(
      "Couldn't refresh: the disk is full",
    )
  })

  test('at 80 columns, item and need stay readable', () => {
    const rows = [rowOf('alder', { needs: [stuck('alder')] }, { state: 'stuck' }), rowOf('persimmon')]
    const lines = shown(stateOf(snapshotOf(rows))).split('\n')
    expect(lines[2]).toContain('7 Fix login')
    expect(lines[2]).toContain('no sign of life')
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(80)
  })
})

describe('any size', () => {
  const rows = Array.from({ length: 30 }, (_, i) =>
    rowOf(`agent-${i}`, { key: String(i), item: anItem(i, { title: '日本語のタイトル 🧪 é' }) }),
  )
  const emptyState = (size: State['size']): State => stateOf(snapshotOf([]), size)
  const states: Readonly<Record<string, (size: State['size']) => State>> = {
    list: (size) => stateOf(snapshotOf(rows), size),
    end: (size) => stateOf(snapshotOf(rows), size, ...typed('G')),
    question: (size) => stateOf(snapshotOf(rows), size, ...typed('s')),
    message: (size) =>
      stateOf(snapshotOf(rows), size, {
        kind: 'message',
        message: { text: 'A long message. '.repeat(30), tone: 'bad' },
      }),
    typing: (size) =>
      stateOf(
        snapshotOf(rows),
        size,
        ...typed('n\u001b[200~日本語 and a long text that does not fit on one line of a small terminal\u001b[201~'),
      ),
    peek: (size) =>
      stateOf(snapshotOf(rows), size, ...typed('p'), {
        kind: 'peeked',
        agent: { id: 'agent-agent-0', name: 'agent-0' },
        lines: ['日本語'.repeat(99)],
      }),
    help: (size) => stateOf(snapshotOf(rows), size, ...typed('?')),
    empty: emptyState,
  }

  test.each(Object.keys(states))('%s: fills the screen, and no line is too long', (name) => {
    for (const size of sizes) {
      const { lines, cursor } = render((states[name] ?? emptyState)(size))
      expect({ size, lines: lines.length }).toEqual({ size, lines: size.rows })
      const wide = lines.map(plainText).filter((text) => displayWidth(text) > size.columns)
      expect({ size, wide }).toEqual({ size, wide: [] })
      if (cursor === undefined) continue
      expect(cursor.row).toBeLessThan(size.rows)
      expect(cursor.column).toBeLessThan(size.columns)
    }
  })

  test('the selected row is always shown', () => {
    for (const size of sizes.filter(({ columns }) => columns >= 20)) {
      expect(`${JSON.stringify(size)}\n${shown(stateOf(snapshotOf(rows), size, ...typed('G')))}`).toMatch(/^> /m)
    }
  })

  test('wide characters keep the columns aligned', () => {
    const titles = ['Fix login', '日本語のタイトル', '🧪 emoji', 'cafe\u0301']
    const screen = shown(
      stateOf(snapshotOf(titles.map((title, i) => rowOf(`agent-${i}`, { item: anItem(i, { title }) })))),
    )
    const at = screen
      .split('\n')
      .slice(2, 6)
      .map((line) => displayWidth(line.slice(0, line.indexOf('clean'))))
    expect(new Set(at).size).toBe(1)
  })
})

describe('hostile text', () => {
  // eslint-disable-next-line no-control-regex
  const control = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
  const hostile = 'x\u001b[2J\u001b]0;pwned\u0007\u009b31m\u202egnp\u0000\r\n\u001bPq\u001b\\ end'

  test('no control character of an agent reaches the terminal, from wherever it comes', () => {
    const reason = { kind: 'asked', note: hostile } as const
    const item = anItem(7, { title: hostile, state: 'parked', parked: reason, pullRequest: `https://x/${hostile}` })
    const need: NeedsYou = { kind: 'parked', item, agent: 'alder', running: true, reason }
    const environment = { ...anEnvironment('one', { status: 'active' }), branch: hostile as never, path: hostile }
    const row = rowOf('alder', { item, environment, codebase: hostile, needs: [need] })
    const paused = { state: 'paused', why: hostile, since: 0 } as const
    const snapshot = snapshotOf([row, rowOf('beech', { codebase: 'other' })], { control: paused })
    const peeked: Event = { kind: 'peeked', agent: { id: 'agent-alder', name: 'alder' }, lines: [hostile] }
    for (const events of [
      [],
      typed('s'),
      typed('r'),
      typed('l'),
      typed('?'),
      [...typed('p'), peeked],
      typed(`n\u001b[200~${hostile}\u001b[201~`),
    ]) {
      for (const columns of [200, 80, 30]) {
        const { lines } = render(stateOf(snapshot, { columns, rows: 24 }, ...events))
        for (const line of lines) expect(paintLine(line, columns, (_style, text) => text)).not.toMatch(control)
      }
    }
    const messages = stateOf(
      snapshot,
      undefined,
      { kind: 'message', message: { text: hostile, tone: 'bad' } },
      { kind: 'problem', why: hostile },
    )
    for (const line of render(messages).lines) expect(paintLine(line, 80, (_style, text) => text)).not.toMatch(control)
  })

  test('colours come from us alone, and a line is cut to the terminal', () => {
    const painted = paintLine([{ text: hostile, style: 'red' }], 10, coloured)
    expect(painted.startsWith('\u001b[31m')).toBe(true)
    expect(painted.endsWith('\u001b[39m')).toBe(true)
    expect(painted.slice(5, -5)).not.toMatch(control)
    expect(displayWidth(painted.slice(5, -5))).toBeLessThanOrEqual(10)
  })

  test('a secret is hidden before it is cut', () => {
    const redacted = { ...view, redact: (text: string) => text.replaceAll('hunter2', '***') }
    const picture = pictureOf(
      snapshotOf([rowOf('alder', { item: anItem(7, { title: 'password hunter2' }) })]),
      redacted,
    )
    expect(JSON.stringify(picture)).not.toContain('hunter2')
    expect(picture.rows[0]?.item?.title).toBe('password ***')
  })
})
