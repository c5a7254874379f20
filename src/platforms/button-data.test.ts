import { expect, test } from 'vitest'
import { memoryForTest } from '../../test/helpers/platform-memory.ts'
import { createButtonData } from './button-data.ts'

test('a command that fits is its own data; a longer one is found by a reference, also after a restart', async () => {
  const memory = memoryForTest()
  const buttons = createButtonData(memory, 64)
  const long = `/worktree restore ${'é'.repeat(40)}`
  expect(await buttons.dataOf('/allow')).toBe('/allow')
  const data = await buttons.dataOf(long)
  expect(Buffer.byteLength(data)).toBeLessThanOrEqual(64)
  const later = createButtonData(memory, 64)
  expect(await later.commandOf(data)).toBe(long)
  expect(await later.commandOf('/allow')).toBe('/allow')
})

test('what is not ours is no command', async () => {
  const buttons = createButtonData(memoryForTest(), 64)
  expect(await buttons.commandOf('#unknown')).toBeUndefined()
  expect(await buttons.commandOf('')).toBeUndefined()
  expect(await buttons.commandOf('x'.repeat(65))).toBeUndefined()
  expect(await buttons.commandOf(await buttons.dataOf('#1'))).toBe('#1')
})
