import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { acpAgents } from '../domain/config/agents.ts'
import { capabilitiesOf } from '../domain/platform-capabilities.ts'
import { knownPlatforms } from './capabilities.ts'
import { anyDescriptor, remoteNames } from './remote.ts'

test('only the platforms of this server’s own people reach beyond a repository', () => {
  const reaching = [...knownPlatforms].filter(([, { reach }]) => reach === 'server').map(([name]) => name)
  expect(reaching.toSorted()).toEqual(['cli', 'discord', 'slack', 'telegram', 'test', 'web'])
  expect(['github', 'gitlab', ''].map((name) => capabilitiesOf(knownPlatforms, name).reach)).not.toContain('server')
})

test('a chat on Telegram has no end; all other threads have one', () => {
  expect([...knownPlatforms].filter(([, { persistent }]) => persistent).map(([name]) => name)).toEqual(['telegram'])
})

test.each(remoteNames)('no agent can be granted a variable of %s', (name) => {
  const variables = Object.values(anyDescriptor(name).settings).map(({ variable }) => variable)
  const granted = variables.filter((one) => acpAgents.read({ x: { command: ['x'], variables: [one] } }) !== undefined)
  expect(variables.length).toBeGreaterThan(0)
  expect(granted).toEqual([])
})

test('to know the platforms loads none of their SDKs', () => {
  const file = new URL('./capabilities.ts', import.meta.url).href
  const script = `
    const { registerHooks } = await import('node:module')
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    await import(${JSON.stringify(file)})
    console.log(JSON.stringify(loaded))`
  const args = ['--no-warnings', '--input-type=module', '--eval', script]
  const loaded = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as string[]
  expect(loaded).toContain(file)
  expect(
    loaded.filter((url) => url.includes('/node_modules/')).map((url) => url.replace(/.*node_modules\//, '')),
  ).toEqual([])
})
