import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSecrets } from './redact.ts'

const SECRET = 'correct horse/battery+staple'
/** Put together here, so that no scanner takes this file for a leak. */
const GITHUB = `${['ghp', '_'].join('')}${'aB3'.repeat(12)}`
const KEY = ['-----BEGIN PRIVATE', 'KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3\n-----END PRIVATE', 'KEY-----'].join(' ')

const streamed = (pieces: readonly string[], secrets = createSecrets([SECRET])): string => {
  let shown = ''
  const stream = secrets.stream((text) => (shown += text))
  for (const piece of pieces) stream.push(piece)
  stream.end()
  return shown
}

const base64 = Buffer.from(SECRET).toString('base64').slice(0, -3)

test.each([
  ['a known secret', SECRET],
  ['base64', base64],
  ['a wrapped line', `${SECRET.slice(0, 14)}\n  ${SECRET.slice(14)}`],
  ['colours', `${SECRET.slice(0, 14)}\u001b[1m${SECRET.slice(14)}`],
  ['a character set and colours', `${SECRET.slice(0, 14)}\u001b(B\u001b[m${SECRET.slice(14)}`],
  ['a link', `${SECRET.slice(0, 14)}\u001b]8;;https://a.b/\u001b\\${SECRET.slice(14)}`],
  ['the rest of a sequence', `\u001b[${SECRET.slice(0, 14)}\u001b[m${SECRET.slice(14)}`],
  ['an unknown token', GITHUB],
  [
    'an unknown token with colours',
    `${GITHUB.slice(0, 2)}\u001b[1m${GITHUB.slice(2, 14)}\u001b(B\u001b[m${GITHUB.slice(14)}`,
  ],
  ['an unknown token around a title', `${GITHUB.slice(0, 14)}\u001b]0;my own title\u0007${GITHUB.slice(14)}`],
  ['an unknown token around a character without width', `${GITHUB.slice(0, 14)}\u200b${GITHUB.slice(14)}`],
  ['an unknown private key', KEY],
  ['an unknown private key in colours', KEY.replace('PRIVATE', '\u001b[1mPRI\u001b[mVATE')],
  ['a header', 'Authorization: Basic dTpwYXNzd29yZA=='],
  ['a bearer', 'Bearer abcdefgh12345678'],
  ['a password in a URL', 'https://user:pass@host/path'],
])('%s that is split anywhere is hidden as if it had come in one piece', (_, secret) => {
  const whole = `before ${secret}\nafter`
  const expected = streamed([whole])
  expect(expected).toContain('[hidden]')
  for (let at = 1; at < whole.length; at++) {
    expect([at, streamed([whole.slice(0, at), whole.slice(at)])]).toEqual([at, expected])
  }
  expect(streamed(whole.split(''))).toBe(expected)
})

test('in whatever pieces a text comes, it leaves as redacting the whole would have left it', () => {
  const words = [
    'plain',
    ' ',
    '\n',
    'correct ',
    'correct horse',
    SECRET,
    GITHUB,
    GITHUB.slice(0, 12),
    GITHUB.slice(12),
    'bearer ',
    '\u200b',
    '\u001b[m',
    'secret',
    '\u001b[',
    '\u001b(B',
    '\u001b]0;',
    '\u0007',
    '://',
    'a@b',
    'cookie',
    ': ',
  ]
  const parts = fc.array(fc.constantFrom(...words), { maxLength: 12 })
  const cuts = fc.array(fc.nat(200), { maxLength: 8 })
  fc.assert(
    fc.property(parts, cuts, (texts, at) => {
      const secrets = createSecrets([SECRET, 'secret'])
      const text = texts.join('')
      const ends = [...new Set([...at.filter((one) => one < text.length), text.length])].sort((a, b) => a - b)
      const pieces = ends.map((end, i) => text.slice(ends[i - 1] ?? 0, end))
      expect(streamed(pieces, secrets)).toBe(secrets.redact(text))
    }),
    { numRuns: 2_000 },
  )
})

test('ordinary text is shown up to its last word at once, and the last word when nothing more comes', () => {
  const shown: string[] = []
  const stream = createSecrets([SECRET]).stream((text) => shown.push(text))
  stream.push('running the tests\n')
  expect(shown.splice(0)).toEqual(['running the tests\n'])
  stream.push('all is well')
  expect(shown.splice(0)).toEqual(['all is '])
  stream.settle()
  expect(shown.splice(0)).toEqual(['well'])
})

test('a pause inside a secret shows no more of it than chance would, and never the rest', () => {
  const telegram = ['123456789', `AA${'aB3'.repeat(11)}`].join(':')
  for (const secret of [SECRET, GITHUB, KEY, telegram, `${GITHUB.slice(0, 14)}\u001b[m${GITHUB.slice(14)}`]) {
    for (let at = 1; at < secret.length; at++) {
      let shown = ''
      const stream = createSecrets([SECRET]).stream((text) => (shown += text))
      stream.push(`x ${secret.slice(0, at)}`)
      stream.settle()
      stream.push(`${secret.slice(at)} y`)
      stream.end()
      expect([at, shown]).toEqual([at, expect.stringMatching(/^x .{0,10}\[hidden\] y$/s)])
    }
  }
})

test('a pause inside the name of a header does not show its value', () => {
  for (let at = 1; at < 'Authorization'.length; at++) {
    let shown = ''
    const stream = createSecrets().stream((text) => (shown += text))
    stream.push('Authorization'.slice(0, at))
    stream.settle()
    for (const piece of [`${'Authorization'.slice(at)}: `, 'Basic ', 'dTpwYXNzd29yZA==\n']) stream.push(piece)
    stream.end()
    expect([at, shown]).toEqual([at, 'Authorization: [hidden]\n'])
  }
})

test('a secret that becomes known while its beginning waits is hidden', () => {
  const secrets = createSecrets([SECRET])
  let shown = ''
  const stream = secrets.stream((text) => (shown += text))
  stream.push('token=made-late')
  secrets.add('made-later-on')
  stream.push('r-on ')
  stream.end()
  expect(shown).toBe('token=[hidden] ')
})

test.each([
  ['a sequence without end', '', '\u001b]0;'],
  ['a private key without end', '-----BEGIN RSA PRIVATE KEY-----\n', '\u001b[m'],
])('%s in small pieces, with something else shown in between, is not slow', (_, begin, noise) => {
  const stream = createSecrets([SECRET]).stream(() => undefined)
  stream.push(begin)
  for (let i = 0; i < 40_000; i++) {
    stream.push(i % 100 === 0 ? noise : 'abc ')
    stream.show()
  }
  stream.end()
})

test('a megabyte without a space, letter by letter, is neither kept back nor slow', () => {
  let shown = 0
  const stream = createSecrets([SECRET]).stream((text) => (shown += text.length))
  for (let i = 0; i < 200_000; i++) stream.push('aaaaa')
  expect(shown).toBeGreaterThan(900_000)
  stream.end()
  expect(shown).toBe(1_000_000)
})
