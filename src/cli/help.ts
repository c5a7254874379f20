import type { CommandRow, OptionRow } from './command.ts'
import { commands, everywhere } from './table.ts'
import type { Paint } from './view.ts'

/** Help is the table, read out. */
export const helpFor = (row: CommandRow, paint: Paint): string =>
  [
    `${paint('bold', `coppice ${row.name}`)} ${row.usage}`.trimEnd(),
    '',
    `${capital(row.summary)}.`,
    ...optionsOf('Options', row.options, paint),
    ...optionsOf('Everywhere', everywhere, paint),
    ...(row.examples.length === 0 ? [] : ['', paint('bold', 'Examples'), ...row.examples.map((line) => `  ${line}`)]),
    ...refHint(row),
  ].join('\n')

export const overview = (paint: Paint, group?: string): string => {
  const rows = commands.filter(
    ({ hidden, name }) => hidden !== true && (group === undefined || name.startsWith(`${group} `)),
  )
  const longest = Math.max(...rows.map(({ name }) => name.length))
  return [
    `${paint('bold', `coppice ${group ?? ''}`.trim())}: an isolated git environment for every piece of work`,
    '',
    ...rows.map(({ name, summary }) => `  ${paint('cyan', name.padEnd(longest))}  ${summary}`),
    ...optionsOf('Everywhere', everywhere, paint),
    '',
    paint('bold', 'Start here'),
    '  coppice worktree create --issue 42      in any git repository',
    '  coppice <command> --help                options and examples of one command',
    '',
    'Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused for safety.',
  ].join('\n')
}

const optionsOf = (title: string, options: Readonly<Record<string, OptionRow>>, paint: Paint): string[] => {
  const rows = Object.entries(options).map(
    ([name, { value, summary, short }]) =>
      [
        `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`,
        summary,
      ] as const,
  )
  if (rows.length === 0) return []
  const longest = Math.max(...rows.map(([name]) => name.length))
  return ['', paint('bold', title), ...rows.map(([name, summary]) => `  ${name.padEnd(longest)}  ${summary}`)]
}

const refHint = ({ usage }: CommandRow): string[] =>
  usage.includes('ref>') || usage.includes('[ref]')
    ? ['', '<ref> is an id, a branch, a path, or a work such as issue-42, pr-99 or task-add-dark-mode.']
    : []

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
