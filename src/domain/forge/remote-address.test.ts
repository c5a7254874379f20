import { expect, test } from 'vitest'
import { remoteAddress } from './remote-address.ts'

test.each([
  ['https://github.com/acme/app.git', 'https github.com undefined acme/app'],
  ['https://user:hush@GitHub.com:8443/acme/app/', 'https github.com 8443 acme/app'],
  ['git@github.com:acme/app.git', 'ssh github.com undefined acme/app'],
  ['ssh://git@ssh.github.com:443/acme/app', 'ssh github.com 443 acme/app'],
  ['acme.ghe.com:acme/app', 'ssh acme.ghe.com undefined acme/app'],
  ['https://gitlab.com/group/sub/app.git', 'https gitlab.com undefined group/sub/app'],
])('%s', (url, expected) => {
  const { scheme, host, port, path } = remoteAddress(url) ?? {}
  expect(`${scheme} ${host} ${port} ${path}`).toBe(expected)
})

test.each(['/srv/app.git', 'file:///srv/app.git', '../app', 'C', '', 'https://', `https://h/${'a'.repeat(5000)}`])(
  'not an address: %.20s',
  (url) => {
    expect(remoteAddress(url)).toBeUndefined()
  },
)
