import { expect, test } from 'vitest'
import { closingIssuesIn } from './links.ts'

test.each<[string, number[]]>([
  ['Fixes #42', [42]],
  ['fixed: #42, closes #7 and resolves #42', [42, 7]],
  ['Closes acme/app#3', [3]],
  ['Closes Acme/App#3', [3]],
  ['Closes other/app#3', []],
  ['Resolves https://github.com/acme/app/issues/9', [9]],
  ['Resolves https://github.com/other/app/issues/9', []],
  ['see #42', []],
  ['prefixes #42', []],
  ['Fixes#42', []],
  ['Fixes #0', []],
  ['Fixes #42a', []],
  ['`Fixes #42`', []],
  ['> Fixes #42', []],
  ['<!-- Fixes #42 -->', []],
  ['nothing', []],
])('%j', (text, numbers) => {
  expect(closingIssuesIn(text, 'acme/app')).toEqual(numbers)
})
