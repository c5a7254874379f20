import {
  type APIApplicationCommandInteraction,
  type APIApplicationCommandInteractionDataOption,
  ApplicationCommandOptionType,
  ApplicationCommandType,
  type APIInteraction,
  InteractionType,
  type RESTPostAPIApplicationCommandsJSONBody,
} from 'discord.js'
import type { CommandRow } from '../../commands/command.ts'
import { withoutInvisible } from '../../domain/text/visible.ts'

/** Everything after the command's name; chat commands take words, not forms. */
const ARGUMENTS = 'arguments'

/**
 * Chat commands as Discord lists them: one per first word, and `worktree list` as a subcommand of `worktree`.
 * A word that is a command itself can't have subcommands; the rest is then an argument.
 */
export const applicationCommands = (rows: readonly CommandRow[]): RESTPostAPIApplicationCommandsJSONBody[] => {
  const words = Map.groupBy(rows, ({ name }) => firstWord(name))
  return [...words].map(([name, own]) => {
    const alone = own.find((row) => row.name === name)
    const type = ApplicationCommandType.ChatInput
    if (alone !== undefined) return { name, type, description: short(alone.summary), options: argumentsOf(alone) }
    const below = Map.groupBy(own, (row) => firstWord(row.name.slice(name.length + 1)))
    const options = [...below].map(([word, rows]) => subcommand(`${name} ${word}`, word, rows))
    return { name, type, description: short(options.map((one) => one.name).join(', ')), options }
  })
}

/** `item import github`: `import` is a group of subcommands. */
const subcommand = (path: string, name: string, own: readonly CommandRow[]) => {
  const alone = own.find((row) => row.name === path)
  if (alone !== undefined) return subcommandOf(alone, name)
  const options = own.map((row) => subcommandOf(row, row.name.slice(path.length + 1)))
  const description = short(options.map((one) => one.name).join(', '))
  return { name, type: ApplicationCommandOptionType.SubcommandGroup as const, description, options }
}

const subcommandOf = (row: CommandRow, name: string) => ({
  name,
  type: ApplicationCommandOptionType.Subcommand as const,
  description: short(row.summary),
  options: argumentsOf(row),
})

/** An interaction as typed text: `/worktree remove issue-42 --force`; undefined: not a command. */
export const commandText = (interaction: APIInteraction): string | undefined => {
  if (interaction.type !== InteractionType.ApplicationCommand) return undefined
  const { data }: APIApplicationCommandInteraction = interaction
  if (data.type !== ApplicationCommandType.ChatInput) return undefined
  return withoutInvisible(['', data.name, ...wordsOf(data.options ?? [])].join(' '))
    .trim()
    .replace(/^/, '/')
}

const wordsOf = (options: readonly APIApplicationCommandInteractionDataOption[]): string[] =>
  options.flatMap((option) =>
    option.type === ApplicationCommandOptionType.Subcommand ||
    option.type === ApplicationCommandOptionType.SubcommandGroup
      ? [option.name, ...wordsOf(option.options ?? [])]
      : option.type === ApplicationCommandOptionType.String && option.name === ARGUMENTS
        ? [option.value.trim()]
        : [],
  )

const argumentsOf = ({ usage, words: [least] }: CommandRow) =>
  usage === ''
    ? []
    : [
        {
          name: ARGUMENTS,
          type: ApplicationCommandOptionType.String as const,
          description: short(usage),
          required: least > 0,
        },
      ]

const firstWord = (name: string): string => name.split(' ')[0] ?? name

/** Discord's limit is 100 characters. */
const short = (text: string): string => (text.length <= 100 ? text : `${text.slice(0, 99)}…`)
