import { expect, test } from 'vitest'
import { withoutMentions } from './mentions.ts'

const fence = '```'

test.each([
  '@alice',
  'cc @acme/team, please',
  '(@alice)',
  '**x**@alice',
  '_x_@alice',
  '> @alice said',
  '- @alice',
  '[@alice](https://example.org)',
  '&#64;alice',
  '&#x40;alice',
  '&commat;alice',
  '@&#97;lice',
  '\\`@alice`',
  '| ` | @alice | ` |',
  '<a href="`">@alice</a>`',
  '<div>\n`@alice`\n</div>',
  `<div>\n${fence}\n@alice\n${fence}`,
  'text\n    ~~~\n@alice\n    ~~~',
  `${fence}\ncode\n${fence}\n@alice`,
  '` a tick that nobody closes @alice',
  `${fence}@alice\ncode\n${fence}`,
  `- a\n  ${fence}\n@alice`,
  `  ${fence}\n${fence}\n@alice`,
  `\ufeff${fence}\n${fence}\n@alice`,
  `${fence}\n${fence}\u00a0\n${fence}\n@alice`,
  '`a\nb` @alice `c`',
  '`a\n\u00a0\nb` @alice `c`',
  '> <div>\n> `@alice`',
  '- <div>\n  `@alice`',
  '<div>&#64alice</div>',
  '<div>&#x40;alice</div>',
  '<div>&nbsp@alice</div>',
  '<div>@<i></i>alice</div>',
  `<select>\n\n${fence}\n@alice\n${fence}`,
  '[a](`b) @alice `c`',
  'https://example.org/`b @alice `',
  'www.example.org/`b @alice `',
  `${'`'.repeat(81)} @alice ${'`'.repeat(81)}`,
])('an agent’s reply on GitHub notifies nobody: %j', (text) => {
  expect(withoutMentions(text)).not.toMatch(/(?:@|&#64;?|&#x40;?|&commat;?)[A-Za-z0-9&<]/)
  expect(withoutMentions(text).replaceAll('\u200b', '')).toBe(text)
})

test.each([
  'mail me@example.org',
  'a `@decorator` and ``@two ` ``',
  `${fence}ts\n@Injectable()\n${fence}`,
  '~~~\n@Override\n~~~',
  'no names at @ all',
  `Use \`List<String>\` here.\n\n${fence}ts\n@Injectable() <div>\n${fence}\n\nand \`@two\``,
])('what calls nobody stays as it is: %j', (text) => {
  expect(withoutMentions(text)).toBe(text)
})

test('a carriage return ends a line, and a fence with it', () => {
  expect(withoutMentions(`${fence}\nx\r${fence}\r@alice`)).toBe(`${fence}\nx\n${fence}\n@\u200balice`)
})

test('64 kB of marks are read in no time', () => {
  for (const mark of ['`', '@', '`@', '@a', '<', '|', '```\n', '~~~\n', '&#0']) {
    expect(withoutMentions(mark.repeat(65_000 / mark.length)).length).toBeGreaterThan(0)
  }
})
