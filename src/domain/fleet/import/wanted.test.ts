import { describe, expect, test } from 'vitest'
import { toCodebaseId, toEnvironmentId } from '../../names.ts'
import type { Item } from '../item.ts'
import { mergeFromSource, type Resolved, snapshotOf, titleAndBody } from './wanted.ts'

const source = { kind: 'beads', id: 'bd-1' } as const
const there: Resolved = { source, title: 'Fix login', body: 'It says 500', priority: 2, after: [3] }

const imported: Item = {
  ...there,
  id: 7,
  codebaseId: toCodebaseId('one'),
  state: 'open',
  source: { ...source, seen: snapshotOf(there) },
  environmentId: undefined,
  parked: undefined,
  pullRequest: undefined,
  createdBy: 'cli',
  createdAt: 1,
  updatedAt: 1,
}

/** What the next import does, and the item after it. */
const importAgain = (item: Item, change: Partial<Resolved>) => {
  const merged = mergeFromSource(item, { ...there, ...change })
  const seen = merged.seen ?? item.source?.seen
  return { ...merged, item: { ...item, ...merged.patch, source: { ...source, ...(seen && { seen }) } } }
}

const nothing = { patch: {}, edited: [], begun: [], seen: undefined }

test('what is as it was takes nothing over, and remembers nothing new', () => {
  expect(mergeFromSource(imported, there)).toEqual(nothing)
})

test('each field follows its source, again and again', () => {
  const change = { title: 'Fix the login', priority: 0, after: [3, 4] } as const
  const { patch, item } = importAgain(imported, change)
  expect(patch).toEqual(change)
  expect(mergeFromSource(item, { ...there, ...change })).toEqual(nothing)
  expect(importAgain(item, { ...change, body: '' }).patch).toEqual({ body: '' })
})

describe('a field that was edited here', () => {
  const edited = { ...imported, title: 'Mine', after: [] }

  test('stays, and the others still follow', () => {
    const { patch, edited: kept } = importAgain(edited, { body: 'more' })
    expect([patch, kept]).toEqual([{ body: 'more' }, []])
  })

  test('is named once when it is changed there, too', () => {
    const once = importAgain(edited, { title: 'Theirs' })
    expect([once.patch, once.edited]).toEqual([{}, ['title']])
    expect(mergeFromSource(once.item, { ...there, title: 'Theirs' })).toEqual(nothing)
    expect(importAgain(once.item, { title: 'Theirs, newer' }).edited).toEqual(['title'])
  })

  test('follows again once both say the same', () => {
    const agreed = importAgain({ ...edited, after: [3] }, { title: 'Mine' })
    expect(agreed).toMatchObject({ patch: {}, edited: [] })
    expect(importAgain(agreed.item, { title: 'Newest' }).patch).toEqual({ title: 'Newest' })
  })
})

describe('work that has begun', () => {
  const environmentId = toEnvironmentId('e')
  test.each<[string, Partial<Item>]>([
    ['hooked', { state: 'hooked', environmentId }],
    ['in review', { state: 'in_review', environmentId }],
    ['parked with its worktree', { state: 'parked', environmentId }],
  ])('keeps its text: %s', (_name, change) => {
    const kept = importAgain({ ...imported, ...change }, { body: 'more' })
    expect(kept).toMatchObject({ patch: {}, begun: ['body'], edited: [] })
    // It is given up.
    expect(importAgain({ ...kept.item, state: 'open' }, { body: 'more' }).patch).toEqual({ body: 'more' })
  })

  test('and has ended is nobody’s concern any more', () => {
    for (const state of ['closed', 'landed'] as const) {
      expect(mergeFromSource({ ...imported, state }, { ...there, body: 'more' })).toEqual(nothing)
    }
  })

  test('is not what an item is that was only parked', () => {
    expect(importAgain({ ...imported, state: 'parked' }, { body: 'more' }).patch).toEqual({ body: 'more' })
  })
})

test('without a memory, what differs is taken for edited', () => {
  const forgotten = { ...imported, source }
  const { patch, edited, item } = importAgain(forgotten, { title: 'Theirs' })
  expect([patch, edited]).toEqual([{}, ['title']])
  expect(importAgain(item, { title: 'Theirs', body: 'more' }).patch).toEqual({ body: 'more' })
})

test('the states that both sides agreed on are kept', () => {
  const phases = { there: 'ready', here: 'working' } as const
  const item = { ...imported, source: { ...source, seen: { ...snapshotOf(there), phases } } }
  expect(mergeFromSource(item, { ...there, title: 'x' }).seen?.phases).toEqual(phases)
})

test.each([
  ['  Fix\n\tlogin\u200b ', '\u202eIt says 500 \r\n', { title: 'Fix login', body: 'It says 500' }],
  ['x'.repeat(300), '', { title: 'x'.repeat(300), body: '' }],
  ['x'.repeat(301), '', { title: `${'x'.repeat(299)}…`, body: 'x'.repeat(301) }],
  ['x'.repeat(301), 'more', { title: `${'x'.repeat(299)}…`, body: `${'x'.repeat(301)}\n\nmore` }],
  ['\u200b \u2066', 'text', undefined],
])('the title %j', (title, body, expected) => {
  expect(titleAndBody(title, body)).toEqual(expected)
})
