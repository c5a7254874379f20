import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { slackEvents, slackManifest, slackScopes } from './setup.ts'

const guide = readFileSync(new URL('../../../docs/platforms/slack.md', import.meta.url), 'utf8')

test('the guide has the same manifest as the command prints', () => {
  const printed: unknown = JSON.parse(/```json\n([\s\S]*?)```/.exec(guide)?.[1] ?? 'null')
  expect(printed).toEqual(slackManifest)
})

test.each([...slackScopes, ...slackEvents])('the guide says what %s is for', (name) => {
  expect(guide.replace(/```json[\s\S]*?```/, '')).toContain(`\`${name}\``)
})
