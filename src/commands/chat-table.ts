import type { CommandRow, Grammar } from './command.ts'
import { chatOnly, firstWord, grouped, shared } from './table.ts'

/** A shared command as a chat calls it. */
const inChat = (row: CommandRow): CommandRow => {
  const { options, atOnce: _atOnce, ...form } = row.chat ?? {}
  const kept = Object.entries(row.options).filter(([name]) => options === undefined || options.includes(name))
  // Aliases are the chat's own: `coppice codebases` is `/codebases` there anyway.
  return { ...row, aliases: [], ...form, options: Object.fromEntries(kept) }
}

/** All commands of a chat, in the order in which help lists them. */
export const chatCommands: readonly CommandRow[] = grouped([...chatOnly, ...shared].map(inChat))

/** The first words of those that are answered at once, even while the agent works. */
export const atOnce: ReadonlySet<string> = new Set(
  chatCommands.filter(({ chat }) => chat?.atOnce === true).map(({ name }) => firstWord(name)),
)

/** What is said as `coppice worktree list` elsewhere; what a chat cannot do stays the command line's. */
export const chatCommandText = (command: string): string => {
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
  globalOptions: { help: { type: 'boolean', short: 'h', summary: 'show this help' } },
  commandText: (command) => `/${command}`,
  help: (name) => ['/help', ...(name === undefined ? [] : [name])].join(' '),
}
