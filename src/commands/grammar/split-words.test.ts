import { expect, test } from 'vitest'
import { shellWord } from '../../domain/text/shell-word.ts'
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
  [String.raw`$'lib\011x'y $'\303\274\047\134 z' $''`, ['lib\txy', "ü'\\ z", '']],
  [String.raw`$'\n' $'a\'`, ['$\\n', '$a\\']],
])('%j', (line, words) => {
  expect(splitWords(line)).toEqual(words)
})

test.each(['"a', "it's", '“a'])('%j lacks a quote', (line) => {
  expect(() => splitWords(line)).toThrow('missing closing')
})

test.each(['a;b', "it's", '$(x)', 'a\tb\nc', 'ü\u3000`x`', String.raw`a\\'b`, '‘x’ “y', '-x', '$', ' '])(
  'what is printed for %j is read as that',
  (name) => {
    expect(splitWords(`link ${shellWord(name)} --yes`)).toEqual(['link', name, '--yes'])
  },
)
