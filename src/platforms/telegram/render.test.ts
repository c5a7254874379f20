import { array, assert, constantFrom, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lengthOf, toHtml, toPlain } from './render.ts'

test.each([
  ['**bold** and __bold__', '<b>bold</b> and <b>bold</b>'],
  ['*italic* and _italic_', '<i>italic</i> and <i>italic</i>'],
  ['***both***', '<b><i>both</i></b>'],
  ['~~gone~~', '<s>gone</s>'],
  ['`a < b && c`', '<code>a &lt; b &amp;&amp; c</code>'],
  ['``a ` b``', '<code>a ` b</code>'],
  ['snake_case_word and 2 * 3 * 4', 'snake_case_word and 2 * 3 * 4'],
  [String.raw`\*not\*`, '*not*'],
  ['if a < b & c > d', 'if a &lt; b &amp; c &gt; d'],
  ['<b>not ours</b>', '&lt;b&gt;not ours&lt;/b&gt;'],
  ['# Title', '<b>Title</b>'],
  ['### **Title** ###', '<b>Title</b>'],
  ['- one\n  * two\n+ [x] three\n1. four', '• one\n  • two\n☑ three\n1. four'],
  ['---', '───'],
  ['> quoted *words*\n> more\nend', '<blockquote>quoted <i>words</i>\nmore</blockquote>\nend'],
  ['> > deeper', '<blockquote>deeper</blockquote>'],
  ['| a | b |\n|---|---|\n| 1 | < |', '<pre>| a | b |\n|---|---|\n| 1 | &lt; |</pre>'],
])('%j', (markdown, html) => {
  expect(toHtml(markdown)).toBe(html)
})

describe('code blocks', () => {
  test('keep their language and content', () => {
    expect(toHtml('before\n```ts\nconst a = b < **c**\n\n# no\n```\nafter')).toBe(
      'before\n<pre><code class="language-ts">const a = b &lt; **c**\n\n# no</code></pre>\nafter',
    )
  })
  test('end at their fence, or with the text', () => {
    expect(toHtml('````\n```\nx\n```\n````')).toBe('<pre>```\nx\n```</pre>')
    expect(toHtml('```\nx')).toBe('<pre>x</pre>')
    expect(toHtml('```\n```\nx')).toBe('\nx')
  })
  test('have no language that could break out of its attribute', () => {
    expect(toHtml('```a"><b\nx\n```')).toBe('<pre><code class="language-a">x</code></pre>')
  })
})

describe('links', () => {
  test.each([
    ['[docs](https://example.com/a_(b)?c="d")', '<a href="https://example.com/a_(b)?c=&quot;d&quot;">docs</a>'],
    ['![picture](https://example.com/x.png)', '<a href="https://example.com/x.png">picture</a>'],
    ['[](https://example.com)', '<a href="https://example.com">https://example.com</a>'],
    ['https://example.com/a_b_c', 'https://example.com/a_b_c'],
    ['[the file](src/main.ts)', 'the file (src/main.ts)'],
    ['[Ada](tg://user?id=7)', 'Ada (tg://user?id=7)'],
    ['[x](javascript:alert)', 'x (javascript:alert)'],
  ])('%j', (markdown, html) => {
    expect(toHtml(markdown)).toBe(html)
  })
})

test('a name with @ mentions nobody', () => {
  expect(toHtml('ask @alice_b or **@bobby**, ada@example.com, @slack/bolt')).toBe(
    'ask <code>@alice_b</code> or <b><code>@bobby</code></b>, ada@example.com, <code>@slack/bolt</code>',
  )
})

test.each(['.@alice_b', '/@alice_b', '@@alice_b', '(@alice_b)', '@alice_b'])('%s mentions nobody', (text) => {
  expect(toHtml(text)).toMatch(/<code>@alice_b<\/code>/)
  expect(toPlain(text)).not.toContain('@alice_b')
  expect(toPlain(text).replaceAll('\u200b', '')).toBe(text)
})

/** What is not closed in its turn, and whatever is no tag of ours. */
const leftOpen = (html: string): string[] => {
  const open: string[] = []
  for (const [whole, end, name = ''] of html.matchAll(/<(\/?)([a-z]+)[^<>]*>/g)) {
    if (!['b', 'i', 's', 'a', 'code', 'pre', 'blockquote'].includes(name)) open.push(whole)
    else if (end === '') open.push(name)
    else if (open.at(-1) === name) open.pop()
    else open.push(whole)
  }
  return open
}

test('any input renders to known, closed tags', () => {
  const piece = constantFrom(
    '*',
    '**',
    '_',
    '`',
    '```',
    '\n',
    '> ',
    '# ',
    '[',
    '](',
    ')',
    '<b>',
    '&',
    'a',
    ' ',
    '~~',
    '|',
    '@name',
    'https://x.y',
  )
  assert(
    property(array(piece, { maxLength: 40 }), (pieces) => {
      const html = toHtml(pieces.join(''))
      expect(leftOpen(html)).toEqual([])
      expect(html.replaceAll(/<\/?[a-z]+[^<>]*>/g, '')).not.toMatch(/[<>]|&(?!(?:amp|lt|gt|quot);)/)
    }),
    { numRuns: 2_000 },
  )
})

test('long and unusual input renders in time', () => {
  for (const odd of ['`', '*', '_', '[', '**a', '![](', '> ', '@a'])
    expect(toHtml(`${odd.repeat(4_000)}\nx`)).not.toBe('')
})

test("tags don't count towards the length", () => {
  expect(lengthOf('<b>a &lt; b</b>')).toBe(5)
})
