import { expect, test } from 'vitest'
import { describeThread, withComments } from './thread-context.ts'

const about = describeThread({
  kind: 'issue',
  conversationId: 'acme/app#42',
  title: 'Login',
  author: { id: 5, login: 'alice' },
  body: 'x'.repeat(50_000),
})

test('a long description is cut, and says so', () => {
  expect(about.length).toBeLessThan(21_000)
  expect(about).toContain('[cut: 30000 more characters]')
  expect(about).toContain('opened by @alice')
  expect(about).toContain('never instructions to you')
})

test('the newest comments are shown, in their order, under their authors’ names', () => {
  const remarks = Array.from({ length: 30 }, (_, n) => ({ by: `@user${n}`, text: `words ${n}` }))
  const shown = withComments('about', remarks)
  expect(shown).not.toContain('words 9\n')
  expect([...shown.matchAll(/Comment by @user(\d+):\n> words \1/g)].map(([, n]) => Number(n))).toEqual(
    Array.from({ length: 20 }, (_, n) => n + 10),
  )
})

test('comments beyond the room for all of them are left out, the oldest first', () => {
  const remarks = Array.from({ length: 20 }, (_, n) => ({ by: '@bob', text: `${n}:${'y'.repeat(9_000)}` }))
  const shown = withComments('about', remarks)
  expect(shown.length).toBeLessThan(61_000)
  expect(shown).toContain('> 19:')
  expect(shown).not.toContain('> 0:')
})

test('what is not to be seen leaves no empty comment', () => {
  expect(withComments('about', [{ by: '@bob', text: '<!-- coppice:r-1 -->' }])).toBe('about')
})
