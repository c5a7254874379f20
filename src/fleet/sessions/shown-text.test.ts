import { expect, test } from 'vitest'
import { shownText } from './shown-text.ts'

const CSI = '\u001b['

test.each([
  [
    'plain lines, with colors and a title',
    `one\r\n${CSI}31mtwo${CSI}0m\u001b]0;title\u0007\n\tthree`,
    'one\ntwo\n\tthree',
  ],
  ['the cursor moves instead of spaces', `Done${CSI}6Gagent${CSI}2Cat${CSI}2Dit`, 'Done agent  it'],
  ['a spinner is printed over', `working 1\rworking 2\rfinished${CSI}K`, 'finished'],
  ['lines further up are printed over', `a\r\nb\r\nc\r\n${CSI}2AB${CSI}2B\rd`, 'a\nB\nc\nd'],
  ['the rest of the screen is erased', `a\r\nb\r\nc${CSI}1A\r${CSI}Jend`, 'a\nend'],
  ['a cleared screen keeps what was there', `before\r\n${CSI}2J${CSI}3Jafter`, 'before\nafter'],
  ['absolute places are on the screen', `${CSI}2;3Hx${CSI}Htop`, 'top\n  x'],
  ['what a terminal answers to isn’t text', '\u001b_Gi=1,s=1;AAAA\u001b\\\u001bP+q\u001b\\text\b!', 'tex!'],
  [
    'numbers without end move no further than a terminal',
    `${CSI}99999999Bx${CSI}99999999999999999999Cy`,
    `${'\n'.repeat(49)}x${' '.repeat(999)}y`,
  ],
])('%s', (_what, output, shown) => {
  expect(shownText(output)).toBe(shown)
})

test('what has scrolled far away is dropped, and nothing is missing after that', () => {
  const lines = Array.from({ length: 10_000 }, (_, i) => `${CSI}999C${i}`)
  const shown = shownText(lines.join('\n')).split('\n').map(Number)
  expect(shown.length).toBeGreaterThanOrEqual(1_000)
  expect(shown).toEqual(Array.from({ length: shown.length }, (_, i) => 10_000 - shown.length + i))
})
