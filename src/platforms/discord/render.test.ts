import { expect, test } from 'vitest'
import { renderMarkdown } from './render.ts'

test('keeps Markdown that Discord supports', () => {
  const text = '# One\n## Two\n### Three\n\n**bold** _it_ ~~no~~ `code` [a](https://b.example)\n- x\n> quoted'
  expect(renderMarkdown(text)).toBe(text)
})

test('renders a fourth-level heading in bold, an image as a link and a rule as a line', () => {
  expect(renderMarkdown('#### Four')).toBe('**Four**')
  expect(renderMarkdown('![a picture](https://x.example/p.png "title")')).toBe('[a picture](https://x.example/p.png)')
  expect(renderMarkdown('![](https://x.example/p.png)')).toBe('https://x.example/p.png')
  expect(renderMarkdown('a\n\n---\n\nb')).toBe('a\n\n──────────\n\nb')
})

test("shows a table's source in a code block", () => {
  const table = '| a | b |\n|---|:-:|\n| 1 | 2 |'
  expect(renderMarkdown(`See:\n${table}\nDone.`)).toBe(`See:\n\`\`\`\n${table}\n\`\`\`\nDone.`)
  expect(renderMarkdown('a | b\nno table')).toBe('a | b\nno table')
})

test('changes nothing inside code', () => {
  const code = '```md\n#### Four\n| a |\n|---|\n```\n~~~\n---\n~~~'
  expect(renderMarkdown(code)).toBe(code)
  expect(renderMarkdown(`${code}\n#### Four`)).toBe(`${code}\n**Four**`)
  const open = '```\n#### Four'
  expect(renderMarkdown(open)).toBe(open)
})

test("doesn't render a text that would become too long", () => {
  const text = `${'x'.repeat(1_985)}\n| a |\n|---|`
  expect(renderMarkdown(text)).toBe(text)
})
