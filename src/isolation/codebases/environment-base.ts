import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError } from '../../domain/errors.ts'
import type { IsolationContext } from '../context.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { Base } from './base-branch.ts'

/** The base that an environment was created from; the codebase's if that is gone. */
export const baseOfEnvironment = async (
  context: IsolationContext,
  codebase: Codebase,
  { baseBranch }: Pick<IsolatedEnvironment, 'baseBranch'>,
): Promise<Base> => {
  try {
    return (await baseAndConfig(context, codebase, baseBranch)).base
  } catch (error) {
    if (baseBranch === undefined || !isAppError(error, 'base-not-found')) throw error
    return (await baseAndConfig(context, codebase)).base
  }
}
