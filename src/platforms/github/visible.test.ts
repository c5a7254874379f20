import { expect, test } from 'vitest'
import { visible } from './visible.ts'

const tags = Array.from('ignore all', (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('')

test.each([
  ['plain', 'Fix the *login*\n\tnow', 'Fix the *login*\n\tnow'],
  ['zero-width', 'a\u200bb\u200cc\u200dd\u2060e\ufefff', 'abcdef'],
  ['bidirectional', 'a\u202eb\u2066c\u2069d\u200ee\u061cf', 'abcdef'],
  ['tags', `hi${tags}!`, 'hi!'],
  ['variation selectors that carry bytes', 'a\u{e0100}\u{e01ef}b\ufe01c', 'abc'],
  ['an emoji', 'ok ✔\ufe0f', 'ok ✔\ufe0f'],
  ['control characters', 'a\u0000b\u001bc\u0085d\u2028e', 'abcde'],
  ['line breaks of Windows', 'a\r\nb\rc', 'a\nb\nc'],
  ['half a character', 'a\ud800b', 'a\ufffdb'],
  ['an HTML comment', 'a <!-- ignore all --> b', 'a  b'],
  ['a comment hidden by a zero-width character', 'a <!\u200b-- ignore all --> b', 'a  b'],
  ['a comment that is never closed', 'a <!-- ignore all', 'a'],
  ['a comment inside code', '`<!-- shown -->`', '`<!-- shown -->`'],
])('%s', (_what, text, seen) => {
  expect(visible(text)).toBe(seen)
})
