import { expect, test } from 'vitest'
import { matchCommand } from './match-command.ts'
import { parseRepoCommand, type RepoCommand } from './repo-commands.ts'

const command = (name: string, front: string): Promise<RepoCommand> =>
  parseRepoCommand(name, `${name}.md`, `---\n${front}\n---\nDo it.`)

const commands: readonly RepoCommand[] = await Promise.all([
  command('review', 'description: review what changed'),
  command('explain', 'description: explain the code\nexamples: [what does this do, walk me through this]'),
  command(
    'release-notes',
    'description: write release notes\nexamples: [summarize the changes since the last release]',
  ),
  command('fix-tests', 'description: repair failing tests'),
  command('plan', 'description: plan the work'),
  command('security-review', 'description: look for security holes'),
])

const asked = (text: string, among = commands): string => {
  const match = matchCommand(text, among)
  return match === undefined ? 'nothing' : `${match.command.name}${match.clear ? '' : '?'}`
}

test.each([
  ['can you review this PR', 'review'],
  ['Please review it!', 'review'],
  ['review', 'review'],
  ['could you review my changes, please?', 'review'],
  ['I want you to review this pull request', 'review'],
  ['what does this do?', 'explain'],
  ["Let's walk me through this", 'explain'],
  ['explaining the code would be nice', 'explain?'],
  ['write the release notes', 'release-notes'],
  ['fix the tests', 'fix-tests'],
  ['could you plan this', 'plan'],
  ['security review please', 'security-review'],
  // Its words, but not what it is called or asked by.
  ['since the last release', 'release-notes?'],
  // More is asked than the command does.
  ['plan the login', 'plan?'],
  ['review the login', 'review?'],
  ['fix the failing login tests', 'fix-tests?'],
])('%j asks for %s (?: only an offer)', (text, expected) => {
  expect(asked(text)).toBe(expected)
})

test.each([
  ['fix the login bug'],
  ["don't review this PR"],
  ['please do not review it'],
  ['no review, please'],
  ['why did you review this PR?'],
  ['how do I review this?'],
  ['I reviewed this PR'],
  ['I will review this PR'],
  ["I'll review it"],
  ['we review this'],
  ['review it, but not the tests'],
  ['review this PR after the release'],
  ['review this PR and then fix the typo in the readme and push it'],
  ['review src/login.ts'],
  ['review `main`'],
  ['review\nthis'],
  ['release'],
  ['yes'],
  ['thanks'],
  ['please'],
  [''],
  ['レビューして'],
  [`review ${'this '.repeat(60)}`],
])('%j asks for no command', (text) => {
  expect(asked(text)).toBe('nothing')
})

test('two commands that fit about as well are no answer, and one that fits better is', async () => {
  const two = [await command('review-api', 'description: x'), await command('review-docs', 'description: y')]
  expect(asked('review this', two)).toBe('nothing')
  const same = [
    await command('lint', 'examples: [check the login page]'),
    await command('audit', 'examples: [check the login form]'),
  ]
  expect(asked('check the login', same)).toBe('nothing')
  expect(asked('check the login form', same)).toBe('audit')
  expect(asked('review the docs', two)).toBe('review-docs')
  const both = [await command('review', 'description: x'), await command('review-pr', 'description: y')]
  expect(asked('review this pr', both)).toBe('review-pr')
  expect(asked('review this', both)).toBe('review')
  // Whatever a file claims to be asked by: its words are no reason to run it for every message.
  const greedy = [await command('all', 'examples: [fix, test, login, bug, add, change, this]')]
  expect(asked('fix the login bug', greedy)).toBe('nothing')
})
