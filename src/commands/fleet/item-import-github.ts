import { AppError } from '../../domain/errors.ts'
import type { ForgeProblem, IssueStateFilter } from '../../domain/forge/issues.ts'
import { issueStates } from '../../domain/forge/issues.ts'
import { type GithubImport, importGithub } from '../../fleet/items/import/import-github.ts'
import { type Call, command, isSet, listOf, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { assertWholeServer, resolveTarget } from '../target.ts'
import { forgeProblem } from '../views/forge-problem.ts'
import { importedJson, importedText, itemName, notesText, shortJson } from '../views/item-imports.ts'
import { placeJson } from '../views/items.ts'
import { lastCommand, type View } from '../views/view.ts'
import { changerOf } from './scope.ts'

type Result = { readonly imported: GithubImport; readonly dryRun: boolean; readonly now: number }

const run = async (call: Call): Promise<Result> => {
  const { values, signal } = call
  if (call.chat !== undefined) assertWholeServer(call.chat, '/item import github')
  const query = { labels: labelsOf(call), state: stateOf(call), limit: limitOf(call) }
  const dryRun = isSet(values, 'dry-run')
  const { codebase, context } = await resolveTarget(call)
  const by = changerOf(call, { isolation: context })
  const imported = await importGithub(context, { codebase, query, by, dryRun, signal })
  if (imported.outcome !== 'imported') throw failed(imported, context.clock())
  return { imported, dryRun, now: context.clock() }
}

const labelsOf = ({ values }: Call): readonly string[] => {
  const labels = listOf(values, 'label').map((label) => label.trim())
  if (labels.includes('')) throw usage('--label is empty', 'usage: --label <name>')
  return labels
}

const stateOf = ({ values }: Call): IssueStateFilter => {
  const given = textOf(values, 'state') ?? 'open'
  const state = issueStates.find((one) => one === given)
  if (state !== undefined) return state
  throw usage(`invalid --state ${JSON.stringify(given)}`, `usage: --state <${issueStates.join(', ')}>`)
}

const limitOf = ({ values }: Call): number | undefined => {
  const given = textOf(values, 'limit')
  if (given === undefined || /^[1-9]\d{0,5}$/.test(given)) return given === undefined ? undefined : Number(given)
  throw usage(`invalid --limit ${JSON.stringify(given)}`, 'usage: --limit <number of issues>')
}

const codes: Readonly<Record<ForgeProblem['outcome'], AppError['code']>> = {
  'no-forge': 'not-found',
  refused: 'not-found',
  limited: 'remote-unreachable',
  unreachable: 'remote-unreachable',
}

const failed = (problem: ForgeProblem, now: number): AppError => {
  const { what, todo } = forgeProblem(problem, now)
  return new AppError(codes[problem.outcome], what, { remedy: todo })
}

const toText = ({ imported, dryRun, now }: Result, view: View): string => {
  const { repository, noLongerOpen, elsewhere, unchecked, problem, more } = imported
  return [
    importedText(imported, { from: repository, dryRun }, view),
    ...notesText(
      'Already worked on:',
      elsewhere.map(({ item, environment }) => `${itemName(item)}: its issue has the worktree ${environment.branch}`),
      view,
    ),
    ...notesText(
      'No longer open on GitHub:',
      noLongerOpen.map(({ item, there }) => `${itemName(item)}: ${there === 'closed' ? 'closed' : 'deleted or moved'}`),
      view,
    ),
    ...(noLongerOpen.length === 0
      ? []
      : [`Close an item: ${lastCommand(view.commandText('item close <item>'), view)}`]),
    ...(unchecked.length === 0 ? [] : [uncheckedText(unchecked.length, problem, now)]),
    ...(more ? ['There are more issues than the limit.'] : []),
  ].join('\n')
}

const uncheckedText = (n: number, problem: ForgeProblem | undefined, now: number): string => {
  const why = problem === undefined ? 'too many at once' : forgeProblem(problem, now).what
  return `${n} earlier ${n === 1 ? 'item was' : 'items were'} not checked on GitHub: ${why}.`
}

export const itemImportGithub = command<Result>({
  run,
  toText,
  toJson: ({ imported, dryRun, now }) => ({
    source: { kind: 'github', repository: imported.repository },
    dryRun,
    ...importedJson(imported),
    noLongerOpen: imported.noLongerOpen.map(({ item, there }) => ({ ...shortJson(item), there })),
    elsewhere: imported.elsewhere.map(({ item, environment }) => ({
      ...shortJson(item),
      environment: placeJson(environment),
    })),
    unchecked: imported.unchecked.map(({ id }) => id),
    problem: imported.problem === undefined ? null : forgeProblem(imported.problem, now).what,
    more: imported.more,
  }),
})
