import { expect, test } from 'vitest'
import { type GateAnswer, no } from '../../domain/removal/gates.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { refusalText } from './refusal.ts'

const environment = { branch: 'issue-42', path: '/trees/app/issue-42' } as IsolatedEnvironment
const view = {
  paint: (_style: string, text: string) => text,
  now: 0,
  userHome: undefined,
  say: (words: string) => `coppice ${words}`,
  columns: undefined,
}
const say = (...reasons: GateAnswer[]): string =>
  refusalText(
    {
      outcome: 'refused',
      environment,
      reasons,
      forced: false,
      restoreDays: 30,
      hold: { days: 14, mergedHours: 1 },
      codebase: 'app',
      checkoutPath: '/app',
      repoPath: '/app/.git',
      push: undefined,
    },
    view,
  )

test('a mount is to be unmounted, and force is not offered', () => {
  const fact = {
    kind: 'mount',
    path: '/trees/app/issue-42/my data',
    name: 'my data',
    what: 'bind mount of /data',
  } as const
  expect(say(no('no-mount', fact))).toBe(
    [
      'Cannot remove worktree `issue-42`: something is mounted inside it: my data (bind mount of /data).',
      " 1. Unmount it:  umount '/trees/app/issue-42/my data'",
    ].join('\n'),
  )
})

test('a worktree inside is to be removed or moved by the repository it belongs to, and force is not offered', () => {
  const name = '.claude/worktrees/a'
  const path = `/trees/app/issue-42/${name}`
  const reason = no('no-worktree-inside', { kind: 'worktree-inside', path, name, repository: '/other/.git' })
  expect(say(reason).split('\n').slice(1)).toEqual([
    ` 1. Remove that worktree:  git -C /other/.git worktree remove ${path}`,
    ` 2. Move it out:           git -C /other/.git worktree move ${path} <path>`,
  ])
})

test('a repository inside can be moved out, or removed by force and restored', () => {
  const name = 'node_modules/lib'
  const path = `/trees/app/issue-42/${name}`
  const reason = no('no-repository-inside', { kind: 'repository-inside', path, name, work: '1 commit on no remote' })
  expect(say(reason).split('\n')).toEqual([
    'Cannot remove worktree `issue-42`: it contains a repository: node_modules/lib (1 commit on no remote).',
    ' 1. Keep the repository:  push its commits, or move it out: mv /trees/app/issue-42/node_modules/lib <path>',
    ' 2. Remove it anyway:     coppice worktree remove issue-42 --force   (kept for 30 days: coppice worktree restore issue-42)',
  ])
})
