import { expect, test } from 'vitest'
import { AppError } from '../../domain/errors.ts'
import { failureText } from './failure.ts'
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
