import { expect, test } from 'vitest'
import { isLinear, repeated } from '../../../../test/helpers/growth.ts'
import { mentions, toPlainText, withoutLeadingMention } from './text.ts'

test.each([
  ['a &amp; b &lt;c&gt; &amp;lt;', 'a & b <c> &lt;'],
  ['ask <@U123> or <@U456|ada>', 'ask @U123 or @ada'],
  ['hi <@UBOT>', 'hi @coppice'],
  ['in <#C123|general> and <#C456>', 'in #general and #C456'],
  ['<!here> <!subteam^S1|@team> <!date^1|then>', '@here @team then'],
  ['<!subteam^S1^S2>', '@subteam'],
  ['<https://github.com/a/b>', 'https://github.com/a/b'],
  ['<https://github.com/a/b|github.com/a/b>', 'https://github.com/a/b'],
  ['<https://x.org|the docs>', 'the docs (https://x.org)'],
  ['<mailto:a@b.org|a@b.org>', 'a@b.org'],
])('what a person wrote is read as they saw it: %s', (text, plain) => {
  expect(toPlainText(text, new Map([['UBOT', 'coppice']]))).toBe(plain)
})

test('a reference of any length takes time by its length', () => {
  expect(isLinear(toPlainText, repeated('^', '<!', '\n>'))).toBe(true)
})

test('characters that a person does not see are removed, also where they were escaped', () => {
  expect(toPlainText('a\u200Bb &l\u200Bt; <@U1|ad\u202Ea>')).toBe('ab &lt; @ada')
})

test.each([
  ['<@UBOT> fix it', true],
  ['please <@UBOT|coppice> fix it', true],
  ['<@UBOTTOM> fix it', false],
  ['`<@UBOT>`', false],
  ['```\n<@UBOT>\n```', false],
  ['&gt; <@UBOT> said\nno', false],
  ['&gt; quoted\n<@UBOT> what about it?', true],
])('a mention addresses us, unless it is code or quoted: %s', (text, expected) => {
  expect(mentions(text, 'UBOT')).toBe(expected)
})

test.each([
  ['<@UBOT> /status', '/status'],
  ['  <@UBOT>: fix <@UBOT>', 'fix <@UBOT>'],
  ['<@UBOT> <@UBOT>, go', 'go'],
  ['fix it <@UBOT>', 'fix it <@UBOT>'],
])('the mention that only calls us is left out: %s', (text, expected) => {
  expect(withoutLeadingMention(text, 'UBOT')).toBe(expected)
})
