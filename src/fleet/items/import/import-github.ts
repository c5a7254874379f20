import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { priorityOfLabels } from '../../../domain/fleet/import/priority-label.ts'
import { titleAndBody, type WantedItem } from '../../../domain/fleet/import/wanted.ts'
import { defaultPriority, isSettled, type Item, maxBodyLength } from '../../../domain/fleet/item.ts'
import type { ForgeIssue, ForgeProblem, IssueQuery } from '../../../domain/forge/issues.ts'
import type { Work } from '../../../domain/work.ts'
import type { IsolationContext } from '../../../isolation/context.ts'
import { type ImportedItems, importItems } from './import-items.ts'

export type GithubImport = ImportedItems & {
  readonly outcome: 'imported'
  /** `owner/name` */
  readonly repository: string
  /** There are more issues than the query's limit. */
  readonly more: boolean
  /** Unfinished items whose issues were closed, deleted or moved. */
  readonly noLongerOpen: readonly { readonly item: Item; readonly there: 'closed' | 'gone' }[]
  /** Open items whose issues already have a worktree. */
  readonly elsewhere: readonly { readonly item: Item; readonly environment: IsolatedEnvironment }[]
  /** Unfinished items whose issues weren't checked; `problem` says why. */
  readonly unchecked: readonly Item[]
  readonly problem: ForgeProblem | undefined
}

export type GithubRequest = {
  readonly codebase: Codebase
  readonly query: IssueQuery
  readonly by: string
  readonly dryRun: boolean
  readonly signal?: AbortSignal | undefined
}

type Context = Pick<IsolationContext, 'store' | 'clock' | 'progress' | 'forge'>

/** Imports an item for each issue that the query finds. */
export const importGithub = async (context: Context, request: GithubRequest): Promise<GithubImport | ForgeProblem> => {
  const { store, clock, progress, forge } = context
  const { codebase, query, by, dryRun, signal } = request
  if (forge === undefined) return { outcome: 'no-forge' }
  progress('reading issues from GitHub')
  const found = await forge.issues(codebase, query, { signal })
  if (found.outcome !== 'found') return found
  const listed = new Map(found.issues.map((issue) => [issue.number, issue]))
  const others = await known(context, codebase, found.repository, (number) => !listed.has(number))
  const checks = await check(context, request, others)
  const issues = [...listed.values(), ...checks.issues]
  const wanted = [...listed.values(), ...checks.issues.filter(({ open }) => open)].map((issue) =>
    toWanted(found.repository, issue),
  )
  // Needed so that pull requests can say which issue they fix.
  if (codebase.github === undefined && !dryRun) await store.codebases.update(codebase.id, { github: found.repository })
  const imported = await importItems(store, { codebase, kind: 'github', wanted, by, at: clock(), dryRun })
  const isNew = new Set(imported.added.map(({ id }) => id))
  const isOpen = new Map(issues.map(({ number, open }) => [number, open]))
  const pending = (await known(context, codebase, found.repository, () => true)).filter(
    ({ item }) => !isNew.has(item.id),
  )
  const isUnchecked = new Set(checks.unchecked.map(({ id }) => id))
  return {
    ...imported,
    outcome: 'imported',
    repository: found.repository,
    more: found.more,
    noLongerOpen: pending.flatMap(({ item, number }) => {
      if (isUnchecked.has(item.id) || isOpen.get(number) === true) return []
      return [{ item, there: isOpen.has(number) ? ('closed' as const) : ('gone' as const) }]
    }),
    elsewhere: await workedOn(context, codebase, [...imported.added, ...pending.map(({ item }) => item)]),
    unchecked: checks.unchecked,
    problem: checks.problem,
  }
}

type Known = { readonly item: Item; readonly number: number }

/** Unfinished items that were imported from this repository. */
const known = async (
  { store }: Context,
  codebase: Codebase,
  repository: string,
  matches: (number: number) => boolean,
): Promise<readonly Known[]> =>
  (await store.items.fromSource(codebase.id, 'github')).flatMap((item) => {
    const { source, state } = item
    if (source?.kind !== 'github' || isSettled(state) || !matches(source.number)) return []
    const isThere = source.repository.toLowerCase() === repository.toLowerCase()
    return isThere ? [{ item, number: source.number }] : []
  })

/** Each check is a request. The rest is checked by later imports, when these items are finished. */
const MOST_CHECKS = 50

/** Reads issues that the query no longer returns: they were closed, or lost the label. */
const check = async (
  { forge, progress }: Context,
  { codebase, signal }: GithubRequest,
  others: readonly Known[],
): Promise<Pick<GithubImport, 'unchecked' | 'problem'> & { readonly issues: readonly ForgeIssue[] }> => {
  const [now, later] = [others.slice(0, MOST_CHECKS), others.slice(MOST_CHECKS)]
  const itemsOf = (some: readonly Known[]): readonly Item[] => some.map(({ item }) => item)
  if (now.length === 0 || forge === undefined) return { issues: [], unchecked: itemsOf(later), problem: undefined }
  progress('looking at issues that were imported before')
  const numbers = now.map(({ number }) => number)
  const answer = await forge.issuesNumbered(codebase, numbers, { signal })
  if (answer.outcome !== 'found') return { issues: [], unchecked: itemsOf(others), problem: answer }
  if (answer.problem === undefined) return { issues: answer.issues, unchecked: itemsOf(later), problem: undefined }
  // After a problem, an issue without an answer may be gone, or not have been requested.
  const found = new Set(answer.issues.map(({ number }) => number))
  const unknown = others.filter(({ number }) => !found.has(number))
  return { issues: answer.issues, unchecked: itemsOf(unknown), problem: answer.problem }
}

const toWanted = (repository: string, { number, title, body, labels }: ForgeIssue): WantedItem => {
  const text = body.slice(0, maxBodyLength).toWellFormed()
  return {
    source: { kind: 'github', repository, number },
    ...(titleAndBody(title, text) ?? { title: `Issue #${number}`, body: text }),
    priority: priorityOfLabels(labels) ?? defaultPriority,
    after: [],
  }
}

const workedOn = async (
  { store }: Context,
  codebase: Codebase,
  items: readonly Item[],
): Promise<GithubImport['elsewhere']> => {
  const live = await store.environments.live(codebase.id)
  const aliases = await store.environments.aliasesOf(live.map(({ id }) => id))
  const byNumber = new Map<string, IsolatedEnvironment>()
  for (const environment of live) {
    const works: readonly Work[] = [environment.work, ...(aliases.get(environment.id) ?? [])]
    for (const { type, id } of works) if (type === 'issue') byNumber.set(id, environment)
  }
  return items.flatMap((item) => {
    const { source, state } = item
    const environment = source?.kind === 'github' && state === 'open' ? byNumber.get(String(source.number)) : undefined
    return environment === undefined ? [] : [{ item, environment }]
  })
}
