import type { APIInteraction } from 'discord.js'
import { expect, test } from 'vitest'
import { chatCommands } from '../../commands/chat-table.ts'
import { applicationCommands, commandText } from './commands.ts'

type Registered = { name: string; description: string; options?: Registered[]; type: number; required?: boolean }
const registered = applicationCommands(chatCommands) as unknown as Registered[]

test('registers every chat command, one per first word', () => {
  const namesOf = ({ name, options = [] }: Registered): string[] => {
    const below = options.filter(({ type }) => type === 1 || type === 2)
    return below.length === 0 ? [name] : below.flatMap(namesOf).map((one) => `${name} ${one}`)
  }
  const words = registered.flatMap(namesOf)
  expect(words.toSorted()).toEqual(chatCommands.map(({ name }) => name).toSorted())
  expect(registered.map(({ name }) => name)).toEqual(expect.arrayContaining(['status', 'stop', 'worktree']))
})

test("names and descriptions are within Discord's limits", () => {
  const check = ({ name, description, options = [] }: Registered): void => {
    expect(name).toMatch(/^[-_a-z0-9]{1,32}$/)
    expect(description.length).toBeGreaterThan(0)
    expect(description.length).toBeLessThanOrEqual(100)
    expect(options.length).toBeLessThanOrEqual(25)
    options.forEach(check)
  }
  registered.forEach(check)
})

test('only commands with arguments ask for one', () => {
  const of = (name: string) => registered.find((one) => one.name === name)?.options
  expect(of('codebase')).toMatchObject([{ name: 'arguments', required: true }])
  expect(of('agent')).toMatchObject([{ name: 'arguments', required: false }])
  expect(of('reset')).toEqual([])
})

const interaction = (of: unknown): APIInteraction => of as APIInteraction
const used = (data: unknown): string | undefined => commandText(interaction({ type: 2, data }))

test('using a command is the same as typing it', () => {
  expect(used({ type: 1, name: 'status' })).toBe('/status')
  const given = { type: 3, name: 'arguments', value: ' issue-42 --force\u200B ' }
  expect(used({ type: 1, name: 'worktree', options: [{ type: 1, name: 'remove', options: [given] }] })).toBe(
    '/worktree remove issue-42 --force',
  )
  const github = { type: 1, name: 'github', options: [{ ...given, value: '--label ready' }] }
  expect(used({ type: 1, name: 'item', options: [{ type: 2, name: 'import', options: [github] }] })).toBe(
    '/item import github --label ready',
  )
  expect(used({ type: 2, name: 'status' })).toBeUndefined()
  expect(commandText(interaction({ type: 3 }))).toBeUndefined()
})
