import type { CliCall } from './cli-call.ts'
import type { CommandRow, LoadedCommand, OptionRow } from '../commands/command.ts'
import { dryRun, grouped, shared } from '../commands/table.ts'
import { fleetCommands } from './fleet-table.ts'
import { worktreeList } from '../commands/worktree-list.ts'
import { REQUESTS } from '../domain/fleet/agent.ts'

/** Accepted by every command. */
export const globalOptions: Readonly<Record<string, OptionRow>> = {
  json: { type: 'boolean', summary: 'output JSON' },
  codebase: { type: 'string', value: 'name', summary: "use this repository (default: the current directory's)" },
  home: {
    type: 'string',
    value: 'dir',
    summary: 'data directory (default: $COPPICE_HOME or ~/.coppice; /.coppice in a container)',
  },
  verbose: { type: 'boolean', summary: 'show details of errors' },
  help: { type: 'boolean', short: 'h', summary: 'show this help' },
}

/** Always need the workplace and query the current directory's repository: git can run while we open it. */
export const opensEarly: ReadonlySet<string> = new Set(['worktree list'])

export type CliRow = CommandRow<CliCall>

/** What the commands with this first word do. */
export const groups: Readonly<Record<string, string>> = {
  worktree: 'create, list, remove and restore worktrees',
  codebase: 'register and manage repositories',
  import: 'import worktrees and conversations from other tools',
  item: 'queue work for agents',
  'item import': 'import items from GitHub or beads',
  'item sync': 'sync items with their source',
  fleet: 'start, stop and watch agents',
  platforms: 'connect GitHub, Slack, Discord and Telegram',
  crew: 'manage permanent agents',
}

const first: readonly CliRow[] = [
  {
    name: 'serve',
    usage: '[--port <port>] [--host <address>]',
    summary: 'start the server',
    options: {
      port: { type: 'string', value: 'port', summary: 'port, or 0 for any free one (default: 4780)' },
      host: { type: 'string', value: 'address', summary: 'address to listen on (default: 127.0.0.1)' },
      'allow-remote': { type: 'boolean', summary: 'accept connections from other machines (put TLS in front)' },
      'allow-host': {
        type: 'string',
        multiple: true,
        value: 'name',
        summary: 'accept this Host header, behind a proxy',
      },
      grace: { type: 'string', value: 'seconds', summary: 'time to let running work finish on shutdown (default: 30)' },
      'test-platform': { type: 'boolean', summary: 'accept POST /test/message, for tests' },
    },
    words: [0, 0],
    examples: ['coppice serve', 'coppice serve --port 8080'],
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'chat',
    usage: '<message> [--conversation <id>] [--agent <name>]',
    summary: 'send a message and wait for the reply',
    details: 'Exit status: 0 if the agent or a command answered, 1 if nothing was run, 130 after Ctrl-C.',
    options: {
      conversation: { type: 'string', value: 'id', summary: 'continue this conversation (default: a new one)' },
      agent: { type: 'string', value: 'name', summary: 'use this agent in the conversation from now on' },
    },
    words: [1, 1000],
    examples: [
      'coppice chat "fix the login bug"',
      'coppice chat --conversation cli-1a2b3c4d "and add a test"',
      'coppice chat --conversation cli-1a2b3c4d /diff',
    ],
    load: async () => (await import('./commands/chat.ts')).chat,
  },
]

/** Loaded with the table: reading one more file takes half a millisecond. */
const loaded = (row: CommandRow): CliRow => {
  if (row.name === 'worktree list') return { ...row, load: async () => worktreeList }
  return ofSupervisor.has(row.name) ? { ...row, load: () => inSandbox(row) } : row
}

/** An agent's sandbox blocks the database, so there its session runs them, if it is the fleet's supervisor. */
const ofSupervisor: ReadonlySet<string> = new Set(['nudge', 'item park', 'item reopen', 'land'])

const inSandbox = async ({ name, load }: CommandRow): Promise<LoadedCommand<CliCall>> => {
  const inner = await load()
  return {
    execute: async (call) =>
      call.env[REQUESTS] === undefined
        ? inner.execute(call)
        : (await import('./commands/session-requests.ts')).throughSupervisor(name, inner).execute(call),
  }
}

