import { parentPort } from 'node:worker_threads'
import { firstLine } from '../../src/agents/tool-line.ts'
import { isChatCommand } from '../../src/conversations/answer-command.ts'
import { splitReply } from '../../src/conversations/outbox/split.ts'
import { slug } from '../../src/domain/work.ts'
import { meaningfulLine } from '../../src/git/failure.ts'
import { MAX_MESSAGE, renderMarkdown } from '../../src/platforms/discord/render.ts'
import * as discord from '../../src/platforms/discord/text.ts'
import { closingIssuesIn } from '../../src/platforms/github/markdown/links.ts'
import { isOurs, withMarker } from '../../src/platforms/github/marker.ts'
import { textForBot } from '../../src/platforms/github/markdown/mention.ts'
import { toMrkdwn } from '../../src/platforms/slack/render.ts'
import { withoutMentions } from '../../src/platforms/github/markdown/mentions.ts'
import { MAX_PARSED, parseMarkdown } from '../../src/platforms/markdown/parse.ts'
import * as slack from '../../src/platforms/slack/message/text.ts'
import { toHtml } from '../../src/platforms/telegram/render.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { everyCase } from '../helpers/every-case.ts'

/** What text of others goes through, and how long it can be by then. */
const functions: Record<string, readonly [longest: number, work: (text: string) => unknown]> = {
  redaction: [100_000, createSecrets(['a-secret-of-ours', 'another-secret']).redact],
  'splitting a reply': [100_000, (text) => splitReply(text, 2_000)],
  'the first line of a tool': [100_000, firstLine],
  'a chat command': [100_000, isChatCommand],
  'the slug of a title': [100_000, slug],
  "git's error": [100_000, meaningfulLine],
  'an order on GitHub': [65_536, (text) => textForBot(text, 'bot')],
  'closing words on GitHub': [65_536, (text) => closingIssuesIn(text, 'a/b')],
  'a marker on GitHub': [65_536, (text) => isOurs(withMarker(text, 'x'))],
  'a message on Slack': [
    40_000,
    (text) => [slack.toPlainText(text), slack.mentions(text, 'U1'), slack.withoutLeadingMention(text, 'U1')],
  ],
  'a message on Discord': [
    4_000,
    (text) => [
      discord.mentions(text, '1'),
      discord.withoutLeadingMention(text, '1'),
      discord.withNames(text, new Map()),
    ],
  ],
  Markdown: [MAX_PARSED, parseMarkdown],
  'Markdown for Slack': [4_000, toMrkdwn],
  'Markdown for Discord': [MAX_MESSAGE, renderMarkdown],
  'Markdown for Telegram': [4_096, toHtml],
  'a reply on GitHub': [65_536, withoutMentions],
}

const letters = Array.from('aA0 \t\n-`*_|><@:/.#~[]!()"\'=,+&;\\{}%$^?')
const units = letters.concat([
  '\r\n',
  'a ',
  'a\n',
  ' \n',
  '- ',
  '* ',
  '_ ',
  '| ',
  '|-',
  '``',
  '```',
  '```\n',
  '~~~ ',
  '~~',
  '**',
  '***a',
  '**a',
  '__a',
  '_a ',
  '![',
  '![a](',
  '![a](b',
  '[a](',
  '[a](b(',
  '[a',
  '](',
  '<!--',
  '<!-- ',
  '<!-- coppice:a',
  '-->',
  '<a',
  '<a ',
  '</a',
  '<details>',
  '</details',
  '<details',
  '<summary',
  '> ',
  '>\n',
  '>>> ',
  '&gt;',
  '<@1',
  '<@1>',
  '<@U1',
  '<@U1|',
  '<@U1|a',
  '@bot',
  '@bot ',
  '@bot\n',
  'cookie:',
  'cookie',
  'authorization ',
  'authorization: ',
  'bearer ',
  'bearer a',
  'ssh://',
  'https://',
  '://a',
  '://a:',
  'a@',
  'eyJaaaaaaaa.',
  'eyJ',
  '-eyJ',
  '-eyJaaaaaaaa.',
  '-sk-',
  '$',
  '$\\',
  'sk-',
  'ghp_',
  'xoxb-',
  '123456:',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ',
  'PRIVATE KEY',
  'fixes ',
  'fix #',
  'fixes a/',
  'closes: ',
  'fixes https://a/',
  '\n\n',
  '\n    a\n',
  '\n    ',
  '\n\t',
  '1. ',
  '- [ ] ',
  'a.',
  '.a',
  'aaaaaaaaaaaaaaaaaaaaaaaa.',
  'fatal: ',
  'error:\r',
  '# ',
  '#### ',
  '####',
  '\u001b[31m',
  '\ud83c\udf32',
  '/a ',
  '/help@',
  '\u200b',
  '*_',
  'a**bc* ',
  '> > ',
  '* * ',
  '[](',
  '[a](<b',
  '\\``',
  '| a |\n|-|\n',
  'a|b\n-|-\nx\n',
  'https://a_',
  'https://a(',
])

type Ends = readonly [start: string, end: string]

const plain: Ends = ['', 'x\n!']
const marked: Ends[] = [
  ['# ', 'x'],
  ['#### a', 'b'],
  ['~~~', '`'],
]

/** Every function gets every unit plain, and between one of the other ends; in `npm run test:every-case` between each. */
const endsFor = (round: number): Ends[] => [plain, ...marked.filter((_, n) => everyCase || n === round % marked.length)]

for (const [at, [name, [longest, work]]] of Object.entries(functions).entries()) {
  for (const [n, unit] of units.entries()) {
    for (const [start, end] of endsFor(at + n)) {
      // eslint-disable-next-line unicorn/require-post-message-target-origin -- a worker of this process, not a window
      parentPort?.postMessage(`${name}: ${start}${unit}…${end}`)
      work(`${start}${unit.repeat(Math.ceil(longest / unit.length))}`.slice(0, longest - 10) + end)
    }
  }
}
