import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Evidence, inferWorks } from './infer-work.ts'

const nothing: Evidence = { rows: [], path: '/trees/x', branch: 'x', conversations: [] }
const row = (workflowType: string, workflowId: string, branch?: string): Evidence['rows'][number] => ({
  workflowType,
  workflowId,
  branch,
})
const github = (...ids: string[]): Evidence['conversations'] => ids.map((id) => ({ platform: 'github', id }))
const slack = (...ids: string[]): Evidence['conversations'] => ids.map((id) => ({ platform: 'slack', id }))
const works = (evidence: Partial<Evidence>): { work: string; aliases: string[] } => {
  const { work, aliases } = inferWorks({ ...nothing, ...evidence })
  return { work: `${work.type}:${work.id}`, aliases: aliases.map(({ type, id }) => `${type}:${id}`) }
}
const work = (evidence: Partial<Evidence>): string => works(evidence).work
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
  ])('is what its row says: %s %s', (type, id, expected) => {
    expect(work({ rows: [row(type, id)], path: '/trees/pr-1', conversations: github('a/b#2') })).toBe(expected)
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
  ])('is not %s %j, which could not be one', (type, id) => {
    expect(work({ rows: [row(type, id)], branch: 'b' })).toBe('task:b')
  })

  test.each([
    ['/trees/issue-42', [], 'issue:42'],
    ['/trees/pr-99', [], 'pr:99'],
    ['/trees/pr-99-review', [], 'review:99'],
    ['/trees/archon/task-dark', slack('C1:1'), 'task:dark'],
    // PR 99 works in the tree of issue 42.
    ['/trees/issue-42', github('a/b#99'), 'issue:42'],
    ['/trees/issue-42', slack('C1:1'), 'issue:42'],
    [`/trees/thread-${hash('C1:2')}`, [...github('a/b#9'), ...slack('C1:1', 'C1:2')], 'thread:C1:2'],
  ])('is what its directory is named after: %s', (path, conversations, expected) => {
    expect(work({ path, conversations })).toBe(expected)
  })

  test.each([
    ['/trees/fix', 'fix', github('a/b#42'), 'issue:42'],
    ['/trees/fix', 'fix', [...slack('C1:1'), ...github('a/b#42')], 'issue:42'],
    ['/trees/pr-99-fix', 'fix', github('a/b#99'), 'pr:99'],
    ['/trees/fix', 'archon/pr-99-fix', github('a/b#99'), 'pr:99'],
    ['/trees/fix', 'fix', [{ platform: 'gitlab', id: 'group/b!12' }], 'pr:12'],
    // The directory above it says nothing about it.
    ['/home/pr-team/fix', 'fix', github('a/b#42'), 'issue:42'],
    ['/trees/fix', 'fix', slack('C1:1', 'C1:2'), 'thread:C1:1'],
    ['/trees/thread-00000000', 'thread-00000000', slack('C1:1'), 'thread:C1:1'],
  ])('is what its conversations say: %s on %s with %j', (path, branch, conversations, expected) => {
    expect(work({ path, branch, conversations })).toBe(expected)
  })

  test.each([
    ['issue-42', 'issue:42'],
    ['pr-9-review', 'review:9'],
    ['feature/x', 'task:feature/x'],
  ])('is that of its branch when nobody says anything: %s', (branch, expected) => {
    expect(work({ branch })).toBe(expected)
  })
})

describe('two rows for one worktree', () => {
  const adopted = [row('pr', '99', 'issue-42'), row('issue', '42', 'issue-42')]

  test('the name of the directory chooses, in any order, and the other is an alias', () => {
    const evidence = { path: '/trees/issue-42', branch: 'issue-42' }
    for (const rows of [adopted, adopted.toReversed()]) {
      expect(works({ ...evidence, rows })).toEqual({ work: 'issue:42', aliases: ['pr:99'] })
    }
    expect(work({ rows: [row('pr', '1'), row('thread', 'C1:2')], path: `/t/thread-${hash('C1:2')}` })).toBe(
      'thread:C1:2',
    )
    expect(work({ rows: [row('pr', '1'), row('task', 'fix/login')], path: '/t/task-fix-login' })).toBe('task:fix/login')
  })

  test('without such a name the older row is the work', () => {
    expect(works({ rows: adopted, path: '/trees/x' })).toMatchObject({
      work: 'pr:99',
      aliases: ['issue:42', 'task:issue-42'],
    })
  })
})

describe('aliases', () => {
  test.each<[string, Partial<Evidence>, string, string[]]>([
    [
      'a branch given on the command line',
      {
        rows: [row('task', 'fix/login', 'archon/task-fix-login')],
        path: '/t/archon/task-fix-login',
        branch: 'archon/task-fix-login',
      },
      'task:fix/login',
      ['task:fix-login', 'task:task-fix-login'],
    ],
    [
      'a branch given in a chat',
      { rows: [row('task', 'task-dark', 'task-dark')], path: '/t/task-dark', branch: 'task-dark' },
      'task:dark',
      [],
    ],
    [
      'a branch given in a chat, before there were rows',
      { path: '/t/task-dark', branch: 'task-dark', conversations: slack('C1:1') },
      'task:dark',
      ['thread:C1:1'],
    ],
    [
      'the first versions, whose directory was the branch',
      { path: '/repo/worktrees/dark', branch: 'dark', conversations: slack('C1:1') },
      'thread:C1:1',
      [],
    ],
    [
      'a branch that is called task-x',
      { rows: [row('task', 'task-x')], path: '/t/archon/task-task-x', branch: 'archon/task-task-x' },
      'task:task-x',
      ['task:x', 'task:task-task-x'],
    ],
    [
      'a pull request that shared the tree through its conversation: an issue and a PR have the same numbers',
      {
        rows: [row('issue', '42')],
        path: '/t/issue-42',
        branch: 'issue-42',
        conversations: github('a/b#42', 'a/b#99'),
      },
      'issue:42',
      ['issue:99', 'pr:99'],
    ],
    [
      'an issue in the directory of another',
      { rows: [row('pr', '99')], path: '/t/archon/issue-42', branch: 'archon/issue-42' },
      'pr:99',
      ['issue:42', 'task:issue-42'],
    ],
  ])('%s', (_, evidence, expected, aliases) => {
    expect(works(evidence)).toEqual({ work: expected, aliases: expect.arrayContaining(aliases) })
    expect(works(evidence).aliases.length - aliases.length).toBeLessThan(2)
  })
})
