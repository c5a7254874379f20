import { describe, expect, test } from 'vitest'
import { isShown } from './submit.ts'

describe('a text is shown', () => {
  test.each([
    ['its end is there', 'fix it, please', '> ', '> fix it, please'],
    ['however it is wrapped', 'a long text that is wrapped here', '', 'a long text that is wra\n  pped here'],
    ['once more', 'again', 'again', 'again\nagain'],
    ['as what stands for a paste', 'one\ntwo\nthree\nfour', '', '❯ [Pasted text #1 +3 lines]'],
    [
      'as another one',
      'x'.repeat(2_000),
      '[Pasted Content 9 chars]',
      '[Pasted Content 9 chars][Pasted Content 2000 chars]',
    ],
  ])('%s', (_how, text, before, now) => expect(isShown(text, before, now)).toBe(true))

  test.each([
    ['nothing has changed', 'again', 'again', 'again'],
    ['only something else has', 'fix it, please', '* Working (1s)', '* Working (2s)'],
    ['it is half there', 'fix it, please', '', '> fix it, pl'],
  ])('not if %s', (_why, text, before, now) => expect(isShown(text, before, now)).toBe(false))
})
