import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { unlessMissing, unlessMissingSync } from '../../domain/missing.ts'
import { listDirectory } from '../../process/files/list-directory.ts'
import type { IsolationContext } from '../context.ts'
import { allProviders } from '../provider-of.ts'
import type { Identified } from '../provider.ts'

export type LostEnvironment = Identified & {
  /** The provider that serves it. */
  readonly provider: string
  /** The name of its codebase before the loss. */
  readonly codebase: string
}

/** Finds our checkouts in the managed directory that have no row because the database was lost. Starts no process. */
export const findLost = async (
  context: IsolationContext,
  isWanted: (found: Identified) => boolean,
): Promise<readonly LostEnvironment[]> => {
  const { store, worktreesBase } = context
  const lost: LostEnvironment[] = []
  const root = unlessMissingSync(() => realpathSync(worktreesBase))
  if (root === undefined) return []
  for (const codebase of await directoriesIn(root)) {
    for (const name of await directoriesIn(join(root, codebase))) {
      for (const provider of await allProviders(context)) {
        const found = await provider.identify(context, join(root, codebase, name)).catch(() => undefined)
        if (found === undefined || !isWanted(found)) continue
        if ((await store.environments.get(found.id)) !== undefined) continue
        lost.push({ ...found, provider: provider.name, codebase })
      }
    }
  }
  return lost
}

/** Skips the trash and the spares, whose names begin with a dot. */
const directoriesIn = async (path: string): Promise<readonly string[]> =>
  ((await unlessMissing(listDirectory(Buffer.from(path)))) ?? [])
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => Buffer.from(name, 'latin1').toString('utf8'))
    .filter((name) => !name.startsWith('.'))
    .toSorted()
