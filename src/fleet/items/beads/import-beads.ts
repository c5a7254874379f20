import type { Codebase } from '../../../domain/environment.ts'
import { AppError, UnusableFileError } from '../../../domain/errors.ts'
import type { BeadsProblem } from '../../../domain/fleet/import/beads-plan.ts'
import { type BeadsPlan, planBeads } from '../../../domain/fleet/import/beads-plan.ts'
import { isSettled, type Item } from '../../../domain/fleet/item.ts'
import { type Remedy, remedy, shell } from '../../../domain/remedy.ts'
import type { IsolationContext } from '../../../isolation/context.ts'
import { readUntrusted } from '../../../process/files/read-untrusted.ts'
import { type ImportedItems, importItems } from '../import/import-items.ts'
import { type LinesFrom, readIssueLines } from './issue-lines.ts'

export type BeadsImport = ImportedItems & {
  /** Unfinished items whose issues are closed, deleted or missing in beads. */
  readonly noLongerOpen: readonly { readonly item: Item; readonly there: 'closed' | 'gone' }[]
  /** `others`: lines that aren't issues. */
  readonly leftOut: BeadsPlan['leftOut'] & { readonly others: number }
}

export type BeadsRequest = {
  readonly codebase: Codebase
  readonly by: string
  readonly dryRun: boolean
}

type Context = Pick<IsolationContext, 'store' | 'clock' | 'progress'>

/** Imports a file that `bd export` wrote. Doesn't change the state of existing items. */
export const importBeadsFile = async (context: Context, path: string, request: BeadsRequest): Promise<BeadsImport> => {
  context.progress('reading issues')
  return (await importBeads(context, await readFile(path), fromFile(path), request)).imported
}

export const importBeads = async (
  { store, clock, progress }: Context,
  bytes: Buffer,
  from: LinesFrom,
  { codebase, by, dryRun }: BeadsRequest,
): Promise<{ readonly imported: BeadsImport; readonly plan: BeadsPlan }> => {
  const { issues, others } = await readIssueLines(bytes, from)
  const plan = planBeads(issues, clock())
  if ('problem' in plan) throw unusable(plan.problem, from)
  progress('importing issues')
  const request = { codebase, kind: 'beads', wanted: plan.wanted, by, at: clock(), dryRun } as const
  const items = await importItems(store, request)
  const noLongerOpen = (await store.items.fromSource(codebase.id, 'beads')).flatMap((item) => {
    const there = item.source?.kind === 'beads' ? plan.there.get(item.source.id) : undefined
    if (isSettled(item.state) || (there !== undefined && there !== 'done' && there !== 'gone')) return []
    return [{ item, there: there === 'done' ? ('closed' as const) : ('gone' as const) }]
  })
  return { imported: { ...items, noLongerOpen, leftOut: { ...plan.leftOut, others } }, plan }
}

const MOST_BYTES = 200 * 1024 * 1024

/** Follows links, because a person chose the file. */
const readFile = async (path: string): Promise<Buffer> => {
  try {
    const bytes = await readUntrusted(path, { followLink: true, maxBytes: MOST_BYTES })
    if (bytes !== undefined) return bytes
  } catch (error) {
    if (!(error instanceof UnusableFileError)) throw error
    throw new AppError(error.code, error.message, { cause: error, remedy: exportAgain })
  }
  throw new AppError('not-found', `no such file: ${path}`, { remedy: exportAgain })
}

const exportAgain: Remedy = remedy`write one with ${shell('bd export -o issues.jsonl')}`

const fromFile = (path: string): LinesFrom => ({
  name: path,
  code: 'unusable-file',
  remedy: remedy`nothing was imported. Correct the file, or write it again: ${shell('bd export -o issues.jsonl')}`,
})

const unusable = (problem: BeadsProblem, { name, code, remedy: todo }: LinesFrom): AppError => {
  const why =
    problem.kind === 'circle'
      ? `these are parents of each other: ${[...problem.ids, problem.ids[0]].slice(0, 20).join(' → ')}`
      : `line ${problem.issue.line}: ${problem.issue.id} waits for more than ${problem.limit} issues`
  return new AppError(code, `${name}, ${why}`, { remedy: todo })
}
