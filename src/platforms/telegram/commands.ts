import type { CommandRow } from '../../commands/command.ts'

export type MenuCommand = { readonly command: string; readonly description: string }

/** Chat commands for Telegram's `/` menu: one per first word, since it allows no spaces. */
export const menuCommands = (rows: readonly CommandRow[]): MenuCommand[] =>
  [...Map.groupBy(rows, ({ name }) => name.split(' ')[0] ?? name)]
    // Telegram's own rule.
    .filter(([command]) => /^[a-z0-9_]{1,32}$/.test(command))
    .map(([command, own]) => {
      const alone = own.find(({ name }) => name === command)
      const description = alone?.summary ?? own.map(({ name }) => name.slice(command.length + 1)).join(', ')
      return { command, description: description.slice(0, 256) }
    })
