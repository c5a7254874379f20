import { aligned, ago, printable, tilde, type View } from '../../commands/views/view.ts'
import type { Advice, CommandFile, VariableUse } from '../../conversations/import-archon/advice.ts'
import type {
  ImportedEnvironment,
  ImportedSettings,
  ImportKind,
  ImportReport,
  OverLimit,
} from '../../conversations/import-archon/report.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { counted } from '../../domain/text/words.ts'
import { workLabel } from '../../domain/work.ts'

export const importText = (report: ImportReport, view: View): string => {
  const { dryRun, environments, handedOver, settings, overLimit, advice, leftOut } = report
  const taken = sum(report, 'taken')
  const known = sum(report, 'known')
  const head = dryRun ? 'Would import' : 'Imported'
  const owned = dryRun ? 'Would take over, and clean up from then on' : 'Taken over, to be cleaned up from now on'
  return [
    taken === '' ? 'Nothing new to import' : `${view.paint('green', head)} ${taken}`,
    ...worktreeRows(environments, view),
    ...settings.map((one) => `  ${settingsText(one)}`),
    ...(handedOver.length === 0 ? [] : [`${view.paint('green', owned)}:`, ...worktreeRows(handedOver, view)]),
    ...(known === '' ? [] : [`Already imported: ${known}`]),
    ...(leftOut.length === 0 ? [] : [view.paint('yellow', `Skipped ${leftOut.length}:`)]),
    ...leftOut.map(({ kind, name, reason }) => `  ${words[kind]} ${printable(name)}: ${printable(reason)}`),
    ...fateOf(environments, dryRun),
    ...overLimit.map((over) => overLimitText(over, dryRun)),
    ...(advice.length === 0
      ? []
      : [view.paint('yellow', 'To do by hand:'), ...advice.flatMap(itemsOf).flatMap(itemLines)]),
  ].join('\n')
}

const kinds: readonly ImportKind[] = ['codebase', 'environment', 'conversation', 'session']

const words: Readonly<Record<ImportKind, string>> = {
  codebase: 'repository',
  environment: 'worktree',
  conversation: 'conversation',
  session: 'session',
}

const sum = ({ counts }: ImportReport, key: 'taken' | 'known'): string => {
  const parts = kinds.flatMap((kind) => (counts[kind][key] > 0 ? [countedKind(counts[kind][key], kind)] : []))
  return parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}

const countedKind = (n: number, kind: ImportKind): string =>
  counted(n, words[kind], kind === 'codebase' ? 'repositories' : undefined)

const worktreeRows = (environments: readonly ImportedEnvironment[], view: View): string[] => {
  const rows = environments.map(({ codebase, work, aliases, branch, path, lastActivityAt, owned, relinked }) => [
    { text: `  ${printable(branch)}`, style: 'bold' as const },
    {
      text: [work, ...aliases.filter(({ type }) => type !== 'task')].map((one) => printable(workLabel(one))).join(', '),
    },
    { text: codebase },
    { text: `used ${ago(lastActivityAt, view.now)}` },
    { text: [...(owned ? ['own'] : []), ...(relinked ? ['relinked'] : [])].join(', ') },
    { text: printable(tilde(path, view)), style: 'dim' as const },
  ])
  return rows.length === 0 ? [] : [aligned(rows, view)]
}

const settingsText = ({ codebase, base, agent, github }: ImportedSettings): string => {
  const parts = [
    ...(base === undefined ? [] : [`base branch ${printable(base)}`]),
    ...(agent === undefined ? [] : [`agent ${agent}`]),
    ...(github === undefined ? [] : [`GitHub repository ${github}`]),
  ]
  return `${codebase}: ${parts.join(', ')}`
}

const fateOf = (environments: readonly ImportedEnvironment[], dryRun: boolean): string[] => {
  if (dryRun || environments.length === 0) return []
  const own = environments.filter(({ owned }) => owned).length
  if (own === environments.length)
    return ['Coppice removes these worktrees, like its own, once they are merged or stale.']
  const which = own === 0 ? 'these worktrees' : 'the others'
  const first = own === 0 ? [] : ['Coppice removes the worktrees marked "own" once they are merged or stale.']
  return [...first, `Coppice never deletes ${which}: removing one only stops tracking it.`]
}

