import { expect, test } from 'vitest'
import { counted, sentence } from './words.ts'

test.each([
  [0, '0 files'],
  [1, '1 file'],
  [2, '2 files'],
])('%i is counted in words', (n, text) => expect(counted(n, 'file')).toBe(text))

test('a plural that is not regular is given', () => expect(counted(2, 'process', 'processes')).toBe('2 processes'))

test.each([
  ['it is gone', 'It is gone.'],
  ['is it gone?', 'Is it gone?'],
  ['run `git status`', 'Run `git status`.'],
  ['`git status` says more', '`git status` says more.'],
  ['git failed (exit code 1)', 'git failed (exit code 1).'],
  ['delete it: rm /a/file', 'Delete it: rm /a/file'],
  ['add it: /codebase name', 'Add it: /codebase name'],
  ['usage: --issue <number>', 'Usage: --issue <number>'],
  ['limits.runMinutes is not a number', 'limits.runMinutes is not a number.'],
])('"%s" becomes a sentence', (text, expected) => expect(sentence(text)).toBe(expected))
