import { expect, test } from 'vitest'
import { anEnvironment } from '../../test/helpers/store-values.ts'
import { toBranchName } from './names.ts'
import { type Candidate, fileNamesIn, relatedIn } from './related.ts'
import { toWork, type WorkType } from './work.ts'

const candidate = (branch: string, type: WorkType, id: string, more: Partial<Candidate> = {}): Candidate => ({
  environment: anEnvironment(branch, { branch: toBranchName(branch), work: toWork(type, id) }),
  works: [toWork(type, id)],
  titles: [],
  ...more,
})

const issue = toWork('issue', '42')
const candidates = [
  candidate('thread-1a2b', 'thread', 'C1', {
    works: [toWork('thread', 'C1'), issue],
    titles: ['Login is broken on Safari', 'go'],
  }),
  candidate('fix/login', 'pr', '9', { titles: ['fix/login'] }),
  candidate('wip', 'task', 'add-dark-mode', { titles: ['add-dark-mode'] }),
  candidate('issue-50', 'issue', '50'),
  candidate('pr-8-review', 'review', '8'),
  candidate('umlaute', 'task', 'umlaute', { titles: ['Ärger mit Umlauten hier'] }),
]

test.each<[string, string | undefined]>([
  ['the same as #42?', 'thread-1a2b number'],
  ['see issue 42.', 'thread-1a2b number'],
  ['Issue #42', 'thread-1a2b number'],
  ['(acme/app#42)', 'thread-1a2b number'],
  ['https://github.com/Acme/app/issues/42#issuecomment-1', 'thread-1a2b number'],
  ['https://github.com/acme/app/pull/9', 'fix/login number'],
  ['PR 9', 'fix/login number'],
  ['pull request #8', 'pr-8-review number'],
  // A number is stronger than the name of a branch.
  ['#42, unlike fix/login', 'thread-1a2b number'],
  ['#42 or #50', 'several'],
  ['issue 9, PR 42, pull request 50', undefined],
  ['other/app#42, https://github.com/other/app/issues/42', undefined],
  ['42, #420, #42x, x#42, &#42; 1.#42 ##42 issues 42', undefined],
  ['what about fix/login.', 'fix/login branch'],
  ['what about issue-50', 'issue-50 number'],
  ['continue `wip`', 'wip branch'],
  ['this is still wip', undefined],
  ['fix/login-page, a/fix/login', undefined],
  ['Add dark mode', 'wip title'],
  ['please add DARK mode, to the settings', 'wip title'],
  ['add a dark mode', undefined],
  ['login is broken on safari!', 'thread-1a2b title'],
  ['I want to fix login here', undefined],
  ['go', undefined],
  ['arger mit Umlauten hier', 'umlaute title'],
  ['', undefined],
])('a text speaks plainly of one work, of several or of none: %s', (text, expected) => {
  const found = relatedIn(text, candidates, 'acme/app')
  expect(typeof found === 'object' ? `${found.environment.branch} ${found.by.kind}` : found).toBe(expected)
})

test.each<[string, string[]]>([
  ['why is src/login.ts slow? And login.test.tsx, `a-b.py`.', ['src/login.ts', 'login.test.tsx', 'a-b.py']],
  ['e.g. this, i.e. that, v1.2, 3.14 and 10.0.0.1, me@example.org', []],
  ['https://example.org/index.html', []],
  ['README.md and package.json', []],
  ['../../etc/passwd.txt /etc/x.conf', []],
  ['a1.ts a2.ts a3.ts a4.ts a5.ts a6.ts a1.ts', ['a1.ts', 'a2.ts', 'a3.ts', 'a4.ts', 'a5.ts']],
])('the names of files in a text: %s', (text, names) => {
  expect(fileNamesIn(text)).toEqual(names)
})
