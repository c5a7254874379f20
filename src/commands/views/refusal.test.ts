import { expect, test } from 'vitest'
import type { GateAnswer } from '../../domain/gates.ts'
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
  const detail = 'something is mounted inside it: my data (bind mount of /data)'
  expect(say({ gate: 'no-mount', answer: 'no', detail, path: '/trees/app/issue-42/my data' })).toBe(
    [`Cannot remove worktree \`issue-42\`: ${detail}.`, " 1. Unmount it:  umount '/trees/app/issue-42/my data'"].join(
      '\n',
    ),
  )
})

test('a worktree inside is to be removed or moved by the repository it belongs to, and force is not offered', () => {
  const path = '/trees/app/issue-42/.claude/worktrees/a'
  const reason = {
    gate: 'no-worktree-inside',
    answer: 'no',
    detail: 'there is a worktree inside: .claude/worktrees/a',
    path,
    repository: '/other/.git',
  } as const
  expect(say(reason).split('\n').slice(1)).toEqual([
    ` 1. Remove that worktree:  git -C /other/.git worktree remove ${path}`,
    ` 2. Move it out:           git -C /other/.git worktree move ${path} <path>`,
  ])
})

test('a repository inside can be moved out, or removed by force and restored', () => {
  const detail = 'there is a repository inside: node_modules/lib (1 commit on no remote)'
  expect(
    say({ gate: 'no-repository-inside', answer: 'no', detail, path: '/trees/app/issue-42/node_modules/lib' })
      .split('\n')
      .slice(1),
  ).toEqual([
    ' 1. Keep the repository:  push its commits, or move it out: mv /trees/app/issue-42/node_modules/lib <path>',
    ' 2. Remove it anyway:     coppice worktree remove issue-42 --force   (kept for 30 days: coppice worktree restore issue-42)',
  ])
})
