import { expect, test } from 'vitest'
import { createRedactor } from './redact.ts'

const SECRET = 'hunter2/ä "pass"+word'
const redact = createRedactor([SECRET, 'abc', ''])

test.each([
  ['plain', SECRET],
  ['in JSON', JSON.stringify({ a: SECRET })],
  ['in a URL', `?q=${encodeURIComponent(SECRET)}`],
  ['as a form field', new URLSearchParams({ q: SECRET }).toString().replaceAll('%20', '+')],
])('a secret is hidden %s', (_, text) => {
  expect(redact(`before ${text} after`)).not.toMatch(/hunter2/)
  expect(redact(`before ${text} after`)).toMatch(/^before .*\[hidden\].* after$/)
})

test.each(['', 'u', 'us', 'usr', 'x-access-token:'])('a secret is hidden in base64 behind %j', (prefix) => {
  for (const encoding of ['base64', 'base64url'] as const) {
    const encoded = Buffer.from(`${prefix}${SECRET}`).toString(encoding)
    const left = redact(encoded).split('[hidden]')
    expect(left).toHaveLength(2)
    // what remains is what stood before the secret, and at most two characters of its ends
    expect(left[0]?.length).toBeLessThanOrEqual(Math.ceil((prefix.length * 8) / 6))
    expect(left[1]?.length).toBeLessThanOrEqual(4)
  }
})

test('a secret too short to be one blackens nothing', () => {
  expect(redact('abc abcdef')).toBe('abc abcdef')
})

test('of two secrets, one inside the other, no rest is left', () => {
  expect(createRedactor(['secret', 'secret-long'])('secret-long secret')).toBe('[hidden] [hidden]')
})

test('letters that mean something in a pattern are taken literally', () => {
  expect(createRedactor(['a.c*(e)[f]\\$^|'])('a.c*(e)[f]\\$^| abc')).toBe('[hidden] abc')
})

/** Put together here, so that no scanner takes this file for a leak. */
const token = (start: string[], length: number) => start.join('') + 'aB3'.repeat(20).slice(0, length)

test.each([
  token(['ghp', '_'], 36),
  token(['gho', '_'], 36),
  token(['github', '_pat_'], 50),
  token(['glpat', '-'], 20),
  token(['xoxb', '-1234-'], 24),
  token(['xapp', '-1-'], 24),
  token(['sk', '-ant-api03-'], 40),
  token(['sk', '-proj-'], 40),
  token(['123456789', ':AA'], 33),
  `https://api.telegram.org/bot${token(['123456789', ':AA'], 33)}/getMe`,
  `${token(['M'], 23)}.${token([''], 6)}.${token([''], 38)}`,
  `eyJ${token([''], 20)}.${token([''], 20)}.${token([''], 20)}`,
])('a well-known token is hidden: %s', (text) => {
  const hidden = createRedactor([])(`it is ${text}, really`)
  expect(hidden).toContain('[hidden]')
  expect(hidden).not.toContain('aB3aB3')
})

test.each([
  ['https://user:p@ss@host/x?y', 'https://[hidden]@host/x?y'],
  ['https://token@github.com/a/b.git', 'https://[hidden]@github.com/a/b.git'],
  ['postgres://u:p@db:5432/x', 'postgres://[hidden]@db:5432/x'],
  ['ssh://git@github.com/a', 'ssh://git@github.com/a'],
  ['ssh://git:pw@github.com/a', 'ssh://git:[hidden]@github.com/a'],
  ['Authorization: Basic dTpw', 'Authorization: [hidden]'],
  ['authorization: token abc\r\nHost: x', 'authorization: [hidden]\r\nHost: x'],
  ['{"Authorization":"Bearer abc","a":1}', '{"Authorization":"[hidden]","a":1}'],
  ['sent Bearer abcdefgh1234 there', 'sent Bearer [hidden] there'],
])('%s becomes %s', (text, hidden) => {
  expect(createRedactor([])(text)).toBe(hidden)
})

test.each(['git@github.com:a/b.git', 'see https://example.org/@user', 'mail me@example.org', 'task-12:34', 'issue-42'])(
  '%s stays as it is',
  (text) => {
    expect(createRedactor([])(text)).toBe(text)
  },
)

test.each(['a', '://', 'https://a@', '1', 'eyJ', 'sk-', '-----BEGIN PRIVATE KEY-----', 'a.', 'authorization:'])(
  'half a megabyte of %j takes no quadratic time',
  (piece) => {
    const before = performance.now()
    redact(piece.repeat(500_000 / piece.length))
    expect(performance.now() - before).toBeLessThan(2_000)
  },
)
