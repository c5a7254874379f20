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
])('an agent’s reply on GitHub notifies nobody: %j', (text) => {
  expect(withoutMentions(text)).not.toMatch(/(?:@|&#64;|&#x40;|&commat;)[A-Za-z0-9&]/)
  expect(withoutMentions(text).replaceAll('\u200b', '')).toBe(text)
})

test.each([
  'mail me@example.org',
  'a `@decorator` and ``@two ` ``',
  `${fence}ts\n@Injectable()\n${fence}`,
  '~~~\n@Override\n~~~',
  'no names at @ all',
])('what calls nobody stays as it is: %j', (text) => {
  expect(withoutMentions(text)).toBe(text)
})

test('64 kB of marks are read in no time', () => {
  for (const mark of ['`', '@', '`@', '@a', '<', '|', '```\n', '~~~\n', '&#0']) {
    expect(withoutMentions(mark.repeat(65_000 / mark.length)).length).toBeGreaterThan(0)
  }
})
