import { type Orphan } from '../isolation/provider.ts'
import { orphans } from '../isolation/provider-of.ts'
import { type Call, command } from './command.ts'
import { resolveTarget } from './target.ts'
import { table, tilde, type View } from './views/view.ts'

export type OrphansResult = { readonly codebase: string; readonly orphans: readonly Orphan[] }

const run = async (call: Call): Promise<OrphansResult> => {
  const { context, codebase } = await resolveTarget(call)
  return { codebase: codebase.name, orphans: await orphans(context, codebase) }
}

const toText = ({ codebase, orphans }: OrphansResult, view: View): string => {
  if (orphans.length === 0) return `Coppice tracks every worktree of ${codebase}.`
  const rows = orphans.map(({ path, branch, locked, missing, otherHome }) => [
    { text: branch ?? '(no branch)', style: 'bold' as const },
    {
      text: [
        ...(missing === true ? ['directory is gone'] : []),
        ...(otherHome === undefined ? [] : ["another home's"]),
        ...(locked === undefined ? [] : ['locked']),
      ].join(', '),
    },
    { text: tilde(path, view) },
  ])
  return [
    table(['BRANCH', 'NOTE', 'PATH'], rows, view),
    `Track one: ${view.commandText('worktree adopt <path>')}`,
  ].join('\n')
}

export const worktreeOrphans = command<OrphansResult>({
  run,
  toText,
  toJson: ({ orphans }) =>
    orphans.map(({ path, branch, locked, missing }) => ({
      path,
      branch: branch ?? null,
      locked: locked !== undefined,
      missing: missing === true,
    })),
})
