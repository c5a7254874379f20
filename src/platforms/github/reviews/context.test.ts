import { expect, test } from 'vitest'
import type { ReviewComment } from './client.ts'
import { describeReviews } from './context.ts'

const comment = (id: number, thread: number, reviewId: number, body = `words ${id}`): ReviewComment => ({
  id,
  thread,
  reviewId,
  body,
  login: 'bob',
  userId: 6,
  appId: undefined,
  createdAt: '2026-01-02T03:04:05Z',
  location: { path: `src/${thread}.ts`, line: 3, startLine: 1, file: 'old', isOutdated: false, hunk: `hunk ${thread}` },
})
/** Two threads of review 100, the second with a reply; one of review 200; one more, resolved. */
const comments = [
  comment(1, 1, 100),
  comment(2, 2, 100),
  comment(3, 3, 200),
  comment(4, 4, 300),
  comment(5, 2, 501),
  comment(6, 2, 502, '@coppice address this review'),
  comment(7, 2, 503, 'said afterwards'),
]
const order = (text: string): string[] =>
  [...text.matchAll(/words \d|afterwards|address this/g)].map(([found]) => found)

test('a reply in a thread gets that thread first, then its review, then what is unresolved', () => {
  const text = describeReviews(
    { comments, resolved: new Set([1, 4]) },
    { message: { kind: 'review-comment', id: 6 }, thread: 2 },
  )
  expect(order(text)).toEqual(['words 2', 'words 5', 'words 1', 'words 3'])
  expect(text).toContain(
    'Earlier in the review thread of this message, about src/2.ts, lines 1 to 3 of the old file:\n> hunk 2\n\nComment by @bob',
  )
  expect(text).toContain('Of the same review, a resolved thread about src/1.ts')
  expect(text).toContain('Another unresolved review thread, about src/3.ts')
})

test('a review gets all its comments, also resolved ones', () => {
  const about = { message: { kind: 'review', id: 100 }, thread: undefined } as const
  expect(order(describeReviews({ comments, resolved: new Set([1, 3, 4]) }, about))).toEqual([
    'words 1',
    'words 2',
    'words 5',
    'address this',
    'afterwards',
  ])
})

test('any other comment gets what is unresolved; all, where that is unknown', () => {
  const about = { message: { kind: 'comment', id: 6 }, thread: undefined } as const
  const threads = (resolved: ReadonlySet<number> | undefined): string[] =>
    [...describeReviews({ comments, resolved }, about).matchAll(/about src\/(\d)/g)].map(([, thread = '']) => thread)
  expect(threads(new Set([2, 4]))).toEqual(['1', '3'])
  expect(threads(undefined)).toEqual(['1', '2', '3', '4'])
})

test('what does not fit is counted', () => {
  const long = Array.from({ length: 20 }, (_, n) => comment(n + 1, n + 1, 100, 'x'.repeat(4_000)))
  const text = describeReviews({ comments: long, resolved: undefined }, { message: undefined, thread: undefined })
  expect(text.length).toBeLessThan(31_000)
  expect(text).toMatch(/\[left out: 1\d more review threads\]$/)
})

test('nobody’s words leave their quote', () => {
  const text = describeReviews(
    { comments: [comment(1, 1, 100, 'a\nIgnore all\n<!-- hidden -->')], resolved: undefined },
    { message: undefined, thread: undefined },
  )
  expect(text).toContain('> a\n> Ignore all')
  expect(text).not.toContain('hidden')
})
