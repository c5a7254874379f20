import { array, assert, constantFrom, property } from 'fast-check'
import { expect, test } from 'vitest'
import { renderMarkdown as toDiscord } from '../discord/render.ts'
import { toMrkdwn as toSlack } from '../slack/render.ts'
import { toHtml as toTelegram } from '../telegram/render.ts'
import { MAX_PARSED, parseMarkdown } from './parse.ts'

/* What all dialects have in common: one text, printed for each. */

type Printed = { readonly slack: string; readonly telegram: string; readonly discord: string }

const same = (text: string): Printed => ({ slack: text, telegram: text, discord: text })

test.each<[string, string, Printed]>([
  ['plain lines stay on their lines', 'one\ntwo\n\n\nthree', same('one\ntwo\n\n\nthree')],
  ['Windows line ends are line ends', 'one\r\n\r\ntwo', same('one\n\ntwo')],
  ['numbers are kept', '3. c\n4) d', same('3. c\n4) d')],
  [
    'lists keep their depth, and what belongs to an item stays below it',
    '- a\n  more\n\n  - b\n    1. c\n\n  end\n-',
    {
      slack: '• a\n  more\n\n  • b\n    1. c\n\n  end\n• ',
      telegram: '• a\n  more\n\n  • b\n    1. c\n\n  end\n• ',
      discord: '- a\n  more\n\n  - b\n    1. c\n\n  end\n- ',
    },
  ],
  [
    'an item that begins with a list is one line',
    '- - a\n  - b\n- c',
    { slack: '  • a\n  • b\n• c', telegram: '  • a\n  • b\n• c', discord: '  - a\n  - b\n- c' },
  ],
  [
    'boxes are ticked or not',
    '- [x] **done**\n- [ ] open\n- [y] neither',
    {
      slack: '☑ *done*\n☐ open\n• [y] neither',
      telegram: '☑ <b>done</b>\n☐ open\n• [y] neither',
      discord: '- [x] **done**\n- [ ] open\n- [y] neither',
    },
  ],
  [
    'a quotation keeps its own empty lines and ends with its marks',
    '> a\n>\n> - b\n\n> c\nd',
    {
      slack: '> a\n>\n> • b\n\n> c\nd',
      telegram: '<blockquote>a\n\n• b</blockquote>\n\n<blockquote>c</blockquote>\nd',
      discord: '> a\n>\n> - b\n\n> c\nd',
    },
  ],
  [
    'a table interrupts a paragraph and ends at the first line without a bar',
    'See\na | b\n--|--\n1 | <\nafter',
    {
      slack: 'See\n```\na | b\n--|--\n1 | &lt;\n```\nafter',
      telegram: 'See\n<pre>a | b\n--|--\n1 | &lt;</pre>\nafter',
      discord: 'See\n```\na | b\n--|--\n1 | <\n```\nafter',
    },
  ],
  [
    'a line of dashes is a rule, not the end of a heading',
    'a\n---',
    { slack: 'a\n───────────', telegram: 'a\n───', discord: 'a\n──────────' },
  ],
  [
    'code in a list or a quotation is code',
    '- x\n  ```js\n  a < b\n  ```\n> ```\n> c',
    {
      slack: '• x\n```\na &lt; b\n```\n> ```\n> c\n> ```',
      telegram: '• x\n<pre><code class="language-js">a &lt; b</code></pre>\n<blockquote><pre>c</pre></blockquote>',
      discord: '- x\n```js\na < b\n```\n> ```\n> c',
    },
  ],
  [
    'code by indentation is code',
    'a\n\n    b *c*\n\n    d',
    {
      slack: 'a\n\n```\nb *c*\n\nd\n```',
      telegram: 'a\n\n<pre>b *c*\n\nd</pre>',
      discord: 'a\n\n```\nb *c*\n\nd\n```',
    },
  ],
  ['an address keeps what looks like emphasis', 'https://x.org/*a*/__b__', same('https://x.org/*a*/__b__')],
  ['a file is not an address', 'see main.ts, a@b.org and x.org', same('see main.ts, a@b.org and x.org')],
  ['a definition of a link does not disappear', '[a]: x.html', same('[a]: x.html')],
  [
    'emphasis goes over lines, and what is not closed is text',
    '**a\nb** and *c',
    { slack: '*a\nb* and *c', telegram: '<b>a\nb</b> and *c', discord: '**a\nb** and *c' },
  ],
  [
    'a backslash takes a mark its meaning',
    String.raw`\*a\* \# \q`,
    { slack: String.raw`*a* # \q`, telegram: String.raw`*a* # \q`, discord: String.raw`\*a\* \# \q` },
  ],
  [
    'code with backticks stays one piece',
    '`` `a` `` `b`',
    { slack: '`ˋaˋ` `b`', telegram: '<code>`a`</code> <code>b</code>', discord: '`` `a` `` `b`' },
  ],
])('%s', (_what, text, printed) => {
  expect({ slack: toSlack(text), telegram: toTelegram(text), discord: toDiscord(text) }).toEqual(printed)
})

test('a text that is longer than any chat takes is not parsed', () => {
  const text = '*a* '.repeat(MAX_PARSED / 4 + 1)
  expect(parseMarkdown(text)).toMatchObject([{ kind: 'paragraph', spans: [{ kind: 'text', text }] }])
  expect(toSlack(text)).toBe(text)
})

test.each(['> ', '- ', '1. ', '**a ', '[', '*_'])('%s hundreds of times is shown and comes to an end', (unit) => {
  const text = `${unit.repeat(400)}x`
  for (const print of [toSlack, toTelegram, toDiscord]) expect(print(text)).toContain('x')
})

test.each([
  String.raw`@ali\_ce_b`,
  '**@ali**ce_b',
  '@**alice_b**',
  '**@**alice_b',
  '[x](@alice_b)',
  '[@ali](y)ce_b',
  '<@alice_b>',
])('no name is put together from pieces on Telegram: %s', (text) => {
  const html = toTelegram(text).replaceAll(/<code>[^<]*<\/code>/g, '·')
  expect(html.replaceAll(/<[^<>]*>/g, '')).not.toMatch(/@[A-Za-z]\w{3}/)
})

test('whatever is written, no word of it disappears', () => {
  const marks = [
    '**',
    '_',
    ' `',
    ' ~~',
    '\n',
    '\n\n',
    '> ',
    '- ',
    '1. ',
    '# ',
    '[',
    '](',
    ')',
    '|',
    '\n|-|\n',
    '    ',
    '\\\\',
    '<',
  ]
  const words = ['apple', 'birch', 'cedar']
  assert(
    property(array(constantFrom(...marks, ...words), { maxLength: 40 }), (pieces) => {
      const text = pieces.join('')
      for (const print of [toSlack, toTelegram, toDiscord]) {
        const printed = print(text)
        for (const word of words) expect(printed.split(word).length).toBeGreaterThanOrEqual(text.split(word).length)
      }
    }),
    { numRuns: 1_000 },
  )
})
