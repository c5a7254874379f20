import type { CommandRow, Grammar } from './command.ts'
import { shared } from './table.ts'

/** Those that are about a conversation and mean nothing without one. */
const chatOnly = {
  help: {
    name: 'help',
    usage: '[command]',
    summary: 'list commands, or show help for one',
    options: {},
    words: [0, 2],
    examples: [],
    load: async () => (await import('./help.ts')).help,
  },
  codebase: {
    name: 'codebase',
    usage: '<name>',
    summary: 'switch to another repository (ends the session)',
    options: {},
    words: [1, 1],
    examples: ['coppice codebase project'],
    load: async () => (await import('./codebase-bind.ts')).codebaseBind,
  },
  agent: {
    name: 'agent',
    usage: '[name]',
    summary: 'show or change the agent (changing it ends the session)',
    options: {},
    words: [0, 1],
    examples: ['coppice agent demo'],
    load: async () => (await import('./agent.ts')).agent,
  },
  reset: {
    name: 'reset',
    usage: '',
    summary: 'end the session; the next message starts a new one',
    options: {},
    words: [0, 0],
    examples: [],
    load: async () => (await import('./reset.ts')).reset,
  },
  allow: {
    name: 'allow',
    usage: '',
    summary: "allow the agent's pending request, once",
    options: {},
    words: [0, 0],
    examples: [],
    load: async () => (await import('./allow.ts')).allow,
  },
  deny: {
    name: 'deny',
    usage: '',
    summary: "deny the agent's pending request",
    options: {},
    words: [0, 0],
    examples: [],
    load: async () => (await import('./allow.ts')).deny,
  },
  budget: {
    name: 'budget',
    usage: '[raise <amount>]',
    summary: 'show spending, or raise the limit to continue',
    options: {},
    words: [0, 3],
    examples: ['coppice budget raise 5', 'coppice budget raise 20 turns'],
    load: async () => (await import('./budget.ts')).budget,
  },
  stop: {
    name: 'stop',
    usage: '',
    summary: 'stop the agent and everything it started',
    options: {},
    words: [0, 0],
    examples: [],
    load: async () => (await import('./stop.ts')).stop,
  },
} as const satisfies Readonly<Record<string, CommandRow>>

/** A shared command as a chat calls it. */
const inChat = (row: CommandRow): CommandRow => {
  const { options, ...form } = row.chat ?? {}
  const kept = Object.entries(row.options).filter(([name]) => options === undefined || options.includes(name))
  // Aliases are the chat's own: `coppice codebases` is `/codebases` there anyway.
  return { ...row, aliases: [], ...form, options: Object.fromEntries(kept) }
}

/** All commands of a chat, in the order in which the help shows them. */
export const chatCommands: readonly CommandRow[] = [
  chatOnly.help,
  inChat(shared.status),
  inChat(shared.codebaseList),
  chatOnly.codebase,
  inChat(shared.codebaseAdd),
  chatOnly.agent,
  inChat(shared.agents),
  chatOnly.reset,
  chatOnly.stop,
  chatOnly.allow,
  chatOnly.deny,
  chatOnly.budget,
  inChat(shared.diff),
  inChat(shared.worktreeCreate),
  inChat(shared.worktreeList),
  inChat(shared.worktreeRemove),
  inChat(shared.worktreeRestore),
  inChat(shared.worktreeLink),
  inChat(shared.worktreeOrphans),
  inChat(shared.worktreeCleanup),
]

/** What is said as `coppice worktree list` elsewhere; what a chat cannot do stays the command line's. */
export const sayInChat = (command: string): string => {
  for (const { name, aliases = [] } of chatCommands) {
    for (const words of [name, ...aliases]) {
      if (command === words || command.startsWith(`${words} `)) {
        // `codebase add <path or URL>`: the longer name counts, or it would be the codebase `add`.
        if (name === 'codebase' && /^codebase (?:add|list|remove|trust)\b/.test(command)) continue
        // A chat takes no paths of the server.
        if (/^codebase add <(?:new )?path>/.test(command)) continue
        return `/${name}${command.slice(words.length)}`
      }
    }
  }
  return `coppice ${command}`
}

export const chatGrammar: Grammar<CommandRow> = {
  rows: chatCommands,
  everywhere: { help: { type: 'boolean', short: 'h', summary: 'show this help' } },
  say: (command) => `/${command}`,
  help: (name) => ['/help', ...(name === undefined ? [] : [name])].join(' '),
}
