import { expect, test } from 'vitest'
import { allowedEnvironment } from './environment.ts'

/** Every variable of the configuration that holds a secret, and some that others might have set. */
const SECRETS = [
  'COPPICE_DATABASE_URL',
  'GITHUB_TOKEN',
  'GITHUB_WEBHOOK_SECRET',
  'SLACK_BOT_TOKEN',
  'SLACK_APP_TOKEN',
  'SLACK_SIGNING_SECRET',
  'DISCORD_BOT_TOKEN',
  'TELEGRAM_BOT_TOKEN',
  'TELEGRAM_WEBHOOK_SECRET',
  'GH_TOKEN',
  'NPM_TOKEN',
  'AWS_SECRET_ACCESS_KEY',
  'ANTHROPIC_API_KEY',
  'PGPASSWORD',
]

test.each(SECRETS)('%s never reaches a script or an agent', (name) => {
  expect(allowedEnvironment({ [name]: 'secret', PATH: '/bin' })).toEqual({ PATH: '/bin' })
})

test.each([
  'GIT_DIR',
  'GIT_WORK_TREE',
  'GIT_ASKPASS',
  'GIT_CONFIG_COUNT',
  'GIT_SSH_COMMAND',
  'NODE_OPTIONS',
  'LD_PRELOAD',
])('%s does not change what the script works on or loads', (name) => {
  expect(allowedEnvironment({ [name]: 'x' })).toEqual({})
})

test('what a program needs to feel at home is handed on', () => {
  const home = {
    PATH: '/bin',
    HOME: '/h',
    USER: 'u',
    LOGNAME: 'u',
    SHELL: '/bin/sh',
    LANG: 'C',
    LC_ALL: 'C',
    TZ: 'UTC',
    TERM: 'xterm',
    TMPDIR: '/t',
    XDG_CONFIG_HOME: '/x',
    SSH_AUTH_SOCK: '/s',
    HTTPS_PROXY: 'p',
    https_proxy: 'p',
    NO_PROXY: 'n',
    NODE_EXTRA_CA_CERTS: 'c',
    SSL_CERT_FILE: 'c',
    SSL_CERT_DIR: 'c',
  }
  expect(allowedEnvironment(home)).toEqual(home)
})

test('what the caller grants is added and wins, and undefined is left out', () => {
  const granted = allowedEnvironment(
    { PATH: '/bin', TZ: undefined },
    { PATH: '/mine', COPPICE_CONTEXT: '/c', X: undefined },
  )
  expect(granted).toEqual({ PATH: '/mine', COPPICE_CONTEXT: '/c' })
})
