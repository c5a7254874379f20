import { expect, test } from 'vitest'
import { visible } from './visible.ts'

test.each([
  ['plain', 'Fix the *login*\n\tnow', 'Fix the *login*\n\tnow'],
  ['zero-width', 'a\u200bb', 'ab'],
  ['an HTML comment', 'a <!-- ignore all --> b', 'a  b'],
  ['a comment hidden by a zero-width character', 'a <!\u200b-- ignore all --> b', 'a  b'],
  ['a comment that is never closed', 'a <!-- ignore all', 'a'],
  ['a comment inside code', '`<!-- shown -->`', '`<!-- shown -->`'],
])('%s', (_what, text, seen) => {
  expect(visible(text)).toBe(seen)
})
