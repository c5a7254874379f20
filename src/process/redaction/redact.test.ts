import { expect, test } from 'vitest'
import { cpuTimeOf } from '../../../test/helpers/cpu-time.ts'
import { createSecrets } from './redact.ts'

const SECRET = 'hunter2/ä "pass"+word'
const { redact } = createSecrets([SECRET, 'abc', '', undefined])

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

/** As a home's token is written: 64 hex digits. */
const TOKEN = '0f1e2d3c4b5a69788796a5b4c3d2e1f0'.repeat(2)
const KEY = [
  '-----BEGIN RSA PRIVATE',
  ' KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3\nxfnygWyF8PbnGy0AHB7MhgHc\n-----END RSA ',
  'PRIVATE KEY-----',
].join('')
const ESC = '\u001b'

test.each([
  ['hex in capitals', TOKEN, TOKEN.toUpperCase()],
  ['hex in both cases', TOKEN, TOKEN.replace('f', 'F')],
  ['hex of its bytes', SECRET, Buffer.from(SECRET).toString('hex')],
  ['hex of its bytes, in capitals', SECRET, Buffer.from(SECRET).toString('hex').toUpperCase()],
  ['JSON inside JSON', SECRET, JSON.stringify(JSON.stringify({ a: SECRET }))],
  ['HTML', '<b>&"quoted"</b>', '&lt;b&gt;&amp;&quot;quoted&quot;&lt;/b&gt;'],
  ['a word of a shell', "it's a secret", String.raw`'it'\''s a secret'`],
  ['escapes of Go', 'fish&chips<>', String.raw`fish\u0026chips\u003c\u003e`],
  [
    'base64 in lines of 76',
    TOKEN + TOKEN,
    Buffer.from(TOKEN + TOKEN)
      .toString('base64')
      .replaceAll(/.{76}/g, '$&\n'),
  ],
  ['a wrapped and indented line', TOKEN, `${TOKEN.slice(0, 40)}\r\n    ${TOKEN.slice(40)}`],
  [
    'the colours of grep',
    TOKEN,
    `${TOKEN.slice(0, 9)}${ESC}[01;31m${ESC}[K${TOKEN.slice(9, 20)}${ESC}[m${TOKEN.slice(20)}`,
  ],
  ['characters without width', 'hunter2', 'hun\u200bter\u00ad2'],
  ['halves around `tput sgr0`', TOKEN, `${TOKEN.slice(0, 20)}${ESC}(B${ESC}[m${TOKEN.slice(20)}`],
  ['halves around a link', TOKEN, `${TOKEN.slice(0, 20)}${ESC}]8;;https://a.b/${ESC}\\${TOKEN.slice(20)}`],
  ['halves around a title', TOKEN, `${TOKEN.slice(0, 20)}${ESC}]0;a\nb\u0007${TOKEN.slice(20)}`],
  ['halves around a colour in one character', TOKEN, `${TOKEN.slice(0, 20)}\u009b1m${TOKEN.slice(20)}`],
  ['halves around a reset', TOKEN, `${TOKEN.slice(0, 20)}${ESC}c${TOKEN.slice(20)}`],
  ['the rest of a sequence', TOKEN, `${ESC}[${TOKEN}`],
  ['the rest of a sequence, with colours', TOKEN, `${ESC}[${TOKEN.slice(0, 20)}${ESC}[1m${TOKEN.slice(20)}`],
  ['the rest of a sequence after its own beginning', TOKEN, `${TOKEN.slice(0, 5)}${ESC}[${TOKEN}`],
  ['the address of a link', TOKEN, `${ESC}]8;;${TOKEN}${ESC}\\`],
  ['text after a sequence without end', TOKEN, `${ESC}]0;${TOKEN}`],
  ['a key on one line', KEY, KEY.replaceAll('\n', String.raw`\n`)],
  ['a key whose variable has it on one line', KEY.replaceAll('\n', String.raw`\n`), KEY],
  ['one line of a key', KEY, 'MIIEpAIBAAKCAQEA0Z3VS5JJcds3'],
])('a secret is hidden as %s', (_, secret, written) => {
  const shown = createSecrets([secret]).redactKnown(`before ${written} after`)
  expect(shown).toMatch(/^before \S{0,10}\[hidden\]\S{0,6} after$/)
})

