import { expect, test } from 'vitest'
import { isSameInode } from './repository-place.ts'

test.each([
  ['the same directory', '1:2:3', '1:2:3', true],
  ['the same, after a reboot gave its disk another number', '1:2:3', '9:2:3', true],
  ['the same, where the file system knows no birth', '1:2:0', '1:2:0', true],
  ['one of another disk, where the file system knows no birth', '1:2:0', '9:2:0', false],
  ['a new one with the number of one that was deleted', '1:2:3', '1:2:4', false],
  ['another one made at the same time', '1:2:3', '1:5:3', false],
  ['one that is not there', '1:2:3', undefined, false],
  ['one that was never recorded', undefined, '1:2:3', false],
])('whether a git directory is the one that was registered: %s', (_what, recorded, found, same) =>
  expect(isSameInode(recorded, found)).toBe(same),
)
