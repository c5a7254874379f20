import { expect, test } from 'vitest'
import { toMrkdwn } from './render.ts'

test.each([
  ['**bold**', '*bold*'],
  ['__bold__', '*bold*'],
  ['*italic* and _italic_', '_italic_ and _italic_'],
  ['***both***', '*_both_*'],
  ['~~gone~~', '~gone~'],
  ['**bold with *italic* in it**', '*bold with _italic_ in it*'],
  ['a * b * c', 'a * b * c'],
  ['snake_case_name and __init__', 'snake_case_name and *init*'],
  ['2 * 3 ** 4', '2 * 3 ** 4'],
])('emphasis: %s', (markdown, mrkdwn) => {
  expect(toMrkdwn(markdown)).toBe(mrkdwn)
})

test.each([
  ['[docs](https://example.com/a_b)', '<https://example.com/a_b|docs>'],
  ['[a **b**](https://x.org "title")', '<https://x.org|a b>'],
  ['![shot](https://x.org/s.png)', '<https://x.org/s.png|shot>'],
  ['[](https://x.org)', '<https://x.org>'],
  ['<https://x.org/?a=1&b=2>', '<https://x.org/?a=1&amp;b=2>'],
  ['see https://x.org/a_b_c?x=1&y=2.', 'see https://x.org/a_b_c?x=1&amp;y=2.'],
  ['[wiki](https://en.wikipedia.org/wiki/Tree_(graph))', '<https://en.wikipedia.org/wiki/Tree_(graph)|wiki>'],
  ['[src/main.ts](src/main.ts)', 'src/main.ts (src/main.ts)'],
  ['[x](javascript:alert)', 'x (javascript:alert)'],
  ['[a|b](https://x.org/|y)', '<https://x.org/%7Cy|ab>'],
])('links: %s', (markdown, mrkdwn) => {
  expect(toMrkdwn(markdown)).toBe(mrkdwn)
})

test.each([
  ['`a **b** <c>`', '`a **b** &lt;c&gt;`'],
  ['``a ` b``', '`a ˋ b`'],
  ['```ts\nconst a = **b** && <c>\n```', '```\nconst a = **b** &amp;&amp; &lt;c&gt;\n```'],
  ['~~~\n[x](https://y.org)\n~~~', '```\n[x](https://y.org)\n```'],
  ['````\n```\n````', '```\n`\u200B``\n```'],
  ['```\nnever closed', '```\nnever closed\n```'],
  ['# before\n```\n# inside\n```\n# after', '*before*\n```\n# inside\n```\n*after*'],
])('code stays code: %s', (markdown, mrkdwn) => {
  expect(toMrkdwn(markdown)).toBe(mrkdwn)
})

test.each([
  ['# Title', '*Title*'],
  ['### A **bold** title ###', '*A bold title*'],
  ['#hash', '#hash'],
  ['- one\n  * two\n+ three', '• one\n  • two\n• three'],
  ['1. one\n2. two', '1. one\n2. two'],
  ['- [ ] open\n- [x] done', '☐ open\n☑ done'],
  ['> quoted **text**', '> quoted *text*'],
  ['---', '───────────'],
  ['| a | b |\n|---|---|\n| 1 | 2 |\nafter', '```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\nafter'],
])('blocks: %s', (markdown, mrkdwn) => {
  expect(toMrkdwn(markdown)).toBe(mrkdwn)
})

test.each(['<!channel>', '<@U123>', '<#C123>', '<!subteam^S1>', 'x <https://evil.example|https://good.example> y'])(
  'nothing an agent writes pings anybody or passes for a link: %s',
  (text) => {
    for (const written of [text, `**${text}**`, `\`${text}\``, `# ${text}`, `- ${text}`, `[${text}](https://x.org)`]) {
      expect(toMrkdwn(written).replaceAll('<https://x.org|', '')).not.toMatch(/<[!@#]|<https:\/\/evil/)
    }
  },
)

test('ampersands and angle brackets are escaped once', () => {
  expect(toMrkdwn('a & b < c > d &amp;')).toBe('a &amp; b &lt; c &gt; d &amp;amp;')
  expect(toMrkdwn(String.raw`\*not italic\* \_nor this\_`)).toBe('*not italic* _nor this_')
})

test.each(['`', '*', '_', '**a', '[', '![](', '~~', '`` '])(
  'a long line of %s does not keep it busy for ever',
  (piece) => {
    const line = piece.repeat(Math.ceil(3_000 / piece.length))
    expect(toMrkdwn(line).length).toBeGreaterThan(0)
  },
)

test.each([
  '<!channel>',
  '<!here>',
  '<!subteam^S123>',
  '<@U123>',
  '`<!channel>`',
  '[x](<!channel>)',
  '@here',
  '@channel now',
])('nobody is called by what an agent writes: %s', (text) => {
  expect(toMrkdwn(text)).not.toMatch(/<[!@]|@(?:here|channel|everyone)/)
})
