import { expect, test } from 'vitest'
import { chatCommands } from '../../commands/chat-table.ts'
import { menuCommands } from './commands.ts'

test("the menu has every chat command, within Telegram's limits", () => {
  const menu = menuCommands(chatCommands)
  expect(menu.map(({ command }) => command)).toEqual(expect.arrayContaining(['help', 'status', 'worktree']))
  expect(new Set(menu.map(({ command }) => command)).size).toBe(menu.length)
  for (const { command, description } of menu) {
    expect(command).toMatch(/^[a-z0-9_]{1,32}$/)
    expect(description).not.toBe('')
    expect(description.length).toBeLessThanOrEqual(256)
  }
})
