import type { IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import { diffStat, forkPoint } from '../git/diff-stat.ts'
import type { Tree } from '../git/door.ts'
import { readStatus } from '../git/status.ts'
import { baseOfEnvironment } from '../isolation/codebases/environment-base.ts'
import { presenceOf } from '../isolation/provider-of.ts'
import { counted } from '../domain/text/words.ts'
import { type Call, command } from './command.ts'
import { namedOrCurrent, followTarget, type Target, resolveTarget } from './target.ts'
import { environmentJson } from './views/json.ts'
import { aligned, code, type View } from './views/view.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type DiffResult = {
  readonly environment: IsolatedEnvironment
  readonly codebase: string
  readonly base: string
  readonly files: readonly ChangedFile[]
}

export type ChangedFile = {
  readonly path: string
  /** Lines; undefined for binary and untracked files. */
  readonly added: number | undefined
  readonly removed: number | undefined
  readonly state: 'committed' | 'uncommitted' | 'untracked'
}

/** All changes since base, committed or not. */
const run = async (call: Call): Promise<DiffResult> => {
  const place = await resolveTarget(call)
  const { context, codebase } = place
  const { signal } = call
  const environment = await followTarget(call, place, await namedOrCurrent(call, place, 'diff'))
  const tree = await treeOf(place, environment)
  const base = await baseOfEnvironment(context, codebase, environment)
  const from = (await forkPoint(context.git, tree, base.sha, { signal })) ?? base.sha
  const [stats, status] = await Promise.all([
    diffStat(context.git, tree, from, { signal }),
    readStatus(context.git, tree, { signal }),
  ])
  const uncommitted = new Set([...status.changed, ...status.unmerged].map(({ path }) => path))
  const files = [
    ...stats.map((file) => ({ ...file, state: uncommitted.has(file.path) ? 'uncommitted' : 'committed' }) as const),
    ...status.untracked.map(
      ({ path }) => ({ path, added: undefined, removed: undefined, state: 'untracked' }) as const,
    ),
  ]
  return { environment, codebase: codebase.name, base: base.name, files }
}

const treeOf = async ({ context, codebase }: Target, environment: IsolatedEnvironment): Promise<Tree> => {
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state === 'present') return presence.tree
  throw new AppError(
    'not-found',
    presence.state === 'missing' ? `${environment.path} doesn't exist` : `${environment.branch}: ${presence.detail}`,
    { remedy: remedy`run ${coppice('worktree list')} to see its status` },
  )
}

/** Nobody reads more in a chat. */
const mostFiles = 50

const toText = ({ environment, base, files }: DiffResult, view: View): string => {
  const branch = code(environment.branch, view)
  if (files.length === 0) return `${branch}: no changes since ${code(base, view)}.`
  const sum = (key: 'added' | 'removed'): number => files.reduce((total, file) => total + (file[key] ?? 0), 0)
  const rows = files
    .slice(0, mostFiles)
    .map(({ path, added, removed, state }) => [
      { text: sign('+', added), style: 'green' as const },
      { text: sign('-', removed), style: 'red' as const },
      { text: path },
      { text: state === 'committed' ? '' : state, style: 'yellow' as const },
    ])
  return [
    `${branch}: ${counted(files.length, 'file')} changed since ${code(base, view)}, +${sum('added')} -${sum('removed')}`,
    aligned(rows, view),
    ...(files.length > mostFiles ? [`… and ${counted(files.length - mostFiles, 'more file', 'more files')}`] : []),
  ].join('\n')
}

const sign = (mark: string, lines: number | undefined): string => (lines === undefined ? '' : `${mark}${lines}`)

export const diff = command<DiffResult>({
  run,
  toText,
  toJson: ({ environment, codebase, base, files }) => ({
    environment: environmentJson(environment, () => codebase),
    base,
    files: files.map(({ path, added, removed, state }) => ({
      path,
      added: added ?? null,
      removed: removed ?? null,
      state,
    })),
  }),
})
