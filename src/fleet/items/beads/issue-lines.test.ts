import { describe, expect, test } from 'vitest'
import { readIssueLines } from './issue-lines.ts'

const read = (...lines: readonly (string | object | Buffer)[]) =>
  readIssueLines(
    Buffer.concat(
      lines.flatMap((line) => [
        Buffer.isBuffer(line) ? line : Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)),
        Buffer.from('\n'),
      ]),
    ),
    { name: 'issues.jsonl', code: 'unusable-file', remedy: 'correct it' },
  )

const fine = { id: 'bd-1', title: 'Fix login', status: 'open', priority: 1, issue_type: 'bug' }

test('an issue as `bd export` writes it', async () => {
  const line = {
    _type: 'issue',
    ...fine,
    description: 'It says 500 ',
    design: 'Ask twice',
    acceptance_criteria: '- [ ] it says 200',
    notes: '',
    owner: 'ann@example.org',
    created_at: '2026-04-18T16:19:12Z',
    defer_until: '2027-01-01T00:00:00Z',
    dependencies: [
      { issue_id: 'bd-1', depends_on_id: 'bd-2', type: 'blocks', created_at: '2026-04-18T16:19:12Z', metadata: '{}' },
      { issue_id: 'bd-1', depends_on_id: 'bd-3', type: 'waits-for', metadata: '{"gate":"any-children"}' },
    ],
    dependency_count: 2,
  }
  expect(await read(line)).toEqual({
    others: 0,
    issues: [
      {
        line: 1,
        id: 'bd-1',
        title: 'Fix login',
        body: 'It says 500\n\n## Design\n\nAsk twice\n\n## Acceptance criteria\n\n- [ ] it says 200',
        status: 'open',
        priority: 1,
        type: 'bug',
        deleted: false,
        aside: false,
        deferredUntil: Date.parse('2027-01-01T00:00:00Z'),
        createdAt: Date.parse('2026-04-18T16:19:12Z'),
        dependencies: [
          { on: 'bd-2', type: 'blocks', anyChild: false },
          { on: 'bd-3', type: 'waits-for', anyChild: true },
        ],
      },
    ],
  })
})

test('what may be missing is missing; empty lines and other records are passed over', async () => {
  const bom = Buffer.from('\ufeff{"id":"x-1","title":"a"}\r')
  const { issues, others } = await read(bom, '', { _type: 'memory', key: 'k', value: 'v' }, ' \t')
  expect(others).toBe(1)
  expect(issues).toMatchObject([{ id: 'x-1', body: '', status: 'open', priority: 2, type: 'task', createdAt: 0 }])
})

test('an issue that is over needs no text, and one that was deleted says so', async () => {
  const long = 'x'.repeat(200_000)
  const { issues } = await read(
    { id: 'a-1', status: 'tombstone', title: '' },
    { id: 'a-2', status: 'closed', description: long },
    { ...fine, id: 'a-3', deleted_at: '2026-01-01T00:00:00Z' },
    { ...fine, id: 'a-4', wisp: true },
    { ...fine, id: 'a-5', is_template: true },
  )
  expect(issues.map(({ id, deleted, aside }) => [id, deleted, aside])).toEqual([
    ['a-1', false, false],
    ['a-2', false, false],
    ['a-3', true, false],
    ['a-4', false, true],
    ['a-5', false, true],
  ])
})

test('what nobody can see is not in the text', async () => {
  const { issues } = await read({ ...fine, title: 'Fix\u200b lo\u0000gin', description: 'a\u202eb\u{e0041}c' })
  expect(issues).toMatchObject([{ title: 'Fix login', body: 'abc' }])
})

describe('an error names line and reason:', () => {
  test.each<[string, string | object | Buffer, RegExp]>([
    ['no JSON', '{"id":"bd-2"', /line 2: not a JSON object/],
    ['a list', '[]', /line 2: not a JSON object/],
    ['a conflict in git', '<<<<<<< HEAD', /line 2: not a JSON object/],
    ['NUL bytes', Buffer.alloc(10), /line 2: NUL bytes/],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /line 2: not valid UTF-8/],
    ['a huge line', Buffer.alloc(4_000_001, 'x'), /line 2: too long: 4000001 bytes/],
    ['no id', { title: 'x' }, /line 2: id: /],
    ['an id that is an option', { ...fine, id: '--force' }, /line 2: id: not an issue id/],
    ['an id with invisible characters', { ...fine, id: 'bd-\u200b2' }, /line 2: id: not an issue id/],
    ['the same id again', fine, /line 2: bd-1 is in line 1, too/],
    ['no title', { ...fine, id: 'bd-2', title: '\u2066 ' }, /line 2: bd-2 has no title/],
    ['a priority that is none', { ...fine, id: 'bd-2', priority: 7 }, /line 2: priority: /],
    ['a status that is none', { ...fine, id: 'bd-2', status: 'Open; rm' }, /line 2: status: not a status/],
    ['a dependency that is none', { ...fine, id: 'bd-2', dependencies: ['bd-1'] }, /line 2: dependencies\.0: /],
    ['a text without end', { ...fine, id: 'bd-2', notes: 'x'.repeat(100_001) }, /line 2: the text of bd-2 has 10/],
  ])('%s', async (_name, line, why) => {
    await expect(read(fine, line)).rejects.toMatchObject({ code: 'unusable-file', message: expect.stringMatching(why) })
    await expect(read(fine, line)).rejects.toThrow(/^issues\.jsonl, line 2/)
  })

  test('up to five of them', async () => {
    await expect(read('a', fine, 'b', 'c', 'd', 'e', 'f')).rejects.toThrow(
      /line 1: [^;]*; line 3: [^;]*; line 4: [^;]*; line 5: [^;]*; line 6: [^;]*$/,
    )
  })

  test('more issues than fit', { timeout: 120_000 }, async () => {
    const lines = Array.from({ length: 100_001 }, (_, n) => `{"id":"bd-${n}","title":"x"}`)
    await expect(read(...lines)).rejects.toThrow('issues.jsonl, line 100001: more than 100000 issues')
  })
})
