import { expect, test } from 'vitest'
import { splitWords } from './split-words.ts'

test.each([
  ['', []],
  ['  a  b\tc\nd ', ['a', 'b', 'c', 'd']],
  ['--task "Add dark mode" x', ['--task', 'Add dark mode', 'x']],
  ["--task='a b'c", ['--task=a bc']],
  [String.raw`a\ b \"c`, ['a b', '"c']],
  [String.raw`"a \" \\ \n"`, [String.raw`a " \ \n`]],
  [String.raw`'a \'`, ['a \\']],
  ['"" x', ['', 'x']],
  ['“Add dark mode” ‘x y’', ['Add dark mode', 'x y']],
  ['a$(b) `c`', ['a$(b)', '`c`']],
])('%j', (line, words) => {
  expect(splitWords(line)).toEqual(words)
})

test.each(['"a', "it's", '“a'])('%j lacks a quote', (line) => {
  expect(() => splitWords(line)).toThrow('missing closing')
})
