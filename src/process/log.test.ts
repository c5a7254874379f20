import { expect, test } from 'vitest'
import { AppError } from '../domain/errors.ts'
import { createLogger } from './log.ts'
import type { LogLevel } from './log.ts'
import { createSecrets } from './redaction/redact.ts'

const logger = (level: LogLevel = 'debug') => {
  const lines: string[] = []
  const log = createLogger({
    write: (line) => lines.push(line),
    level,
    clock: () => 0,
    redact: createSecrets(['s3cr3t-value']).redact,
  })
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? 'null') as Record<string, unknown> }
}

test('a line is one JSON object with time, level, message and fields', () => {
  const { log, lines } = logger()
  log.info('environment created', { branch: 'issue-42', ms: 12 })
  expect(lines).toEqual([
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","message":"environment created","branch":"issue-42","ms":12}\n',
  ])
})

test('a child adds its fields to every line, and fields cannot pass for time, level or message', () => {
  const { log, last } = logger()
  log.child({ codebase: 'a' }).child({ env: 'b' }).warn('odd', { message: 'forged', level: 'debug' })
  expect(last()).toMatchObject({ level: 'warn', message: 'odd', codebase: 'a', env: 'b' })
})

test('lines below the level are not written', () => {
  const { log, lines } = logger('warn')
  log.debug('a')
  log.info('b')
  log.warn('c')
  log.error('d')
  expect(lines).toHaveLength(2)
})

test('a secret is hidden wherever it sits, and the line is still JSON', () => {
  const { log, lines, last } = logger()
  const cause = new Error('inner s3cr3t-value')
  log.child({ base: 's3cr3t-value' }).error('with s3cr3t-value', {
    deep: [{ 's3cr3t-value': 'x s3cr3t-value' }],
    error: new AppError('git-failed', 'outer s3cr3t-value', { cause, remedy: 'use s3cr3t-value' }),
    token: 'short',
    headers: { Authorization: 'x', cookie: { a: 'short' } },
    map: new Map([['k', 's3cr3t-value']]),
    tokens: 12,
  })
  expect(lines.join('')).not.toMatch(/s3cr3t|short/)
  expect(last()).toMatchObject({
    tokens: 12,
    token: '[hidden]',
    error: { code: 'git-failed', cause: { name: 'Error' } },
  })
})

test('nothing that is logged, and no failing writer, makes it throw', () => {
  const { log, lines } = logger()
  const circle: Record<string, unknown> = { big: 1n, fn: () => 1, date: new Date(Number.NaN), none: undefined }
  circle['self'] = circle
  log.info('circle', { circle })
  expect(lines.at(-1)).toContain('[circular]')
  const write = () => {
    throw new Error('disk full')
  }
  const failing = createLogger({ write, level: 'info', clock: () => 0, redact: (text) => text })
  expect(() => failing.info('x')).not.toThrow()
})
