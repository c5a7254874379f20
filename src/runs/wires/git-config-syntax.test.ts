import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { parseGitConfig } from './git-config-syntax.ts'

const directory = mkdtempSync(join(tmpdir(), 'coppice-git-config-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

type Parsed = { readonly settings: readonly string[]; readonly isValid: boolean }

/** Git before 2.45 reads a blank of any kind in a value as a space. */
const sameBlanks = (setting: string): string => setting.replaceAll(/[\t\r]/g, ' ')

const byGit = (text: string): Parsed => {
  const file = join(directory, 'config')
  writeFileSync(file, text, 'latin1')
  const args = ['config', '--file', file, '--no-includes', '-z', '--list']
  const { stdout, stderr, status } = spawnSync('git', args, { encoding: 'latin1' })
  if (status !== 0 && !/bad config/.test(stderr)) throw new Error(stderr)
  return { settings: stdout.split('\0').slice(0, -1).map(sameBlanks), isValid: status === 0 }
}

const byCoppice = (text: string): Parsed => {
  const settings: string[] = []
  for (const found of parseGitConfig(text)) {
    if ('invalidLine' in found) return { settings, isValid: false }
    const { key, value } = found
    settings.push(sameBlanks(value === undefined ? key : `${key}\n${value}`))
  }
  return { settings, isValid: true }
}

test.each([
  ['a comment that ends with a backslash', '[branch "x"]\n\tmerge = b # \\\n[core] hooksPath = /evil\n'],
  [
    'a comment that ends with a backslash and a Windows line break',
    '[a]\nb = c ; \\\r\n[core]\r\nhooksPath = /evil\r\n',
  ],
  ['a comment of its own that ends with a backslash', '# \\\n[core] hooksPath = /evil\n'],
  ['a quoted value with comment characters', '[a]\nb = "#;" c # d\n'],
  ['a subsection that ends with NUL', '[core "hookspath\0"] x = /evil\n'],
  ['a value with NUL', '[core]\nhooksPath = /evil\0/not\n'],
  ['NUL in a name', '[core]\nhooks\0Path = /evil\n'],
  ['a byte order mark', '\u00EF\u00BB\u00BF[core] hooksPath = /evil\n'],
  ['half a byte order mark', '\u00EF\u00BB[core] hooksPath = /evil\n'],
  ['a byte order mark in the middle', '[a]\n\u00EF\u00BB\u00BF[core] hooksPath = /evil\n'],
  ['continued values', '[a]\nb = \\\n  c \\\n[core]\nd = \\'],
  ['a continued value in quotes', '[a]\nb = "c \\\n d"\n'],
  ['a line break in quotes', '[a]\nb = "c\n[core]hooksPath = /evil\n'],
  ['the old form of a subsection', '[Core.Sub]\nName\n'],
  ['a section without a name', '[ "hooksPath"] x = y\n[]\nb\n'],
  ['a setting without a section', 'hooksPath = /evil\n[a]\nb'],
  ['escapes in a subsection', '[a "\\"\\n\\\\]"]b\n'],
  ['an unknown escape', '[a]\nb = \\x\n[core]hooksPath = /evil\n'],
  ['a line break in a header', '[a\n"b"]c\n'],
  ['blanks that are none to git', '[a]\n\vb = c\n'],
  ['vertical tabs and no-break spaces around a value', '[a]\nb = \v\u00A0c\f\n'],
  ['a lone carriage return', '[a]\rb = c\rd\r\n\re\r\n'],
  // Backtracking or copying takes longer than a test may for each of these.
  ['a value of 400,000 lines', `[a]\nb = ${'\\\n'.repeat(400_000)}c\n`],
  ['900,000 blanks in a header', `[a${' '.repeat(900_000)}x]\n`],
  ['900,000 blanks after a name', `[branch "x"]\na${' '.repeat(900_000)}b\n`],
  ['900,000 blanks in a value', `[a]\nb = c${' '.repeat(900_000)}d\n`],
  ['two keys in one line', '[a] b c = d\n'],
])('%s is read as git reads it', (_name, text) => {
  expect(byCoppice(text)).toEqual(byGit(text))
})

test('any text is read as git reads it', () => {
  const characters = [
    '[',
    ']',
    '"',
    '\\',
    '#',
    ';',
    '=',
    ' ',
    '\t',
    '\n',
    '\r',
    '\0',
    '.',
    '-',
    '1',
    'a',
    'B',
    '\u00E9',
  ]
  const words = [
    '[a]',
    '[core "x"]',
    '[a.B]',
    '\nkey = ',
    '\nName\n',
    ' = value\n',
    '\r\n',
    '\\\n',
    '\\n',
    ' # \\\n',
    '"q" ',
  ]
  const piece = fc.constantFrom(...characters, ...words)
  const mess = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
  const line = fc.array(piece, { maxLength: 5 }).map((pieces) => `\nkey = ${pieces.join('')}`)
  const file = fc.oneof(
    mess,
    fc.array(line, { maxLength: 4 }).map((lines) => `[a]${lines.join('')}`),
  )
  fc.assert(
    fc.property(file, (text) => {
      expect(byCoppice(text)).toEqual(byGit(text))
    }),
    { numRuns: 300 },
  )
})
