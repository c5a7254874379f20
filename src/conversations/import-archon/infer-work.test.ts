import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Evidence, inferWork } from './infer-work.ts'

const nothing: Evidence = {
  workflowType: undefined,
  workflowId: undefined,
  path: '/trees/x',
  branch: 'x',
  conversationIds: [],
}
const work = (evidence: Partial<Evidence>): string => {
  const { type, id } = inferWork({ ...nothing, ...evidence })
  return `${type}:${id}`
}
const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

describe('the work of an environment', () => {
  test.each([
    ['issue', '42', 'issue:42'],
    ['issue', 'issue-42', 'issue:42'],
    ['pr', 'pr-99', 'pr:99'],
    ['pr', '#99', 'pr:99'],
    ['review', '99', 'review:99'],
    ['review', 'pr-99-review', 'review:99'],
    ['thread', 'C1:17.5', 'thread:C1:17.5'],
    ['task', 'dark-mode', 'task:dark-mode'],
  ])('is what its row says: %s %s', (workflowType, workflowId, expected) => {
    expect(work({ workflowType, workflowId, path: '/trees/pr-1', conversationIds: ['a/b#2'] })).toBe(expected)
  })

  test.each([
    ['issue', 'not a number'],
    ['issue', '042'],
    ['issue', ''],
    ['thread', 'a\u001b[2Jb'],
    ['thread', ' '],
    ['thread', '\ud800'],
    ['task', 'x'.repeat(501)],
    ['task', 'a\nb'],
    ['container', '42'],
  ])('is not %s %j, which could not be one', (workflowType, workflowId) => {
    expect(work({ workflowType, workflowId, branch: 'b' })).toBe('task:b')
  })

  test.each([
    ['/trees/issue-42', [], 'issue:42'],
    ['/trees/pr-99', [], 'pr:99'],
    ['/trees/pr-99-review', [], 'review:99'],
    // PR 99 works in the tree of issue 42.
    ['/trees/issue-42', ['a/b#99'], 'issue:42'],
    ['/trees/issue-42', ['C1:1'], 'issue:42'],
    [`/trees/thread-${hash('C1:2')}`, ['a/b#9', 'C1:1', 'C1:2'], 'thread:C1:2'],
  ])('is what its directory is named after: %s', (path, conversationIds, expected) => {
    expect(work({ path, conversationIds })).toBe(expected)
  })

  test.each([
    ['/trees/fix', 'fix', ['a/b#42'], 'issue:42'],
    ['/trees/fix', 'fix', ['C1:1', 'a/b#42'], 'issue:42'],
    ['/trees/pr-99-fix', 'fix', ['a/b#99'], 'pr:99'],
    ['/trees/fix', 'archon/pr-99-fix', ['a/b#99'], 'pr:99'],
    ['/trees/fix', 'fix', ['group/b!12'], 'pr:12'],
    // The directory above it says nothing about it.
    ['/home/pr-team/fix', 'fix', ['a/b#42'], 'issue:42'],
    ['/trees/fix', 'fix', ['C1:1', 'C1:2'], 'thread:C1:1'],
    ['/trees/thread-00000000', 'thread-00000000', ['C1:1'], 'thread:C1:1'],
  ])('is what its conversations say: %s on %s with %j', (path, branch, conversationIds, expected) => {
    expect(work({ path, branch, conversationIds })).toBe(expected)
  })

  test.each([
    ['issue-42', 'issue:42'],
    ['pr-9-review', 'review:9'],
    ['feature/x', 'task:feature/x'],
  ])('is that of its branch when nobody says anything: %s', (branch, expected) => {
    expect(work({ branch })).toBe(expected)
  })
})
