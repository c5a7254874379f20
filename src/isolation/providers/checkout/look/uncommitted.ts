import type { UncommittedWork } from '../../../../domain/removal/uncommitted.ts'
import { halfDone } from '../../../../git/admin-dir.ts'
import { countChanges } from '../../../../git/count-changes.ts'
import type { CallOptions, Tree } from '../../../../git/door.ts'
import type { IsolationContext } from '../../../context.ts'
import { workIn } from './repository-work.ts'
import { lookIntoSubmodules } from './submodules.ts'
import { unpushedSubmodules } from './unreachable.ts'

/** For display: removal checks more. One process without submodules. */
export const uncommittedWork = async (
  context: Pick<IsolationContext, 'git'>,
  tree: Tree,
  { signal }: CallOptions = {},
): Promise<UncommittedWork> => {
  const { gitlinks, ...dirt } = await countChanges(context.git, tree, { signal })
  const { dirty, embedded } = await lookIntoSubmodules(context, tree, gitlinks)
  let submodules = dirty.length
  for (const repository of embedded) if ((await workIn(context, repository)) !== undefined) submodules += 1
  const unpushed = (await unpushedSubmodules(context, tree)).length
  return { ...dirt, halfDone: halfDone(tree.gitDir), submodules, unpushed }
}
