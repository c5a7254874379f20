import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeServerWorld } from '../../helpers/server-process.ts'
import { anyDescriptor } from '../../../src/platforms/remote.ts'
import { slackEvents, slackManifest, slackScopes } from '../../../src/platforms/slack/setup.ts'
import { APP_TOKEN, BOT_TOKEN, startSlackDouble } from '../../platforms/slack-double.ts'

const platforms = ['github', 'slack', 'discord', 'telegram'] as const

test('without anything configured it says so, and where to begin', async () => {
  await using world = makeServerWorld()
  const { code, out } = await world.cli(world.box.root, 'platforms')
  expect(code).toBe(0)
  for (const name of platforms) expect(out).toMatch(new RegExp(String.raw`^${name}\s+not configured$`, 'm'))
  expect(out).toContain('No server is running.')
  expect(out).toContain('coppice platforms setup <name>')
})

test.each([
  ['slack', 'botToken: xoxb-1', 'no Slack connection configured; set SLACK_APP_TOKEN for Socket Mode, or SLACK_'],
  ['slack', 'appToken: xapp-1', 'no Slack bot token configured; set SLACK_BOT_TOKEN to'],
  ['slack', 'signingSecret: abc', 'no Slack bot token configured; set SLACK_BOT_TOKEN to'],
  ['slack', 'botToken: xoxb-1, appToken: xapp-1', 'no allowed users configured; list their user IDs'],
  ['discord', 'botToken: a.b.c', 'no allowed users configured; list their user IDs in DISCORD_ALLOWED_USERS'],
  ['discord', "allowedUsers: ['80351110224678912']", 'no bot token configured; set DISCORD_BOT_TOKEN to'],
  ['telegram', "botToken: '1:a'", 'no allowed users configured; list their numeric user IDs'],
  ['telegram', 'allowedUsers: [1]', 'no Telegram bot token configured; write /token'],
  [
    'telegram',
    "botToken: '1:a', allowedUsers: [1], webhookUrl: 'https://x.test'",
    'the Telegram webhook has no secret;',
  ],
  ['github', 'bot: coppice, token: ghp_x', 'no GitHub webhook secret configured; set GITHUB_WEBHOOK_SECRET to'],
  ['github', 'webhookSecret: abc', 'no GitHub credentials configured; set GITHUB_TOKEN, or'],
  ['github', 'webhookSecret: abc, appId: 1', 'the GitHub App needs both its ID and its private key; set both'],
])('without a server, %s with only { %s } says what is missing', async (name, settings, missing) => {
  await using world = makeServerWorld()
  writeFileSync(join(world.home, 'config.yaml'), `platforms: { ${name}: { ${settings} } }\n`, { mode: 0o600 })
  const shown = await world.json<{ platforms: Record<string, unknown>[] }>(world.box.root, 'platforms')
  expect(shown.platforms.find(({ platform }) => platform === name)).toMatchObject({
    state: 'incomplete',
    lastError: expect.stringContaining(missing) as string,
  })
})

test("without a server, what is complete is not running; GitHub's token alone is for git", async () => {
  await using world = makeServerWorld()
  const slack = 'slack: { botToken: xoxb-1, appToken: xapp-1, allowedUsers: [U1] }'
  writeFileSync(join(world.home, 'config.yaml'), `platforms: { ${slack}, github: { token: ghp_x } }\n`, { mode: 0o600 })
  const { out } = await world.cli(world.box.root, 'platforms')
  expect(out).toMatch(/^slack\s+not running$/m)
  expect(out).toMatch(/^github\s+not configured$/m)
})

test.each(platforms)('setup %s needs no terminal: it prints the way, what is missing, and fails', async (name) => {
  await using world = makeServerWorld()
  const { code, out } = await world.cli(world.box.root, 'platforms', 'setup', name)
  expect(code).toBe(1)
  expect(out).toContain(`Set up ${anyDescriptor(name).title}\n`)
  expect(out).toMatch(/^fail {2}(?:bot )?token: missing$/m)
  expect(out).toMatch(new RegExp(String.raw`^not set\s+${name.toUpperCase()}_`, 'm'))
  expect(out).toContain('start the')
  expect(out).toContain('coppice codebase add')
  expect(out).toContain('Not ready yet')
  type Json = { ready: boolean; platform: string; steps: string[]; checks: { passed: boolean }[] }
  const json = JSON.parse((await world.cli(world.box.root, 'platforms', 'setup', name, '--json')).out) as Json
  expect(json).toMatchObject({ ready: false, platform: name })
  expect(json.checks.some(({ passed }) => !passed)).toBe(true)
})

test('setup slack prints scopes, events and a manifest to paste; with tokens in the file it asks Slack', async () => {
  await using slack = await startSlackDouble()
  await using world = makeServerWorld()
  const file = join(world.home, 'config.yaml')
  const configured = (botToken: string): void =>
    writeFileSync(
      file,
      `platforms:\n  slack:\n    botToken: ${botToken}\n    appToken: ${APP_TOKEN}\n    allowedUsers: [U1]\n    apiUrl: ${slack.apiUrl}\n`,
      { mode: 0o600 },
    )
  configured(BOT_TOKEN)
  const good = await world.cli(world.box.root, 'platforms', 'setup', 'slack')
  expect(good.code).toBe(0)
  for (const word of [...slackScopes, ...slackEvents]) expect(good.out).toContain(word)
  expect(JSON.parse(/^\{[\s\S]*?^\}/m.exec(good.out)?.[0] ?? 'null')).toEqual(slackManifest)
  expect(good.out).toMatch(/^pass {2}bot token: coppice in Team$/m)
  expect(good.out).toMatch(/^set\s+SLACK_BOT_TOKEN/m)
  expect(good.out).toContain('Ready.')
  configured('xoxb-wrong-one')
  const bad = await world.cli(world.box.root, 'platforms', 'setup', 'slack')
  expect(bad.code).toBe(1)
  expect(bad.out).toMatch(/^fail {2}bot token: invalid_auth$/m)
  expect(good.out + bad.out + good.err + bad.err).not.toMatch(/xoxb-double|xapp-double|xoxb-wrong/)
})

test('a name that is none is wrong usage, and says which there are', async () => {
  await using world = makeServerWorld()
  const { code, err } = await world.cli(world.box.root, 'platforms', 'setup', 'matrix')
  expect(code).toBe(2)
  expect(err).toContain('github, slack, discord, telegram')
})

test('a token of Telegram, which is part of its address, is in no message about what went wrong', async () => {
  await using world = makeServerWorld()
  writeFileSync(
    join(world.home, 'config.yaml'),
    'platforms:\n  telegram:\n    botToken: "123456:not-to-be-seen-at-all"\n    apiUrl: http://127.0.0.1:9/x\n',
  )
  const { out, err } = await world.cli(world.box.root, 'platforms', 'setup', 'telegram', '--verbose')
  expect(out).toMatch(/couldn't connect/)
  expect(out + err).not.toContain('not-to-be-seen')
})
