import { expect, test } from 'vitest'
import { isLinear, repeated } from '../../test/helpers/growth.ts'
import { linkedGitDirectory } from './git-link.ts'

test.each([
  ['gitdir: /a/b\n', '/a/b'],
  ['gitdir: ../b\r\n', '../b'],
  // Git takes all of the file: reading its first line only would look at another directory than git opens.
  ['gitdir: /a/g\nevil', '/a/g\nevil'],
  ['gitdir: /a b \n', '/a b '],
  ['gitdir:/a\n', undefined],
  ['x\ngitdir: /a\n', undefined],
  [undefined, undefined],
])('the file %j names %j', (text, directory) => {
  expect(linkedGitDirectory(text)).toBe(directory)
})

test('a file of line breaks takes time by its length', () => {
  expect(isLinear(linkedGitDirectory, repeated('\n', 'gitdir: ', 'x'))).toBe(true)
})
