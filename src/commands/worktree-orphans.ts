import type { GitWorktree } from '../isolation/provider.ts'
import { gitWorktrees } from '../isolation/provider-of.ts'
import { workLabel } from '../domain/work.ts'
import { type Call, command } from './command.ts'
import { resolveTarget } from './target.ts'
import { lastCommand, type Cell, fittedTable, tilde, type View } from './views/view.ts'

export type OrphansResult = { readonly codebase: string; readonly worktrees: readonly GitWorktree[] }

const run = async (call: Call): Promise<OrphansResult> => {
  const { context, codebase } = await resolveTarget(call)
  return { codebase: codebase.name, worktrees: await gitWorktrees(context, codebase) }
}

const toText = ({ codebase, worktrees }: OrphansResult, view: View): string => {
  const hasOrphans = worktrees.some(({ tracked }) => tracked === undefined)
  const rows = worktrees.map((one) => rowOf(one, view))
  // The branch is never cut: `adopt` takes it.
  const { text, dropped } = fittedTable(['BRANCH', 'TRACKED AS', 'NOTE', 'PATH'], rows, view, {
    drop: ['PATH'],
    cut: ['TRACKED AS'],
  })
  const isWithoutPaths = dropped.includes('PATH')
  const adopt = view.commandText(`worktree adopt ${view.chat === true || isWithoutPaths ? '<branch>' : '<path>'}`)
  return [
    text,
    ...(isWithoutPaths && view.chat !== true ? [`Paths: ${view.commandText('worktree orphans --json')}`] : []),
    hasOrphans ? `Track one: ${lastCommand(adopt, view)}` : `Coppice tracks every worktree of ${codebase}.`,
  ].join('\n')
}

const rowOf = ({ path, branch, locked, missing, otherHome, tracked }: GitWorktree, view: View): Cell[] => [
  { text: branch ?? '(no branch)', style: 'bold' },
  tracked === undefined ? { text: 'not tracked', style: 'yellow' } : { text: trackedText(tracked) },
  {
    text: [
      ...(missing === true ? ['directory is gone'] : []),
      ...(otherHome === undefined ? [] : ["another home's"]),
      ...(locked === undefined ? [] : ['locked']),
    ].join(', '),
  },
  { text: tilde(path, view) },
]

const trackedText = (tracked: NonNullable<GitWorktree['tracked']>): string => {
  switch (tracked.as) {
    case 'environment':
      return `${workLabel(tracked.environment.work)}${tracked.environment.owned ? '' : ' (adopted)'}`
    case 'main':
      return '(main working tree)'
    case 'spare':
      return '(spare)'
    case 'copy':
      return "(another repository's)"
    case 'broken':
      return '(broken)'
  }
}

export const worktreeOrphans = command<OrphansResult>({
  run,
  toText,
  toJson: ({ worktrees }) =>
    worktrees.map(({ path, branch, locked, missing, tracked }) => ({
      path,
      branch: branch ?? null,
      locked: locked !== undefined,
      missing: missing === true,
      ours: tracked?.as === 'environment' || tracked?.as === 'spare',
      main: tracked?.as === 'main',
      environment: tracked?.as === 'environment' ? tracked.environment.id : null,
    })),
})
