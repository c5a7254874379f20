import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeWorld } from '../../../../test/helpers/world.ts'
import { toWork } from '../../../domain/work.ts'
import { resolveIsolation } from '../../resolve/resolve.ts'
import { describeReason } from '../../../commands/views/reasons.ts'

const issue = (n: number) => ({ work: toWork('issue', String(n)), hints: {}, createdBy: 'test' })

test('an environment is created, found again, removed when clean, and brought back', async () => {
  await using world = await makeWorld()
  const { context, codebase, provider, repo } = world
  const made = await resolveIsolation(context, provider, { codebase, ...issue(42) })
  if (made.outcome !== 'resolved') throw new Error('not resolved')
  const { environment } = made
  expect(environment).toMatchObject({ status: 'active', branch: 'issue-42', owned: true })
  expect(repo.git('-C', environment.path, 'status', '--short')).toBe('')
  const before = context.git.spawned()
  const again = await resolveIsolation(context, provider, { codebase, ...issue(42) })
  expect(again).toMatchObject({ outcome: 'resolved', how: 'same-work', environment: { id: environment.id } })
  expect(context.git.spawned()).toBe(before)

  writeFileSync(join(environment.path, 'README'), 'changed\n')
  writeFileSync(join(environment.path, 'new.txt'), 'new\n')
  const refused = await provider.destroy(environment, { trigger: 'command' })
  expect(refused).toMatchObject({ outcome: 'refused' })
  expect(refused.outcome === 'refused' && refused.reasons.map(describeReason)).toEqual([
    '1 file changed',
    '1 untracked',
  ])

  const removed = await provider.destroy(environment, { trigger: 'command', force: true })
  if (removed.outcome !== 'removed' || removed.restorePoint === undefined) throw new Error(JSON.stringify(removed))
  expect(existsSync(environment.path)).toBe(false)
  expect(repo.git('worktree', 'list')).not.toContain('issue-42')
  expect(repo.git('branch', '--list', 'issue-42')).toBe('')

  const restored = await provider.restore(removed.restorePoint)
  expect(restored.environment.branch).toBe('issue-42')
  expect(readFileSync(join(restored.environment.path, 'README'), 'utf8')).toBe('changed\n')
  expect(readFileSync(join(restored.environment.path, 'new.txt'), 'utf8')).toBe('new\n')
  expect(repo.git('-C', restored.environment.path, 'status', '--short').split('\n')).toEqual([
    ' M README',
    '?? new.txt',
  ])
})
