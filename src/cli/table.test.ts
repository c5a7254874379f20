import { expect, test } from 'vitest'
import { chatCommands } from '../commands/chat-table.ts'
import { commands } from './table.ts'

test('every command is summed up in one lower-case line of at most 60 characters', () => {
  const all = [...commands, ...chatCommands].map(({ name, summary }) => ({ name, summary }))
  expect(all.filter(({ summary }) => !/^[a-z]/.test(summary) || summary.length > 60)).toEqual([])
})
