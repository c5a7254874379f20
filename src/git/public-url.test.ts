import { describe, expect, test } from 'vitest'
import { publicAddress } from './public-url.ts'

const names: Readonly<Record<string, readonly string[]>> = {
  'github.com': ['140.82.121.4', '2a0a:a440::1'],
  'inside.example.org': ['203.0.113.9', '10.1.2.3'],
  'inside6.example.org': ['fd00::1'],
  'unresolvable.example.org': [],
}
/** Whoever answers for the network's own names may say anything. */
const resolve = async (host: string): Promise<readonly string[]> => names[host] ?? ['203.0.113.9']

describe('an address from a chat', () => {
  test.each([
    ['https://github.com/acme/app', 'github.com:443:140.82.121.4,2a0a:a440::1'],
    ['https://github.com:8443/acme/app.git', 'github.com:8443:140.82.121.4,2a0a:a440::1'],
    ['ssh://git@github.com/acme/app.git', undefined],
    ['ssh://git@github.com:2222/acme/app.git', undefined],
    ['git@github.com:acme/app.git', undefined],
    ['https://203.0.113.7/acme/app', undefined],
    ['ssh://git@[2a0a:a440::1]/acme/app', undefined],
  ])('that is public is cloned without redirects, from where it was checked: %s', async (url, pinned) => {
    expect(await publicAddress(url, resolve)).toEqual([
      ['http.followRedirects', 'false'],
      ...(pinned === undefined ? [] : [['http.curloptResolve', pinned]]),
    ])
  })

  const hosts = [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'git.localhost',
    'git',
    'metadata.google.internal',
    'printer.local',
    'nas.home.arpa',
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '017700000001',
    '0177.0.0.1',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '[::1]',
    '[::]',
    '[fc00::1]',
    '[fdff::1]',
    '[fe80::1]',
    '[febf::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:0:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::7f00:1]',
    '[2001::7f00:1]',
    '[fec0::1]',
    '[2002:7f00:1::]',
    'inside.example.org',
    'inside6.example.org',
    'unresolvable.example.org',
  ]
  test.each(hosts)('that is on a private network, in any spelling, is refused: %s', async (host) => {
    for (const url of [`https://${host}/a/b`, `ssh://git@${host}/a/b`, `git@${host}:a/b`]) {
      await expect(publicAddress(url, resolve)).rejects.toMatchObject({ code: 'name-invalid' })
    }
  })

  test.each([
    'file:///etc',
    'FILE:///etc',
    '/etc',
    './x',
    '../x',
    '~/x',
    'C:\\x',
    'http://github.com/acme/app',
    'git://github.com/acme/app',
    'ext::sh -c id',
    'ftp://github.com/x',
    'https://user:password@github.com/acme/app',
    'https://github.com\\@127.0.0.1/x',
    'https://github.com@127.0.0.1/x',
    'https://github.com#@127.0.0.1/x',
    'https://github.com?@127.0.0.1/x',
    'https://１２７.0.0.1/x',
    'https:/github.com/x',
    'https://github.com./acme/app',
    'ssh://git@github.com./acme/app',
    'ssh://-oProxyCommand=id/x',
    'git@github.com:-x',
    '-u',
    '',
  ])('of any other form is refused: %j', async (url) => {
    await expect(publicAddress(url, resolve)).rejects.toMatchObject({ code: 'name-invalid' })
  })
})
