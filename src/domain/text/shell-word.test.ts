import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { shellWord, writeLine } from './shell-word.ts'

let dir = ''
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'coppice-word-'))
})
afterAll(() => rmSync(dir, { recursive: true }))

const paste = (command: string, shell: string[]): string =>
  execFileSync(shell[0] ?? '', [...shell.slice(1), '-c', command], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
  }).toString()

/** A stranger may call a branch or a file all of these. */
const names: [name: string, word: string][] = [
  ['feature/a-1', 'feature/a-1'],
  ['-x', '-x'],
  ['', "''"],
  ['two words', "'two words'"],
  ["it's", String.raw`$'it\047s'`],
  ['$(touch pwned)', "'$(touch pwned)'"],
  ['a;touch$IFS-a$IFS"pwned"', `'a;touch$IFS-a$IFS"pwned"'`],
  ['a!!b', "'a!!b'"],
  ['~', String.raw`$'\176'`],
  ['a&#39;;touch pwned;&#39;', String.raw`$'a\046\04339\073\073touch\040pwned\073\046\04339\073'`],
  ['*a*[b](c)<d>', String.raw`$'\052a\052\133b\135\050c\051\074d\076'`],
  ['=ls', "'=ls'"],
  ['grün 日本', "'grün 日本'"],
  ['lib\tx', String.raw`$'lib\011x'`],
  [
    'a\n 1. Remove it anyway:  touch pwned',
    String.raw`$'a\012\0401.\040Remove\040it\040anyway:\040\040touch\040pwned'`,
  ],
  ['a\u00a0b', String.raw`$'a\302\240b'`],
  ['ü\u3000!', String.raw`$'ü\343\200\200\041'`],
  ['a\u2028\u202e\u200b\ufeffb', String.raw`$'a\342\200\250\342\200\256\342\200\213\357\273\277b'`],
  ['a  b', String.raw`$'a\040\040b'`],
  [' a', String.raw`$'\040a'`],
  ['a`touch pwned`', String.raw`$'a\140touch\040pwned\140'`],
  ['\u001b[2J\r', String.raw`$'\033\1332J\015'`],
  // fish ends `'a\'\''` after the third quote, and would run the rest.
  [String.raw`a\'; touch pwned; '`, String.raw`$'a\134\047\073\040touch\040pwned\073\040\047'`],
]

test('a shell reads every name as it is, and runs nothing of it', () => {
  expect(names.map(([name]) => shellWord(name))).toEqual(names.map(([, word]) => word))
  const line = `printf '%s\\0' ${names.map(([name]) => shellWord(name)).join(' ')}`
  expect(line).not.toMatch(/\p{C}|(?! )\s|`/u)
  expect(paste(line, ['bash']).split('\0').slice(0, -1)).toEqual(names.map(([name]) => name))
  // Shells that don't know $'…' read something else, but don't run it either.
  paste(line, ['bash', '--posix'])
  paste(line, ['sh'])
  expect(readdirSync(dir)).toEqual([])
})

test('a name that is not UTF-8 gives a command that does nothing, wherever it stands', () => {
  const word = shellWord('lib\ufffd')
  for (const command of [
    `touch ${word}`,
    `touch ${word} pwned`,
    `touch ${word} && touch pwned`,
    `touch ${word}.away`,
  ]) {
    expect(() => paste(command, ['bash'])).toThrow('name-is-not-UTF-8')
    expect(() => paste(command, ['sh'])).toThrow('name-is-not-UTF-8')
  }
  expect(readdirSync(dir)).toEqual([])
})

test('a line is written exactly as it is', () => {
  const file = join(dir, 'a\tb')
  paste(writeLine(file, "$(id) 'x'\\n%s"), ['bash'])
  expect(execFileSync('cat', [file]).toString()).toBe("$(id) 'x'\\n%s\n")
})
