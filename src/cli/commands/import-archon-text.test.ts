import { expect, test } from 'vitest'
import { plain, type View } from '../../commands/views/view.ts'
import type { ImportReport } from '../../conversations/import-archon/report.ts'
import { importText } from './import-archon-text.ts'

const now = Date.parse('2026-02-01T00:00:00Z')
const view: View = {
  paint: plain,
  now,
  userHome: '/home/ada',
  commandText: (command) => `coppice ${command}`,
  columns: undefined,
}
const none = { taken: 0, known: 0, leftOut: 0 }
const tree = {
  codebase: 'shop',
  work: { type: 'issue', id: '42' },
  aliases: [{ type: 'pr', id: '99' } as const, { type: 'task', id: 'issue-42' } as const],
  branch: 'archon/issue-42',
  path: '/home/ada/trees/issue-42',
  owned: false,
  lastActivityAt: now - 20 * 24 * 60 * 60 * 1000,
  relinked: false,
} as const
const report: ImportReport = {
  dryRun: true,
  counts: { codebase: { ...none, taken: 1 }, environment: { ...none, taken: 2 }, conversation: none, session: none },
  codebases: ['shop'],
  settings: [{ codebase: 'shop', base: 'develop', agent: 'codex' }],
  environments: [tree, { ...tree, work: { type: 'pr', id: '7' }, aliases: [], owned: true, relinked: true }],
  handedOver: [],
  overLimit: [{ codebase: 'shop', worktrees: 27, limit: 25, ownable: 4 }],
  advice: [],
  leftOut: [],
}

test('the dry run shows whose each worktree is, what finds it, its age, and what will be over the limit', () => {
  expect(importText(report, view).split('\n')).toEqual([
    'Would import 1 repository and 2 worktrees',
    '  archon/issue-42  issue #42, PR #99  shop  used 20 days ago                 ~/trees/issue-42',
    '  archon/issue-42  PR #7              shop  used 20 days ago  own, relinked  ~/trees/issue-42',
    '  shop: base branch develop, agent codex',
    "shop will have 27 worktrees, and the limit is 25: you can't create new ones until 3 are removed. With --own, Coppice takes over 4 worktrees that Archon made, and removes those that are merged or stale. To raise the limit, set MAX_WORKTREES_PER_CODEBASE.",
  ])
})

test('afterwards it says what Coppice may delete', () => {
  const done = importText({ ...report, dryRun: false, overLimit: [] }, view)
  expect(done).toContain('Coppice removes the worktrees marked "own" once')
  expect(done).toContain('Coppice never deletes the others')
})

test('what is left to do by hand comes with the lines to type', () => {
  const advice: ImportReport['advice'] = [
    {
      kind: 'commands',
      codebase: 'shop',
      files: [
        { file: '.archon/commands/Plan It.md', name: 'plan-it', clash: false, positional: true },
        { file: '.archon/commands/status.md', name: 'status', clash: true, positional: false },
      ],
    },
    {
      kind: 'repository-config',
      codebase: 'shop',
      file: '.archon/config.yaml',
      yaml: ['worktree:', '  copy: [".env"]'],
      unused: ['docs.path'],
    },
    { kind: 'home-config', file: '/a/config.yaml', yaml: [], unused: ['botName'] },
    { kind: 'unreadable-config', file: '/b/config.yaml', why: 'bad YAML' },
    { kind: 'base-missing', codebase: 'shop', branch: 'gone' },
    { kind: 'unknown-agent', codebase: 'shop', agent: 'pi' },
    { kind: 'variable', name: 'WEBHOOK_SECRET', use: { kind: 'renamed', to: 'GITHUB_WEBHOOK_SECRET' } },
    { kind: 'variable', name: 'DATABASE_URL', use: { kind: 'separate', to: 'COPPICE_DATABASE_URL' } },
    { kind: 'variable', name: 'GITHUB_APP_PRIVATE_KEY_PATH', use: { kind: 'content', to: 'GITHUB_APP_PRIVATE_KEY' } },
    { kind: 'variable', name: 'GITHUB_ALLOWED_USERS', use: { kind: 'user-ids' } },
    { kind: 'variable', name: 'CODEX_ID_TOKEN', use: { kind: 'login', program: 'codex' } },
    { kind: 'variable', name: 'PORT', use: { kind: 'option', to: '--port' } },
    { kind: 'variable', name: 'GITEA_URL', use: { kind: 'no-platform', platform: 'Gitea' } },
    { kind: 'variable', name: 'BOT_DISPLAY_NAME', use: { kind: 'nothing' } },
    { kind: 'allow-list', platform: 'Slack', variable: 'SLACK_ALLOWED_USERS' },
  ]
  const lines = importText({ ...report, advice }, view).split('\n')
  expect(lines.slice(lines.indexOf('To do by hand:') + 1)).toEqual([
    "  shop: to keep using 1 command of Archon's, run this in the repository, and commit it:",
    '    mkdir -p .coppice/commands',
    "    cp '.archon/commands/Plan It.md' .coppice/commands/plan-it.md",
    "  shop: copy .archon/commands/status.md under another name, since /status is a command of Coppice's",
    '  shop: in the copies of .archon/commands/Plan It.md, replace $1, $2, … with $ARGUMENTS',
    '  shop: commit this as .coppice/config.yaml (from .archon/config.yaml):',
    '    worktree:',
    '      copy: [".env"]',
    '  shop: .archon/config.yaml: Coppice has no setting for docs.path',
    '  /a/config.yaml: Coppice has no setting for botName',
    "  couldn't read /b/config.yaml: bad YAML",
    "  shop: Archon's base branch gone doesn't exist; set another with coppice codebase add <path> --base <branch>",
    "  shop: Archon used pi, which Coppice doesn't support; choose an agent with coppice codebase add <path> --agent <name>",
    '  WEBHOOK_SECRET: set GITHUB_WEBHOOK_SECRET instead',
    "  DATABASE_URL: Coppice uses COPPICE_DATABASE_URL. Don't set it to Archon's",
    '  GITHUB_APP_PRIVATE_KEY_PATH: set GITHUB_APP_PRIVATE_KEY to the content of that file',
    '  GITHUB_ALLOWED_USERS: replace names with numeric user IDs (gh api users/<name> --jq .id)',
    '  CODEX_ID_TOKEN: run codex login instead',
    '  PORT: use coppice serve --port instead',
    "  GITEA_URL: Coppice doesn't support Gitea",
    '  BOT_DISPLAY_NAME: has no effect in Coppice',
    '  Slack: Archon answered everybody, Coppice only allowed users; list their IDs in SLACK_ALLOWED_USERS, or set it to * for everybody',
  ])
})
