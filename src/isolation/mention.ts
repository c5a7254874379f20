import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { isNumbered } from '../domain/work.ts'
import { commitsMentioning } from '../git/history.ts'
import { baseAndConfig } from './base-and-config.ts'
import type { IsolationContext } from './context.ts'
import { repoOf } from './worktree/plan.ts'

/** A numbered work that is new: one look for commits on other environments' branches that already speak of it. */
export const offerMention = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
): Promise<string[]> => {
  const { work } = environment
  if (!isNumbered(work.type)) return []
  const others = (await context.store.environments.live(codebase.id)).filter(
    (other) => other.id !== environment.id && other.status === 'active',
  )
  if (others.length === 0) return []
  try {
    const branches = others.map((other) => other.branch)
    const { base } = await baseAndConfig(context, codebase)
    const found = await commitsMentioning(context.git, repoOf(codebase), branches, `#${work.id}`, {
      except: [base.sha],
    })
    const [first] = found
    return first === undefined
      ? []
      : [`Commits on \`${first}\` mention #${work.id}: \`/worktree link ${first}\` to share it`]
  } catch (error) {
    // An offer, not a need: the environment is made whether or not history can be read.
    context.log.warn('history could not be searched for mentions', { error: String(error) })
    return []
  }
}
