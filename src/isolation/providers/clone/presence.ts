import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { readToken } from '../../../git/admin-dir.ts'
import { cloneAt } from '../../../git/borrowing-clone.ts'
import type { Presence } from '../../provider.ts'
import { lstatIfThere } from '../../../process/files/lstat-if-there.ts'

/** By the token in its own git directory. Starts no program. */
export const presenceOf = async (_codebase: Codebase, environment: IsolatedEnvironment): Promise<Presence> => {
  try {
    return await look(environment)
  } catch (error) {
    return { state: 'cannot-tell', detail: error instanceof Error ? error.message : String(error) }
  }
}

const look = async ({ path, id }: IsolatedEnvironment): Promise<Presence> => {
  if (lstatIfThere(path) === undefined) return { state: 'missing' }
  const tree = cloneAt(path)
  // Not a link: its target isn't the clone's own.
  if (lstatIfThere(tree.gitDir)?.isDirectory() !== true) {
    return { state: 'not-ours', detail: `${path} exists but is no longer a clone` }
  }
  if ((await readToken(tree.gitDir)) !== id) {
    return { state: 'not-ours', detail: `${path} was recreated by someone else` }
  }
  return { state: 'present', tree }
}
