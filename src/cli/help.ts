import type { CommandWords, OptionRow } from '../commands/command.ts'
import { sentence } from '../domain/text/words.ts'
import { commands, globalOptions, groups } from './table.ts'
import { type Paint, wrapped } from '../commands/views/view.ts'

/** How help is rendered. */
export type Sheet = { readonly paint: Paint; readonly columns: number }

/** Generated from the table. */
export const helpFor = (row: CommandWords, sheet: Sheet): string => {
  const { paint, columns } = sheet
  const called = `coppice ${row.name}`
  return [
    // Painted after wrapping: colour codes have no width.
    paint('bold', called) + wrapped(`${called} ${row.usage}`.trimEnd(), columns, 4).slice(called.length),
    '',
    wrapped(sentence(row.summary), columns, 0),
    ...(row.details === undefined ? [] : [wrapped(row.details, columns, 0)]),
    ...optionsOf('Options', row.options, sheet),
    ...optionsOf('Global options', withoutOwn(row), sheet),
    ...(row.examples.length === 0 ? [] : ['', paint('bold', 'Examples'), ...row.examples.map((line) => `  ${line}`)]),
    ...refHint(row).map((line) => wrapped(line, columns, 0)),
  ].join('\n')
}

/** One that a command redefines is listed with its own options. */
const withoutOwn = ({ options }: CommandWords): Readonly<Record<string, OptionRow>> =>
  Object.fromEntries(Object.entries(globalOptions).filter(([name]) => !(name in options)))

export const overview = (sheet: Sheet, group?: string): string =>
  group === undefined
    ? [
        ...titled('coppice', 'an isolated git worktree for every piece of work', '', sheet),
        '',
        sheet.paint('bold', 'Start here'),
        '  coppice chat "fix the login bug"        let an agent work in its own worktree',
        '  coppice worktree create --issue 42      create a worktree to work in yourself',
        '  coppice <command> --help                show options and examples',
        '',
        'Exit codes: 0 success, 1 failure, 2 usage error, 3 refused for safety or state.',
      ].join('\n')
    : [
        ...titled(`coppice ${group}`, groups[group] ?? '', `${group} `, sheet),
        '',
        `Run \`coppice ${group} <command> --help\` for options and examples.`,
      ].join('\n')

/** The commands with this prefix, under a title. */
const titled = (called: string, summary: string, prefix: string, sheet: Sheet): string[] => {
  const rows = commands.filter(({ hidden, name }) => hidden !== true && `${name} `.startsWith(prefix))
  const longest = Math.max(...rows.map(({ name }) => name.length))
  return [
    `${sheet.paint('bold', called)}: ${summary}`,
    '',
    ...rows.map((row) => described(row.name.padEnd(longest), row.summary, sheet, 'cyan')),
    ...optionsOf('Global options', globalOptions, sheet),
  ]
}

const optionsOf = (title: string, options: Readonly<Record<string, OptionRow>>, sheet: Sheet): string[] => {
  const rows = Object.entries(options).map(
    ([name, { value, summary, short }]) =>
      [
        `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`,
        summary,
      ] as const,
  )
  if (rows.length === 0) return []
  const longest = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, summary]) => described(name.padEnd(longest), summary, sheet))
  return ['', sheet.paint('bold', title), ...lines]
}

/** A name and its description, whose other lines are indented past the name. */
const described = (name: string, summary: string, { paint, columns }: Sheet, style?: 'cyan'): string => {
  const head = `  ${name}  `
  const text = wrapped(head + summary, columns, head.length)
  return style === undefined ? text : `  ${paint(style, name)}${text.slice(2 + name.length)}`
}

const refHint = ({ usage }: CommandWords): string[] =>
  usage.includes('ref>') || usage.includes('[ref]')
    ? ['', '<ref> is an ID, a branch, a path, or a name such as issue-42, pr-99 or task-add-dark-mode.']
    : []
