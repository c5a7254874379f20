import { describe, expect, test } from 'vitest'
import type { BeadsIssue } from './beads-issue.ts'
import { planBeads } from './beads-plan.ts'

const now = 1_000

/** `blocks:b parent-child:e` */
const issue = (id: string, dependencies = '', change: Partial<BeadsIssue> = {}): BeadsIssue => ({
  line: 1,
  id,
  title: id,
  body: '',
  status: 'open',
  priority: 2,
  type: 'task',
  deleted: false,
  aside: false,
  deferredUntil: undefined,
  createdAt: 0,
  dependencies: dependencies.split(' ').flatMap((word) => {
    const [, type = '', on] = /^([^:]*):(.*)$/.exec(word) ?? []
    return on === undefined ? [] : [{ on, type: type.replace('!', ''), anyChild: type.endsWith('!') }]
  }),
  ...change,
})

const plan = (...issues: readonly BeadsIssue[]) => {
  const made = planBeads(
    issues.map((one, n) => ({ ...one, line: n + 1 })),
    now,
  )
  return 'problem' in made ? expect.unreachable(JSON.stringify(made.problem)) : made
}

/** What each item waits for; `?` marks what is no item. */
const waits = (...issues: readonly BeadsIssue[]): Record<string, string> =>
  Object.fromEntries(
    plan(...issues).wanted.map(({ title, after, parked }) => {
      const outside = parked?.kind === 'waits-elsewhere' ? parked.ids.map((id) => `${id}?`) : []
      return [title, [...after.map((key) => key.replace('beads:', '')), ...outside].join(' ')]
    }),
  )

const closed = { status: 'closed' }
const epic = { type: 'epic' }

describe('an item waits for', () => {
  test('what blocks it, unless that is closed, deleted or pinned', () => {
    const over = [issue('c', '', closed), issue('t', '', { status: 'tombstone' }), issue('p', '', { status: 'pinned' })]
    const deps = 'blocks:b conditional-blocks:d blocks:c blocks:t blocks:p related:r discovered-from:r tracks:r'
    const live = [issue('b'), issue('d'), issue('r')]
    expect(waits(issue('a', deps), ...live, ...over)).toMatchObject({ a: 'b d' })
  })

  test('what blocks its parents, as far up as they are open', () => {
    const family = [
      issue('child', 'parent-child:e'),
      issue('e', 'blocks:b parent-child:top', epic),
      issue('top', 'blocks:z'),
    ]
    expect(waits(...family, issue('b'), issue('z'))).toEqual({ child: 'b z', e: 'b z child', top: 'z', b: '', z: '' })
    const [child, middle] = [issue('child', 'parent-child:e'), issue('e', 'blocks:b parent-child:top', closed)]
    expect(waits(child, middle, issue('top', 'blocks:b'), issue('b'))).toEqual({ child: '', top: 'b', b: '' })
  })

  test('but not for its parent itself', () => {
    expect(waits(issue('child', 'parent-child:p'), issue('p'))).toEqual({ child: '', p: '' })
  })

  test('its children, if it is an epic', () => {
    const children = [issue('x', 'parent-child:e'), issue('y', 'parent-child:e', closed)]
    expect(waits(issue('e', '', epic), ...children)).toEqual({ e: 'x', x: '' })
  })

  test('the open children of what it waits for as a whole', () => {
    const children = [issue('x', 'parent-child:e'), issue('y', 'parent-child:e'), issue('z', 'parent-child:e', closed)]
    const all = [issue('e'), ...children]
    expect(waits(issue('a', 'waits-for:e'), ...all)).toMatchObject({ a: 'x y' })
    expect(waits(issue('a', 'waits-for!:e'), ...all)).toMatchObject({ a: '' })
    expect(waits(issue('a', 'waits-for:e'), issue('e'))).toMatchObject({ a: '' })
  })
})

describe('is parked, since nobody may start with it,', () => {
  test('what waits for something that is no item, or unknown', () => {
    const deps = 'blocks:external:other:x blocks:gone waits-for:away blocks:gate blocks:b'
    expect(waits(issue('a', deps), issue('b'), issue('gate', '', { type: 'gate' }))).toEqual({
      a: 'b external:other:x? gone? away? gate?',
      b: '',
    })
  })

  test.each([
    ['in_progress', 'working'],
    ['hooked', 'working'],
    ['blocked', 'waiting'],
    ['deferred', 'waiting'],
    ['in-qa', 'waiting'],
  ])('what is %s there', (status, there) => {
    expect(plan(issue('a', '', { status })).wanted).toMatchObject([
      { parked: { kind: 'status-elsewhere', source: 'beads', status }, there },
    ])
  })

  test('what is deferred to a time that has not come, or whose parent is', () => {
    const deferred = { deferredUntil: now + 1 }
    const made = plan(issue('a', '', deferred), issue('b', 'parent-child:a'), issue('c', '', { deferredUntil: now }))
    expect(made.wanted.map(({ parked }) => parked?.kind === 'status-elsewhere' && parked.status)).toEqual([
      'deferred',
      'deferred',
      false,
    ])
  })
})

test('what is no work, or over, is left out and counted; where it stands is known all the same', () => {
  const made = plan(
    issue('a'),
    issue('closed', '', closed),
    issue('deleted', '', { deleted: true }),
    issue('tombstone', '', { status: 'tombstone' }),
    issue('message', '', { type: 'message' }),
    issue('template', '', { aside: true }),
    issue('pinned', '', { status: 'pinned' }),
  )
  expect(made.wanted.map(({ title }) => title)).toEqual(['a'])
  expect(made.leftOut).toEqual({ closed: 1, deleted: 2, aside: 3 })
  expect(Object.fromEntries(made.there)).toMatchObject({ a: 'ready', closed: 'done', deleted: 'gone', message: 'gone' })
})

test('the oldest comes first, and of the same age the first in the file', () => {
  const made = plan(
    issue('c', '', { createdAt: 9 }),
    issue('b', '', { createdAt: 1 }),
    issue('a', '', { createdAt: 1 }),
  )
  expect(made.wanted.map(({ title }) => title)).toEqual(['b', 'a', 'c'])
})

test('parents of each other, and what waits for too much, are named', () => {
  const circle = [issue('a', 'parent-child:b'), issue('b', 'parent-child:a')]
  expect(planBeads(circle, now)).toEqual({ problem: { kind: 'circle', ids: ['a', 'b'] } })
  const many = Array.from({ length: 1_001 }, (_, n) => issue(`n${n}`, 'parent-child:e'))
  expect(planBeads([...many, issue('e', '', epic)], now)).toMatchObject({
    problem: { kind: 'waits-for-too-many', issue: { id: 'e' }, limit: 1_000 },
  })
})
