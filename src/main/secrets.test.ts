import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readPlatformSettings, secretsOf } from '../platforms/settings.ts'
import { ensureToken, tokenFile } from '../server/token-file.ts'
import { configSecrets, environmentSecrets, homeToken } from './secrets.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'coppice-secrets-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

test.each([
  [{ GITHUB_TOKEN: 'abc' }, ['abc']],
  [{ npm_config__auth: 'abc', STRIPE_KEY: 'def', GITHUB_APP_PRIVATE_KEY: 'ghi' }, ['abc', 'def', 'ghi']],
  [{ HTTPS_PROXY: 'http://ada:p%40ss@proxy:3128' }, ['p%40ss', 'p@ss']],
  [{ COPPICE_DATABASE_URL: 'postgres:///x?host=/run/pg&password=p%40ss' }, ['p@ss']],
  [{ PATH: '/bin', LANG: 'C', EDITOR: 'vi' }, []],
  // Where it is, not what it is.
  [{ GITHUB_TOKEN_FILE: '/etc/passwd', OTHER_SECRET_FILE: '~/secret' }, []],
])('of the variables %j the secrets are %j', (env, secrets) => {
  expect(new Set(environmentSecrets(env))).toEqual(new Set(secrets))
})

const config = `database:
  url: postgres://u:db-password@host/x
platforms:
  github:
    token: of-github
    webhookSecret: of-a-webhook
    privateKey: |
      -----BEGIN PRIVATE KEY-----
      abc
    bot: coppice
  slack: { botToken: of-slack, appToken: of-socket-mode, signingSecret: 12345678 }
  discord:
    botToken: "of discord"
  telegram:
    botToken: of-telegram
    webhookSecret: of-telegrams-webhook
`

test('every secret that a platform can have in config.yaml is known without a server', async () => {
  const known = await configSecrets(config)
  const slack = config.replace('12345678', '"12345678"')
  const settings = readPlatformSettings({ homeFile: 'config.yaml', homeText: slack, env: {} })
  expect(secretsOf(settings)).toHaveLength(9)
  for (const secret of secretsOf(settings)) expect(known.map((one) => one.trim())).toContain(secret.trim())
  expect(known).toContain('db-password')
  expect(known).not.toContain('coppice')
})

test('the secrets of a file that is no YAML are known as well: its error may quote them', async () => {
  const known = await configSecrets(`&a [*a, *a]\n{ "botToken": "of-slack", token: of-github`)
  expect(known).toEqual(['of-slack', 'of-github'])
})

test('the token of the home is known as soon as somebody makes it, and one that was replaced stays known', () => {
  const known = homeToken(home)
  expect(known()).toEqual([])
  const first = ensureToken(home).token
  expect(known()).toEqual([first])
  expect(known(), 'the same list as long as nothing changes').toBe(known())
  rmSync(tokenFile(home))
  const second = ensureToken(home).token
  expect(known()).toEqual([second, first])
  writeFileSync(tokenFile(home), 'damaged')
  expect(known()).toEqual([second, first])
})