/** `before`: nothing has been imported yet. */
export const overLimitText = ({ codebase, worktrees, limit, ownable }: OverLimit, before: boolean): string =>
  [
    `${codebase} ${before ? 'will have' : 'has'} ${counted(worktrees, 'worktree')}, and the limit is ${limit}: you can't create new ones until ${worktrees - limit + 1} ${worktrees === limit ? 'is' : 'are'} removed.`,
    ...(ownable === 0
      ? []
      : [
          `With --own, Coppice takes over ${counted(ownable, 'worktree')} that Archon made, and removes those that are merged or stale.`,
        ]),
    'To raise the limit, set MAX_WORKTREES_PER_CODEBASE.',
  ].join(' ')

/** Lines that belong together: what to do, then what to type. */
type Item = readonly string[]

const itemLines = ([first = '', ...more]: Item): string[] => {
  return [`  ${printable(first)}`, ...more.map((line) => `    ${printable(line)}`)]
}

const itemsOf = (advice: Advice): Item[] => {
  switch (advice.kind) {
    case 'commands':
      return commandItems(advice.codebase, advice.files)
    case 'repository-config':
      return [
        ...(advice.yaml.length === 0
          ? []
          : [[`${advice.codebase}: commit this as .coppice/config.yaml (from ${advice.file}):`, ...advice.yaml]]),
        ...unusedItems(`${advice.codebase}: ${advice.file}`, advice.unused),
      ]
    case 'home-config':
      return [
        ...(advice.yaml.length === 0
          ? []
          : [[`add this to Coppice's config.yaml (from ${advice.file}):`, ...advice.yaml]]),
        ...unusedItems(advice.file, advice.unused),
      ]
    case 'unreadable-config':
      return [[`couldn't read ${advice.file}: ${advice.why}`]]
    case 'base-missing':
      return [
        [
          `${advice.codebase}: Archon's base branch ${advice.branch} doesn't exist; set another with coppice codebase add <path> --base <branch>`,
        ],
      ]
    case 'unknown-agent':
      return [
        [
          `${advice.codebase}: Archon used ${advice.agent}, which Coppice doesn't support; choose an agent with coppice codebase add <path> --agent <name>`,
        ],
      ]
    case 'variable':
      return [[variableText(advice.name, advice.use)]]
    case 'allow-list':
      return [
        [
          `${advice.platform}: Archon answered everybody, Coppice only allowed users; list their IDs in ${advice.variable}, or set it to * for everybody`,
        ],
      ]
  }
}

const commandItems = (codebase: string, files: readonly CommandFile[]): Item[] => {
  const copies = files
    .filter(({ clash }) => !clash)
    .map(({ file, name }) => `cp ${shellWord(file)} ${shellWord(`.coppice/commands/${name}.md`)}`)
  const clashes = files
    .filter(({ clash }) => clash)
    .map(({ file, name }) => [`${codebase}: copy ${file} under another name, since /${name} is a command of Coppice's`])
  const positional = files.filter(({ positional: has }) => has).map(({ file }) => file)
  return [
    ...(copies.length === 0
      ? []
      : [
          [
            `${codebase}: to keep using ${counted(copies.length, 'command')} of Archon's, run this in the repository, and commit it:`,
            'mkdir -p .coppice/commands',
            ...copies,
          ],
        ]),
    ...clashes,
    ...(positional.length === 0
      ? []
      : [[`${codebase}: in the copies of ${positional.join(', ')}, replace $1, $2, … with $ARGUMENTS`]]),
  ]
}

const unusedItems = (file: string, unused: readonly string[]): Item[] =>
  unused.length === 0 ? [] : [[`${file}: Coppice has no setting for ${unused.join(', ')}`]]

const variableText = (name: string, use: VariableUse): string => {
  switch (use.kind) {
    case 'renamed':
      return `${name}: set ${use.to} instead`
    case 'content':
      return `${name}: set ${use.to} to the content of that file`
    case 'separate':
      return `${name}: Coppice uses ${use.to}. Don't set it to Archon's`
    case 'user-ids':
      return `${name}: replace names with numeric user IDs (gh api users/<name> --jq .id)`
    case 'login':
      return `${name}: run ${use.program} login instead`
    case 'option':
      return `${name}: use coppice serve ${shellWord(use.to)} instead`
    case 'no-platform':
      return `${name}: Coppice doesn't support ${use.platform}`
    case 'nothing':
      return `${name}: has no effect in Coppice`
  }
}
