import { expect, test } from 'vitest'
import { compareUrl } from './compare-url.ts'

test.each([
  ['git@github.com:acme/app.git', 'https://github.com/acme/app/compare/main...fix/a%23b?expand=1'],
  ['https://acme.ghe.com/acme/app', 'https://acme.ghe.com/acme/app/compare/main...fix/a%23b?expand=1'],
  [
    'https://gitlab.com/g/s/app.git',
    'https://gitlab.com/g/s/app/-/merge_requests/new?merge_request[source_branch]=fix/a%23b',
  ],
  ['https://bitbucket.org/acme/app', 'https://bitbucket.org/acme/app/pull-requests/new?source=fix/a%23b'],
  ['ssh://git@codeberg.org/acme/app.git', 'https://codeberg.org/acme/app/compare/main...fix/a%23b'],
  ['https://git.example.org/acme/app', undefined],
  ['https://github.com.evil.org/acme/app', undefined],
  ['/srv/app.git', undefined],
])('%s', (remoteUrl, expected) => {
  expect(compareUrl(remoteUrl, { base: 'main', branch: 'fix/a#b' })).toBe(expected)
})
