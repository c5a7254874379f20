import { expect, test } from 'vitest'
import { htmlAsText } from './html-as-text.ts'
import { segmentsOf } from './segments.ts'

const fence = '```'

test.each([
  ['a comment that never ends', 'x <!-- y\n\n- npm test', 'x &lt;!-- y\n\n- npm test'],
  ['nothing hidden', `a < b, \`<!--\`, <https://a.test>\n${fence}\n<!--\n${fence}`, undefined],
])('%s', (_what, text, shown = text) => {
  expect(htmlAsText(text)).toBe(shown)
})

test.each([
  // The fence inside the comment would open a code block that ends where the next one begins.
  `<!--\n${fence}\n-->\n\n${fence}\n<!-- x\n${fence}\n\n- npm test`,
  '<details>\n\n- npm test',
  '<? x\n\n- npm test',
  '<div title="\n\n- npm test',
])('nothing of %j is hidden', (text) => {
  const hidden = segmentsOf(htmlAsText(text)).filter((one) => one.kind === 'hidden')
  expect(hidden.map((one) => one.text.trim()).join('')).toBe('')
})
