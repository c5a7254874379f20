import MarkdownIt from 'markdown-it'
import { expect, test } from 'vitest'
import { limitMessage } from '../../src/commands/views/limit.ts'
import { renderMarkdown } from '../../src/platforms/discord/render.ts'
import { withoutMentions } from '../../src/platforms/github/markdown/mentions.ts'
import { toMrkdwn } from '../../src/platforms/slack/render.ts'
import { toHtml } from '../../src/platforms/telegram/render.ts'

const report = {
  codebase: 'project',
  limit: 3,
  count: 3,
  merged: 2,
  stale: 0,
  held: 0,
  active: 1,
  unknownMerged: undefined,
}
/** GitHub's own renderer leaves HTML in, and then drops the tags that it doesn't know. */
const onGithub = (text: string): string => new MarkdownIt({ html: true, breaks: true }).render(withoutMentions(text))

test.each([
  ['GitHub', onGithub, '<code>/worktree remove &lt;name&gt;</code>', '<code>/worktree cleanup merged</code> (2)'],
  ['Slack', toMrkdwn, '`/worktree remove &lt;name&gt;`', '`/worktree cleanup merged` (2)'],
  ['Telegram', toHtml, '<code>/worktree remove &lt;name&gt;</code>', '<code>/worktree cleanup merged</code> (2)'],
  ['Discord', renderMarkdown, '`/worktree remove <name>`', '`/worktree cleanup merged` (2)'],
])(
  'on %s the limit message keeps its placeholders and counts, and offers no cleanup at zero',
  (_name, print, ...all) => {
    const shown = print(limitMessage(report, 14))
    for (const part of all) expect(shown).toContain(part)
    expect(shown).not.toContain('cleanup stale')
  },
)
