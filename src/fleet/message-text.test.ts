import { describe, expect, test } from 'vitest'
import { messageText } from './message-text.ts'
import { COMMAND_LINE } from './program.ts'

/** Which texts the real programs act on: test/agents/fleet-sessions.test.ts. */

describe('for a program with commands of its own', () => {
  test.each(['/exit now', '!rm x', '# note', '$skill x', '@agent x', '& x', '? x', String.raw`\x y`])(
    'what begins like one is introduced: %s',
    (text) => expect(messageText(text, { program: 'claude' })).toBe(`Message: ${text}`),
  )

  test.each(['look at @src', 'run /tests', 'use $skill', 'line one\n@src'])(
    'a name at the end, which it would complete, ends with a space: %j',
    (text) => expect(messageText(text, { program: 'codex' })).toBe(`${text} `),
  )

  test.each(['use the new API', 'is a/b right?', 'mail me@example.com', 'see @src now'])(
    'the rest is as it was: %s',
    (text) => expect(messageText(text, { program: 'claude' })).toBe(text),
  )
})

test.each(['/exit', '!rm x', 'look at @src'])("a command of the pool's own gets exactly the text: %s", (text) => {
  expect(messageText(text, { program: COMMAND_LINE })).toBe(text)
})
