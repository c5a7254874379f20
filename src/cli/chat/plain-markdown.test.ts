import { expect, test } from 'vitest'
import { plainMarkdown } from './plain-markdown.ts'

test.each([
  ['bold text loses its asterisks', '**Agent**: demo', 'Agent: demo'],
  ['a block of code loses its fence and keeps its text', 'a\n```\n+1  **b**\n```\nc', 'a\n+1  **b**\nc'],
  ['a longer fence ends only with its like', '````\n```\n````', '```'],
  ['a fence that is never closed loses no text', '```\na', 'a'],
  ['names keep their backticks', 'Removed `issue-42`', 'Removed `issue-42`'],
  ['single asterisks stay', '2 * 3 ** 4', '2 * 3 ** 4'],
])('%s', (_name, markdown, plain) => {
  expect(plainMarkdown(markdown)).toBe(plain)
})