test('no character that Unicode calls ignorable shows a secret in two halves', () => {
  const { redactKnown } = createSecrets([TOKEN])
  const ignorable = Array.from({ length: 0x110000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((character) => /\p{Default_Ignorable_Code_Point}/u.test(character))
  expect(ignorable.length).toBeGreaterThan(4_000)
  const shown = ignorable.filter(
    (character) => redactKnown(TOKEN.slice(0, 20) + character + TOKEN.slice(20)) !== '[hidden]',
  )
  expect(shown).toEqual([])
})

test('ordinary text is not taken for a short secret in another case or over two lines', () => {
  const text = 'FOOBAR foo\nbar'
  expect(createSecrets(['foobar']).redact(text)).toBe(text)
})

test('secrets that become known later are hidden from then on, and worthless ones are forgotten', () => {
  let others: readonly string[] = []
  const secrets = createSecrets(['the-first-one'], () => others)
  const text = 'the-first-one the-second-one the-third-one'
  expect(secrets.redact(text)).toBe('[hidden] the-second-one the-third-one')
  secrets.add('the-second-one')
  others = ['the-third-one']
  expect(secrets.redact(text)).toBe('[hidden] [hidden] [hidden]')
  secrets.forget('the-second-one')
  expect(secrets.redact(text)).toBe('[hidden] the-second-one [hidden]')
})

test('of our own answers a name that looks like a token stays', () => {
  const secrets = createSecrets(['a-known-secret'])
  const text = 'sk-refactor-the-settings-page a-known-secret'
  expect(secrets.redactKnown(text)).toBe('sk-refactor-the-settings-page [hidden]')
  expect(secrets.redact(text)).toBe('[hidden] [hidden]')
})

test('a secret too short to be one blackens nothing', () => {
  expect(redact('abc abcdef')).toBe('abc abcdef')
})

test('of two secrets, one inside the other, no rest is left', () => {
  expect(createSecrets(['secret', 'secret-long']).redact('secret-long secret')).toBe('[hidden] [hidden]')
})

test('letters that mean something in a pattern are taken literally', () => {
  expect(createSecrets(['a.c*(e)[f]\\$^|']).redact('a.c*(e)[f]\\$^| abc')).toBe('[hidden] abc')
})

const NOISE = [
  `${ESC}[1;31m`,
  `${ESC}(B${ESC}[m`,
  `${ESC}]0;my title\u0007`,
  `${ESC}]0;sk-\u0007`,
  '\u009b1m',
  '\u200b',
  '\u00ad',
  '\u{e0041}',
  '\b',
]

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
  `the-token-eyJ${token([''], 20)}.${token([''], 20)}.${token([''], 20)}`,
  KEY.replaceAll('M', 'aB3'),
  `wss://wss-primary.slack.com/link/?ticket=${token([''], 30)}&app_id=1`,
  `https://hooks.slack.com/actions/T0/1/${token([''], 24)}`,
  token(['aW50ZXJhY3Rp', 'b246'], 40),
  // The cookie of the page
  `${'3aB'.toLowerCase().repeat(11).slice(0, 32)}.${'3ab'.repeat(22).slice(0, 64)}`,
  `Authorization: Basic ${token([''], 20)}`,
  `Bearer ${token([''], 20)}`,
  `https://me:${token([''], 20)}@host/`,
])('a well-known token is hidden: %s', (text) => {
  const { redact: hideShapes } = createSecrets([])
  const split = NOISE.flatMap((noise) =>
    Array.from({ length: text.length }, (_, at) => `it is ${text.slice(0, at)}${noise}${text.slice(at)}, really`),
  )
  for (const written of [`it is ${text}, really`, ...split]) {
    const hidden = hideShapes(written)
    expect([written, hidden]).toEqual([written, expect.stringContaining('[hidden]')])
    expect([written, hidden]).toEqual([written, expect.not.stringMatching(/aB3|B3a|3aB/i)])
  }
})

test.each([
  ['after a word', (word: string) => `foo${ESC}[1m${word.slice(0, 9)}${ESC}[m${word.slice(9)}`],
  [
    'after a word, with text behind it',
    (word: string) => `foo\u200b${word.slice(0, 9)}${ESC}[m${word.slice(9)}${ESC}[mbar`,
  ],
  ['behind the start of a sequence', (word: string) => `${ESC}[${word.slice(0, 9)}${ESC}[m${word.slice(9)}`],
  ['in the address of a link', (word: string) => `${ESC}]8;;${word.slice(0, 9)}\u200b${word.slice(9)}${ESC}\\`],
])('an unknown token is hidden in terminal codes: %s', (_, write) => {
  for (const unknown of [token(['ghp', '_'], 36), token(['sk', '-proj-'], 40), `AKIA${'Z9'.repeat(8)}`]) {
    const shown = createSecrets([]).redact(write(unknown))
    expect(shown).toContain('[hidden]')
    expect(shown).not.toMatch(/aB3|Z9/)
  }
})

test('a branch that only looks like a token when colours are ignored stays', () => {
  const text = `${ESC}[32mtask-refactor-the-settings-page${ESC}[m`
  expect(createSecrets([]).redact(text)).toBe(text)
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
  expect(createSecrets([]).redact(text)).toBe(hidden)
})

test.each(['git@github.com:a/b.git', 'see https://example.org/@user', 'mail me@example.org', 'task-12:34', 'issue-42'])(
  '%s stays as it is',
  (text) => {
    expect(createSecrets([]).redact(text)).toBe(text)
  },
)

test.each([
  'a',
  '://',
  'https://a@',
  '1',
  'eyJ',
  'sk-',
  '-----BEGIN PRIVATE KEY-----',
  'a.',
  'authorization:',
  '\u001b]',
  '\u001b[sk-',
  'sk-\u200b',
  '\u200b',
])('half a megabyte of %j takes no quadratic time', (piece) => {
  expect(cpuTimeOf(() => redact(piece.repeat(500_000 / piece.length)))).toBeLessThan(2_000)
})
