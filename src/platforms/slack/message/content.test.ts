import { expect, test } from 'vitest'
import { attachedText, contentOf, ownText } from './content.ts'
import { toPlainText } from './text.ts'

const rich = (...elements: unknown[]): unknown => ({ type: 'rich_text', elements })
const line = (...elements: unknown[]): unknown => ({ type: 'rich_text_section', elements })
const text = (words: string): unknown => ({ type: 'text', text: words })

test('an alert says in its blocks what its text leaves out', () => {
  const alert = {
    text: 'Error in checkout',
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: 'Error in checkout' } },
      { type: 'section', text: { type: 'mrkdwn', text: '*TypeError* in `cart.ts`' }, fields: [{ text: 'env: prod' }] },
      {
        type: 'context',
        elements: [
          { type: 'mrkdwn', text: 'seen 3 times' },
          { type: 'image', alt_text: 'x' },
        ],
      },
      { type: 'actions', elements: [{ type: 'button', text: { type: 'plain_text', text: 'Resolve' } }] },
    ],
  }
  expect(contentOf(alert)).toBe('Error in checkout\n*TypeError* in `cart.ts`\nenv: prod\nseen 3 times')
})

test('an alert of the old kind has everything in its attachments', () => {
  const old = {
    text: '',
    attachments: [
      { pretext: 'Build failed', title: '#42', text: 'on main', fields: [{ title: 'Commit', value: 'abc1234' }] },
      { fallback: 'only this' },
      { fallback: 'Stop', blocks: [{ type: 'actions', elements: [] }] },
    ],
  }
  expect(contentOf(old)).toBe('Build failed\n#42\non main\nCommit: abc1234\nonly this')
})

test('a forwarded message is told with its author and its own blocks', () => {
  const forward = {
    text: 'please fix',
    attachments: [
      {
        is_share: true,
        author_name: 'Ada',
        text: 'shortened',
        fallback: 'shortened',
        message_blocks: [
          {
            message: {
              blocks: [
                rich(
                  line(text('it breaks if a < b | c, see '), { type: 'link', url: 'https://x.org', text: 'docs' }),
                  { type: 'rich_text_list', elements: [line(text('one')), line({ type: 'user', user_id: 'U2' })] },
                  { type: 'rich_text_preformatted', elements: [text('throw 1')] },
                ),
              ],
            },
          },
        ],
      },
    ],
  }
  expect(ownText(forward)).toBe('please fix')
  expect(toPlainText(attachedText(forward))).toBe(
    'Forwarded message from Ada:\nit breaks if a < b | c, see docs (https://x.org)\n• one\n• @U2\n```\nthrow 1\n```',
  )
})

test('what a person wrote is not told twice, and is told once if only its blocks have it', () => {
  const blocks = [rich(line(text('fix the '), { type: 'link', url: 'https://x.org' }))]
  expect(ownText({ text: 'fix the <https://x.org>', blocks })).toBe('fix the <https://x.org>')
  expect(ownText({ text: '', blocks })).toBe('fix the <https://x.org>')
})

test('nothing in it is trusted to have a shape or an end', () => {
  expect(contentOf({ text: 7, blocks: {}, attachments: [null, [], { blocks: 'x', fields: 1 }] })).toBe('')
  const endless = { attachments: Array.from({ length: 1_000 }, () => ({ text: 'x'.repeat(10_000) })) }
  expect(contentOf(endless).length).toBeLessThanOrEqual(20_000)
})
