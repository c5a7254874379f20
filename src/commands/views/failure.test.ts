import { expect, test } from 'vitest'
import { AppError } from '../../domain/errors.ts'
import { ReasonedError } from '../../domain/reasoned-error.ts'
import { no } from '../../domain/removal/gates.ts'
import { failureJson, failureText } from './failure.ts'
import { asProgram } from './view.ts'

test.each([
  ['limits.runMinutes must be a number', 'limits.runMinutes must be a number.'],
  ['choose another name', 'Choose another name.'],
  ['git worktree repair', 'git worktree repair.'],
])('a remedy begins with a capital unless it begins with a name: %s', (remedy, expected) => {
  expect(failureText(new AppError('config-invalid', 'it failed', { remedy }), asProgram)).toBe(
    `it failed.\n${expected}`,
  )
})

test('the reasons of a fault stand behind its message, and programs get them one by one', () => {
  const inside = no('not-in-use', { kind: 'process', pid: 7, command: 'vi' })
  const error = new ReasonedError('busy', "didn't trust x", [
    inside,
    { kind: 'left-alone', operation: 'create', name: 'y', why: { kind: 'setup-running' } },
    { left: { kind: 'facts', facts: [{ kind: 'you' }] } },
  ])
  const words = [
    "didn't trust x: process 7 (vi) is inside it",
    'left alone: create y: a process that its setup started is still running',
    'you are inside it: leave it first',
  ].join(', ')
  expect(failureText(error, asProgram)).toBe(`${words}.`)
  expect(failureJson(error, asProgram, (text) => text).error).toMatchObject({
    message: words,
    reasons: [{ gate: 'not-in-use', answer: 'no', detail: 'process 7 (vi) is inside it' }],
  })
})
