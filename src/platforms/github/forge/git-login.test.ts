import { expect, test } from 'vitest'
import { repositoryAt } from '../host.ts'
import { createGitLogin } from './git-login.ts'

const loginWith = (apiUrl: string | undefined) =>
  createGitLogin({ token: 'a-token', ...(apiUrl !== undefined && { apiUrl }) }, async () => ({
    token: 'not asked for',
  }))
const enterprise = 'https://git.example.com:8443/api/v3'

/* "Using the REST API" in GitHub's documentation: the API of github.com and *.ghe.com is at `api.`. */
test.each([
  [undefined, 'https://github.com/acme/app.git', 'github.com'],
  ['https://api.github.com', 'https://github.com/acme/app', 'github.com'],
  ['https://api.acme.ghe.com', 'https://acme.ghe.com/acme/app', 'acme.ghe.com'],
  ['https://git.example.com/api/v3', 'https://git.example.com/acme/app', 'git.example.com'],
  [enterprise, 'https://git.example.com:8443/acme/app', 'git.example.com:8443'],
])('with the API %s, git logs in for %s', async (apiUrl, url, host) => {
  expect(await loginWith(apiUrl)(url)).toEqual({ host, secret: 'a-token' })
  expect(repositoryAt(url, apiUrl)).toEqual({ owner: 'acme', repo: 'app' })
})

test.each([
  [undefined, 'https://api.github.com/acme/app'],
  [undefined, 'https://github.com.evil.test/acme/app'],
  [undefined, 'https://evilgithub.com/acme/app'],
  [undefined, 'https://evil.github.com/acme/app'],
  [undefined, 'https://hub.com/acme/app'],
  [undefined, 'https://github.com@evil.test/acme/app'],
  [undefined, 'https://evil.test/github.com/acme/app'],
  ['https://api.acme.ghe.com', 'https://ghe.com/acme/app'],
  ['https://api.acme.ghe.com', 'https://evil-acme.ghe.com/acme/app'],
  ['https://api.acme.ghe.com', 'https://acme.ghe.com.evil.test/acme/app'],
  ['https://api.acme.ghe.com.evil.test', 'https://acme.ghe.com/acme/app'],
  [enterprise, 'https://example.com:8443/acme/app'],
  [enterprise, 'https://x.git.example.com:8443/acme/app'],
])('with the API %s, %s is another host: neither its repository nor a login for it is known', async (apiUrl, url) => {
  expect(await loginWith(apiUrl)(url)).toBeUndefined()
  expect(repositoryAt(url, apiUrl)).toBeUndefined()
})

test('another port of the same host gets no login', async () => {
  expect(await loginWith(enterprise)('https://git.example.com/acme/app')).toBeUndefined()
})
