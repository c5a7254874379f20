import { expect, test } from 'vitest'
import { reachOf, withoutMachine } from './reach.ts'

test('only the platforms of this server’s own people reach beyond a repository', () => {
  const wide = ['cli', 'web', 'test', 'slack', 'discord', 'telegram']
  expect(wide.map((platform) => reachOf({ platform }))).toEqual(wide.map(() => 'server'))
  expect(['github', 'gitlab', 'forgejo', ''].map((platform) => reachOf({ platform }))).not.toContain('server')
})

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
  ['`/worktree list` · origin/main · feature/x/y', '`/worktree list` · origin/main · feature/x/y'],
  ['https://github.com/acme/app/pull/7', 'https://github.com/acme/app/pull/7'],
  ['git@github.com:acme/app.git', 'git@github.com:acme/app.git'],
  ['fix-x/y/z · http://localhost:3000/a/b', 'fix-x/y/z · http://localhost:3000/a/b'],
  ['github:acme/app#99 still uses it', 'github:acme/app#99 still uses it'],
])('what everybody can read names no path and no other conversation: %s', (text, shown) => {
  expect(withoutMachine(text)).toBe(shown)
})
