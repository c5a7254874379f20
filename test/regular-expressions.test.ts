import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { analyse } from 'scslre'
import { expect, test } from 'vitest'
import { parseAst } from 'vitest/node'

/*
 * The main thread serves everybody, so an expression that takes quadratic time on text of others stops the server for
 * all. Which text that is changes with every caller, so the rule holds for every expression: it must not be able to read
 * the same characters in two ways, nor begin again at each character of a run that it has to read to its end.
 */

const root = resolve(import.meta.dirname, '..')

type Expression = { readonly source: string; readonly flags: string }

test('no expression takes more than linear time', () => {
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.endsWith('.test.ts'))
  const all = files.flatMap((file) =>
    expressionsIn(readFileSync(join(root, file), 'utf8')).map((expression) => ({ file, expression })),
  )
  expect(all.length).toBeGreaterThan(300)
  const slow = all.filter(({ expression }) => isSlow(expression))
  expect(slow.map(({ file, expression: { source, flags } }) => `${file}: /${source}/${flags}`)).toEqual([])
})

test.each([
  String.raw`text.replace(/[\r\n]+$/, '')`,
  String.raw`text.replace(/\/+$/, '')`,
  String.raw`text.replace(/\^.*$/, '')`,
  String.raw`/\s+$/m.test(text)`,
  String.raw`/^(a+)+$/.test(text)`,
  String.raw`/^\s*(?:\n[ \t>]*)?\S*(?!\S) x/.test(text)`,
  String.raw`/^a\s*\s*b/.test(text)`,
  String.raw`/<[^>]*>/.test(text)`,
  "new RegExp('[a]+$')",
  'new RegExp(String.raw`\\s+${name}`, `g`)',
])('the rule finds %s', (code) => {
  expect(expressionsIn(code).map(isSlow)).toEqual([true])
})

test.each([String.raw`/^\s+|a/.test(text)`, String.raw`/\s+/g`, String.raw`/<[^<>]*>/g`, "'/[a]+$/'", '// /[a]+$/'])(
  'the rule leaves %s alone',
  (code) => {
    expect(expressionsIn(code).filter(isSlow)).toEqual([])
  },
)

function isSlow({ source, flags }: Expression): boolean {
  return analyse({ source, flags }).reports.length > 0
}

/** Literals, and what is built from a text: whatever is put into it counts as a letter. */
function expressionsIn(code: string): Expression[] {
  const found: Expression[] = []
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type, regex, callee, arguments: given } = node as Partial<Record<string, unknown>>
    if (type === 'Literal' && isPattern(regex)) found.push({ source: regex.pattern, flags: regex.flags })
    if (type === 'NewExpression' && (callee as { name?: string }).name === 'RegExp') {
      const [source, flags] = (given as unknown[]).map(textOf)
      if (source !== undefined) found.push({ source, flags: flags ?? '' })
    }
    for (const value of Object.values(node)) visit(value)
  }
  visit(parseAst(code, { lang: 'ts' }))
  return found
}

function isPattern(regex: unknown): regex is { pattern: string; flags: string } {
  return typeof regex === 'object' && regex !== null && 'pattern' in regex
}

type Template = { quasis: { value: { raw: string; cooked: string } }[] }

function textOf(node: unknown): string | undefined {
  const { type, value, quasi, quasis } = node as { type: string; value?: unknown; quasi?: Template } & Partial<Template>
  if (type === 'TaggedTemplateExpression') return quasi?.quasis.map((part) => part.value.raw).join('x')
  if (type === 'TemplateLiteral') return quasis?.map((part) => part.value.cooked).join('x')
  return typeof value === 'string' ? value : undefined
}
