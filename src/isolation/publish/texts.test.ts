import { expect, test } from 'vitest'
import { toWork } from '../../domain/work.ts'
import { type PullRequestFacts, pullRequestText, titleLine } from './texts.ts'

const textOf = (messages: readonly string[], more: Partial<PullRequestFacts> = {}) =>
  pullRequestText({ work: toWork('issue', '42'), branch: 'issue-42', fixes: [], messages, checked: [], ...more })

test('one commit gives title, description and checks; several are listed', () => {
  const one = 'Fix the login\n\nIt failed.\n\nTested: npm test\nCo-authored-by: Ada'
  expect(textOf([one], { fixes: [42] })).toEqual({
    title: 'Fix the login',
    body: 'Fixes #42\n\nIt failed.\n\n## How it was checked\n\n- npm test',
  })
  expect(textOf([one, 'Add a test'])).toEqual({
    title: 'Fix the login',
    body: '- Fix the login\n- Add a test\n\n## How it was checked\n\n- npm test',
  })
  expect(textOf([one, 'Add a test'], { work: toWork('task', 'add-dark-mode') }).title).toBe('Add dark mode')
})

test.each([
  ['characters that hide or reorder', 'Fix \u202Egol\u202C \u200Bin\u{E0041}', 'Fix gol in'],
  ['terminal control', 'Fix \u001b[31mred', 'Fix [31mred'],
])('a subject with %s is one visible line', (_what, subject, shown) => {
  const { title, body } = textOf([`${subject}\n\nWhy`, 'Another'])
  expect(title).toBe(shown)
  expect(body.split('\n').slice(0, 2)).toEqual([`- ${shown}`, '- Another'])
  expect(titleLine(subject)).toBe(shown)
})

test('line breaks of any kind end a subject, and join a given title', () => {
  const message = 'Fix\rFixes #1\u2028# Heading\v\f\u0085<!--'
  const { title, body } = textOf([message, 'Another'])
  expect([title, body.split('\n').slice(0, 2)]).toEqual(['Fix', ['- Fix', '- Another']])
  expect(titleLine(message)).toBe('Fix Fixes #1 # Heading <!--')
})

test('a description has no hidden characters, and its lines stay', () => {
  const { body } = textOf(['Fix\n\nfirst\rsecond \u202Edesrever\n\nthird'])
  expect(body).toBe("first\nsecond desrever\n\nthird\n\n## How it was checked\n\nThe commits don't say.")
})

test('a title is never empty, and never ends with half a character', () => {
  expect(textOf(['\u200B\u2028']).title).toBe('Issue 42')
  expect(textOf(['\u200B', 'Add a test']).title).toBe('Issue 42')
  expect(textOf([`${'x'.repeat(199)}😀`]).title).toBe('x'.repeat(199))
})
