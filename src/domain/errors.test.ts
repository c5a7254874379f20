import { expect, test } from 'vitest'
import { AppError, isAppError, toAppError } from './errors.ts'

test('an AppError is known by its code', () => {
  const error = new AppError('busy', 'the repository is busy', { remedy: 'try again' })
  expect(isAppError(error)).toBe(true)
  expect(isAppError(error, 'busy')).toBe(true)
  expect(isAppError(error, 'timeout')).toBe(false)
  expect(isAppError(new Error('x'))).toBe(false)
  expect(error.remedy).toBe('try again')
  expect('cause' in error).toBe(false)
})

test('whatever was thrown becomes an AppError that still has it', () => {
  const cause = new TypeError('no')
  expect(toAppError(cause)).toMatchObject({ code: 'unexpected', message: 'no', cause })
  expect(toAppError('text')).toMatchObject({ code: 'unexpected', message: 'text', cause: 'text' })
  expect(toAppError(undefined)).toMatchObject({ code: 'unexpected', message: 'undefined' })
  const already = new AppError('busy', 'x')
  expect(toAppError(already)).toBe(already)
})

test('a full disk is told as such, by code, by what git says, and by its quota', () => {
  expect(toAppError(Object.assign(new Error('write'), { code: 'ENOSPC' }))).toMatchObject({ code: 'disk-full' })
  expect(toAppError(Object.assign(new Error('write'), { code: 'EDQUOT' }))).toMatchObject({ code: 'disk-full' })
  expect(toAppError(new Error('fatal: write error: No space left on device'))).toMatchObject({ code: 'disk-full' })
})
