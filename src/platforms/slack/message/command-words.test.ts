import { expect, test } from 'vitest'
import { asCommand, isAboutChannel, isAboutThread } from './command-words.ts'

test.each([
  ['stop', '/stop'],
  ['Stop', '/stop'],
  ['STOP!', '/stop'],
  ['allow', '/allow'],
  ['deny.', '/deny'],
  ['status', '/status'],
  ['help', '/help'],
  ['!stop', '/stop'],
  ['!worktree remove issue-42 --force', '/worktree remove issue-42 --force'],
  ['!review\nthe login', '/review\nthe login'],
  ['/stop', '/stop'],
])('%s is the command %s', (text, command) => {
  expect(asCommand(text)).toBe(command)
})

test.each([
  'stop using tabs',
  'stop it',
  'please stop',
  'stop?',
  'help me with the login',
  'status of #42',
  'allow it, but only once',
  'don’t stop',
  'link',
  'reset',
  '! stop',
  '!!stop',
  '!=',
  'stop\nusing tabs',
  '',
])('%s is no command', (text) => {
  expect(asCommand(text)).toBe(text)
})

test.each([
  ['/stop', true],
  ['/worktree list', true],
  ['/help', false],
  ['/Help worktree', false],
  ['/codebase app', false],
  ['/codebases', false],
])('%s is about a thread: %s', (command, expected) => {
  expect(isAboutThread(command)).toBe(expected)
})

test('only a choice of repository is about the channel', () => {
  expect(['/codebase app', '/clone https://x.org/a', '/codebases', '/stop'].map(isAboutChannel)).toEqual([
    true,
    true,
    false,
    false,
  ])
})
