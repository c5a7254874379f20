import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { builtInFormulas, type DoneMode, doneModes, type Formula } from '../../domain/fleet/formula.ts'
import { autoModes } from '../../domain/fleet/pool.ts'
import { baseAndConfig } from '../../isolation/codebases/base-and-config.ts'
import { repositoryFormulas } from '../../isolation/codebases/formulas.ts'
import type { FleetContext } from '../context.ts'

/** The formula with this name: a built-in one, `auto`, or the repository's own at its base commit. */
export const chooseFormula = async (
  { isolation }: Pick<FleetContext, 'isolation'>,
  codebase: Codebase,
  wanted: string,
): Promise<Formula> => {
  const mode = wanted === 'auto' ? await firstPossible(isolation, codebase) : doneModes.find((one) => one === wanted)
  if (mode !== undefined) return { name: mode, steps: builtInFormulas[mode] }
  const { formulas, problems } = await repositoryFormulas(isolation, codebase)
  const problem = problems.get(wanted)
  if (problem !== undefined) throw problem
  const formula = formulas.get(wanted)
  if (formula !== undefined) return formula
  const known = [...doneModes, ...formulas.keys()].join(', ')
  throw new AppError('not-found', `unknown formula ${JSON.stringify(wanted.slice(0, 60))}`, {
    remedy: `choose one of: ${known}`,
  })
}

/** A push is always possible; without a remote, the branch stays in the repository. */
const firstPossible = async (isolation: FleetContext['isolation'], codebase: Codebase): Promise<DoneMode> => {
  for (const mode of autoModes) if (await isPossible(isolation, codebase, mode)) return mode
  return 'push'
}

const isPossible = async (
  isolation: FleetContext['isolation'],
  codebase: Codebase,
  mode: DoneMode,
): Promise<boolean> => {
  if (codebase.remote === undefined) return mode === 'push'
  switch (mode) {
    case 'pr':
      return codebase.remoteUrl !== undefined && (await isolation.forge?.repositoryAt(codebase.remoteUrl)) !== undefined
    case 'land':
      // It pushes to the base branch, so only where the repository says how.
      return (await baseAndConfig(isolation, codebase)).config.configuresLanding
    case 'push':
    case 'discard':
      return mode === 'push'
  }
}
