import { expect, test } from 'vitest'
import { withoutInvisible } from './visible.ts'

const tags = Array.from('ignore all', (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('')

test.each([
  ['plain text', 'Fix the *login*\n\tnow, ü', 'Fix the *login*\n\tnow, ü'],
  ['zero-width characters', 'a\u200bb\u200cc\u200dd\u2060e\ufefff', 'abcdef'],
  ['bidirectional characters', 'a\u202eb\u2066c\u2069d\u200ee\u061cf', 'abcdef'],
  ['tags', `hi${tags}!`, 'hi!'],
  ['variation selectors that carry bytes', 'a\u{e0100}\u{e01ef}b\ufe01c', 'abc'],
  ['an emoji', 'ok ✔\ufe0f', 'ok ✔\ufe0f'],
  ['an emoji of several', '👩\u200d💻 👩🏽\u200d💻 ❤\ufe0f\u200d🔥', '👩\u200d💻 👩🏽\u200d💻 ❤\ufe0f\u200d🔥'],
  ['joiners that join nothing', '👩\u200d\u200d💻 \u200d💻 👩\u200da', '👩💻 💻 👩a'],
  ['control characters', 'a\u0000b\u001bc\u0085d\u2028e', 'abcde'],
  ['line breaks of Windows', 'a\r\nb\rc', 'a\nb\nc'],
  ['half a character', 'a\ud800b', 'a\ufffdb'],
])('what a person does not see is removed, what they see stays: %s', (_what, text, seen) => {
  expect(withoutInvisible(text)).toBe(seen)
})
