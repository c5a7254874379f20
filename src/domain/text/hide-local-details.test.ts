import { expect, test } from 'vitest'
import { hideLocalDetails } from './hide-local-details.ts'

const platforms = new Map([
  ['slack', { reach: 'server', persistent: false }],
  ['a.b', { reach: 'server', persistent: true }],
  ['github', { reach: 'repository', persistent: false }],
] as const)

test.each([
  ['Adopted the worktree at /srv/trees/app/issue-42 (branch `x`)', 'Adopted the worktree at …/issue-42 (branch `x`)'],
  ['`~/.coppice/worktrees/app/issue-42`', '`…/issue-42`'],
  ['see /var/lib/coppice/logs/', 'see …/logs/'],
  ['from file:///srv/git/app.git', 'from file://…'],
  ['ENOENT:/root/.coppice/token', 'ENOENT:…/token'],
  ['git -C/root/app/main status', 'git -C…/main status'],
  ['from file:/srv/git/app.git', 'from file:…/app.git'],
  ['~root/.coppice/token and ~root/token', '…/token and …/token'],
  ['curl -d @/root/.coppice/token', 'curl -d @…/token'],
  ['slack:C123:1712.34 still uses it', 'a conversation on slack still uses it'],
  ['a.b:7 still uses it, axb:7 too', 'a conversation on a.b still uses it, axb:7 too'],
  ['`/worktree list` · origin/main · feature/x/y', '`/worktree list` · origin/main · feature/x/y'],
  ['https://github.com/acme/app/pull/7', 'https://github.com/acme/app/pull/7'],
  ['git@github.com:acme/app.git', 'git@github.com:acme/app.git'],
  ['fix-x/y/z · http://localhost:3000/a/b', 'fix-x/y/z · http://localhost:3000/a/b'],
  ['github:acme/app#99 still uses it', 'github:acme/app#99 still uses it'],
])('what everybody can read names no path and no other conversation: %s', (text, shown) => {
  expect(hideLocalDetails(text, platforms)).toBe(shown)
})

test('without any platform of this server there is no conversation to hide', () => {
  expect(hideLocalDetails('slack:C1 and :x', new Map())).toBe('slack:C1 and :x')
})
