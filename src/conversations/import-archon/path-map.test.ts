import { expect, test } from 'vitest'
import { mapPath, parsePathMap } from './path-map.ts'

const map = [
  { from: '/.archon', to: '/opt/archon' },
  { from: '/.archon/workspaces', to: '/big/workspaces' },
]

test.each([
  ['/.archon/worktrees/x', '/opt/archon/worktrees/x'],
  ['/.archon', '/opt/archon'],
  ['/.archon/workspaces/a', '/big/workspaces/a'],
  // Only whole names match.
  ['/.archon2/x', '/.archon2/x'],
  ['/.archon/workspaces2', '/opt/archon/workspaces2'],
  ['/.archon/../etc', '/.archon/../etc'],
  ['relative', 'relative'],
])('%s is %s here', (path, expected) => {
  expect(mapPath(map, path)).toBe(expected)
})

test.each([
  ['/.archon=/opt/archon', { from: '/.archon', to: '/opt/archon' }],
  ['/.archon/=/opt/a=b/', { from: '/.archon', to: '/opt/a=b' }],
  ['/=/mnt', { from: '/', to: '/mnt' }],
  ['archon=/opt', undefined],
  ['/.archon=opt', undefined],
  ['/.archon', undefined],
  ['=/opt', undefined],
])('--map %s', (text, expected) => {
  expect(parsePathMap(text)).toEqual(expected)
})

test('everything can be mapped', () => {
  expect(mapPath([{ from: '/', to: '/mnt' }], '/.archon/x')).toBe('/mnt/.archon/x')
})