const cliOnly: readonly CliRow[] = [
  ...fleetCommands,
  {
    name: 'worktree trust',
    usage: '<ref>',
    summary: 'trust a worktree of unproven origin',
    options: {},
    words: [1, 1],
    examples: ['coppice worktree trust pr-99-review'],
    load: async () => (await import('./commands/worktree-trust.ts')).worktreeTrust,
  },
  {
    name: 'cleanup',
    usage: '[--dry-run]',
    summary: 'clean up now (outside a repository: all of them)',
    options: { 'dry-run': dryRun },
    words: [0, 0],
    examples: ['coppice cleanup --dry-run'],
    load: async () => (await import('./commands/cleanup.ts')).cleanup,
  },
  {
    name: 'codebase trust',
    usage: '<name>',
    summary: "approve a repository's setup, teardown and formulas",
    options: {},
    words: [1, 1],
    examples: ['coppice codebase trust project'],
    load: async () => (await import('./commands/codebase-trust.ts')).codebaseTrust,
  },
  {
    name: 'codebase remove',
    usage: '<name> [--force]',
    summary: 'stop tracking a repository (deletes clones Coppice made)',
    options: {
      force: { type: 'boolean', summary: 'stop tracking even if the repository is unreachable' },
    },
    words: [1, 1],
    examples: ['coppice codebase remove project'],
    load: async () => (await import('./commands/codebase-remove.ts')).codebaseRemove,
  },
  {
    name: 'platforms',
    usage: '',
    summary: 'list platforms and their connection status',
    options: {},
    words: [0, 0],
    examples: ['coppice platforms'],
    load: async () => (await import('./commands/platforms.ts')).platforms,
  },
  {
    name: 'platforms setup',
    usage: '<platform>',
    summary: 'show setup steps and verify your credentials',
    options: {},
    words: [1, 1],
    examples: ['coppice platforms setup slack', 'coppice platforms setup github --json'],
    load: async () => (await import('./commands/platforms-setup.ts')).platformsSetup,
  },
  {
    name: 'doctor',
    usage: '[--fix]',
    summary: 'check your setup and suggest fixes',
    options: { fix: { type: 'boolean', summary: 'finish or undo interrupted operations' } },
    words: [0, 0],
    examples: ['coppice doctor', 'coppice doctor --fix'],
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'import archon',
    usage: '[<sqlite file> | <postgres url> | -] [--own] [--map <old=new>]… [--dry-run]',
    summary: 'import from Archon',
    details: 'With -, reads the URL from standard input. Without an argument, uses ARCHON_DATABASE_URL.',
    options: {
      own: { type: 'boolean', summary: 'manage and clean up the clean worktrees that Archon made' },
      map: {
        type: 'string',
        multiple: true,
        value: 'old=new',
        summary: "where a path in Archon's container is on this machine (repeatable)",
      },
      'dry-run': dryRun,
    },
    words: [0, 1],
    examples: [
      'coppice import archon ~/.archon/archon.db --dry-run',
      'coppice import archon /opt/archon/archon.db --map /.archon=/opt/archon',
      'ARCHON_DATABASE_URL=postgres://… coppice import archon',
      'coppice import archon - < url.txt',
    ],
    load: async () => (await import('./commands/import-archon.ts')).importArchonCommand,
  },
  {
    name: 'internal delete',
    usage: '<path>…',
    summary: 'delete what was removed, in the background',
    options: {},
    words: [1, Number.POSITIVE_INFINITY],
    examples: [],
    hidden: true,
    load: async () => (await import('./commands/delete.ts')).deleteCommand,
  },
  {
    name: 'internal keep-spares',
    usage: '<codebase id>',
    summary: 'prepare spares in the background',
    options: {},
    words: [1, 1],
    examples: [],
    hidden: true,
    load: async () => (await import('./commands/keep-spares.ts')).keepSparesCommand,
  },
]

/** All commands, in help order. */
export const commands: readonly CliRow[] = grouped([...first, ...shared.map(loaded), ...cliOnly])
