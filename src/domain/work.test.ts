import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { branchNameProblem } from './names.ts'
import {
  branchForWork,
  isNumbered,
  parseWorkRef,
  sameWork,
  slug,
  taskWork,
  toWork,
  workLabel,
  workTypes,
  type Work,
} from './work.ts'

const sha8 = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

describe('a work', () => {
  test.each(['issue', 'pr', 'review'] as const)('of type %s has a positive number without leading zeros', (type) => {
    expect(isNumbered(type)).toBe(true)
    expect(toWork(type, '42')).toEqual({ type, id: '42' })
    for (const bad of ['', '0', '042', '-1', '1.5', '4 2', '1e3', 'x', '42\n', '12345678901', '٤٢']) {
      expect(() => toWork(type, bad)).toThrow(expect.objectContaining({ code: 'name-invalid' }))
    }
  })

  test('that a person gets wrong is told in good grammar', () => {
    expect(() => toWork('issue', 'x')).toThrow(`"x" isn't an issue number`)
    expect(() => toWork('pr', 'x')).toThrow(`"x" isn't a pr number`)
    expect(() => toWork('agent', ' ')).toThrow('an agent needs an id')
  })

  test.each(['thread', 'task', 'agent'] as const)('of type %s needs an id of some length', (type) => {
    expect(isNumbered(type)).toBe(false)
    for (const bad of ['', ' ', '\n', 'a\0b', 'x'.repeat(501)]) {
      expect(() => toWork(type, bad)).toThrow(expect.objectContaining({ code: 'name-invalid' }))
    }
  })

  test('of an agent has a plain name', () => {
    expect(toWork('agent', 'rust-2')).toEqual({ type: 'agent', id: 'rust-2' })
    for (const bad of ['Rust', 'a/b', '-a', '../x', 'a b', 'x'.repeat(51)])
      expect(() => toWork('agent', bad)).toThrow('name')
  })

  test('is the same by type and id, nothing else', () => {
    expect(sameWork({ type: 'pr', id: '1' }, { type: 'pr', id: '1' })).toBe(true)
    expect(sameWork({ type: 'pr', id: '1' }, { type: 'issue', id: '1' })).toBe(false)
    expect(sameWork({ type: 'pr', id: '1' }, { type: 'pr', id: '2' })).toBe(false)
  })
})

describe('a branch for a work', () => {
  test.each<[Work, string]>([
    [{ type: 'issue', id: '42' }, 'issue-42'],
    [{ type: 'pr', id: '123' }, 'pr-123'],
    [{ type: 'review', id: '123' }, 'pr-123-review'],
    [{ type: 'thread', id: 'C123:1712.34' }, `thread-${sha8('C123:1712.34')}`],
    [taskWork('Add dark mode'), 'task-add-dark-mode'],
    [{ type: 'agent', id: 'rust' }, 'agent/rust-mb2f18g0'],
  ])('%j is %s', (work, branch) => {
    expect(branchForWork(work, 1_748_102_400_000)).toBe(branch)
  })

  test('is a name git takes, whatever the text of the task or the id of the thread', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 120 }), (text) => {
        expect(branchNameProblem(branchForWork(taskWork(text), 0))).toBeUndefined()
        expect(branchNameProblem(branchForWork(toWork('thread', `C${text}`), 0))).toBeUndefined()
      }),
    )
  })
})

describe('a slug', () => {
  test.each([
    ['Add dark mode', 'add-dark-mode'],
    ['  Fix: the/thing!! ', 'fix-the-thing'],
    ['Ünïcödé café', 'unicode-cafe'],
    ['already-a-slug', 'already-a-slug'],
    ['“Quoted” – dashes… ‘x’', 'quoted-dashes-x'],
    ['x'.repeat(50), 'x'.repeat(50)],
    ['../../etc/passwd', 'etc-passwd'],
    ['--force', 'force'],
  ])('of %j is %s', (text, expected) => {
    expect(slug(text)).toBe(expected)
  })

  test.each(['ダークモード', '🌳', '。。。', '!!!', '', '   ', '添加深色模式'])(
    'of %j is a hash, since nothing is left of it',
    (text) => {
      expect(slug(text)).toBe(sha8(text))
    },
  )

  test.each([
    ['Fix ログイン', `fix-${sha8('Fix ログイン')}`],
    ['Ship 🚀', `ship-${sha8('Ship 🚀')}`],
    ['Straße', `stra-e-${sha8('Straße')}`],
    ['x'.repeat(51), `${'x'.repeat(50)}-${sha8('x'.repeat(51))}`],
  ])('of %j, which lost letters, carries a hash of the full text', (text, expected) => {
    expect(slug(text)).toBe(expected)
  })

  test('is cut without a dash at the cut', () => {
    const text = `${'x'.repeat(49)} ${'y'.repeat(20)}`
    expect(slug(text)).toBe(`${'x'.repeat(49)}-${sha8(text)}`)
  })

  test.each([
    ['Fix ログイン', 'Fix ログアウト'],
    ['🌳', '🌲'],
    [`${'long '.repeat(20)}one`, `${'long '.repeat(20)}two`],
    ['日本', '本日'],
    ['Price €5', 'Price £5'],
    ['が', 'か'],
  ])('keeps %j and %j apart', (a, b) => {
    expect(slug(a)).not.toBe(slug(b))
    expect(taskWork(a).id).not.toBe(taskWork(b).id)
  })

  test('of a slug is that slug, so that a shown name can be typed again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), (text) => {
        const once = slug(text)
        expect(once).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
        expect(once.length).toBeLessThanOrEqual(59)
        expect(once.length > 50 || slug(once) === once).toBe(true)
      }),
    )
  })
})

describe('a reference to a work', () => {
  test.each<[string, Work]>([
    ['issue-42', { type: 'issue', id: '42' }],
    ['issue:42', { type: 'issue', id: '42' }],
    ['issue#42', { type: 'issue', id: '42' }],
    ['pr-99', { type: 'pr', id: '99' }],
    ['review-7', { type: 'review', id: '7' }],
    ['task-add-dark-mode', { type: 'task', id: 'add-dark-mode' }],
    ['task:feature/x', { type: 'task', id: 'feature/x' }],
    ['thread:C123:1712.34', { type: 'thread', id: 'C123:1712.34' }],
    ['agent-rust', { type: 'agent', id: 'rust' }],
    ['pr-123-review', { type: 'review', id: '123' }],
  ])('%s is %j', (text, work) => {
    expect(parseWorkRef(text)).toEqual(work)
  })

  test.each([
    '',
    'issue',
    'issue-',
    'issue-0',
    'issue-042',
    'issue-x',
    'pr-1-x',
    'ISSUE-1',
    'main',
    'agent-A',
    'task- ',
    'xissue-1',
  ])('%j is not one', (text) => {
    expect(parseWorkRef(text)).toBeUndefined()
  })

  test('is what the branch of a numbered work or a task looks like', () => {
    for (const work of [toWork('issue', '42'), toWork('pr', '9'), toWork('review', '9'), taskWork('Add dark mode')]) {
      expect(parseWorkRef(branchForWork(work, 0))).toEqual(work)
    }
  })
})

test('every work has a label that people can read', () => {
  const labels = workTypes.map((type) => workLabel({ type, id: '7' }))
  expect(labels).toEqual(['issue #7', 'PR #7', 'review of PR #7', 'thread 7', 'task 7', 'agent 7'])
})
