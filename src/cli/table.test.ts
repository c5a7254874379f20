import { expect, test } from 'vitest'
import { chatCommands } from '../commands/chat-table.ts'
import { plain } from '../commands/views/view.ts'
import { helpFor } from './help.ts'
import { commands } from './table.ts'

test('every command is summed up in one lower-case line of at most 60 characters', () => {
  const all = [...commands, ...chatCommands].map(({ name, summary }) => ({ name, summary }))
  expect(all.filter(({ summary }) => !/^[a-z]/.test(summary) || summary.length > 60)).toEqual([])
})

test.each([
  ['import archon', 'standard input'],
  ['import archon', 'ARCHON_DATABASE_URL'],
  ['chat', 'Exit status: 0'],
])('the help of `%s` mentions %s', (name, text) => {
  const row = commands.find((one) => one.name === name)
  expect(row && helpFor(row, { paint: plain, columns: 80 })).toContain(text)
})

test.each(['codebase', 'clone', 'agent', 'reset'])('the help of /%s says that it ends the session', (name) => {
  expect(chatCommands.find((one) => one.name === name)?.summary).toMatch(/ends? the session/)
})
