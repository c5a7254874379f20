import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { IsolationContext } from '../context.ts'
import { leaseHolders } from '../lease.ts'
import { releaseRow } from '../release.ts'
import { findInTrash } from '../trash/trash.ts'

/** A directory that stays but is no longer tracked. */
export type KeptDirectory = { readonly branch: string | undefined; readonly path: string }

/**
 * Stops tracking a codebase whose repository is gone. We can't ask git about its worktrees, so they aren't judged or
 * touched: their files stay, and so does what the home has saved of removed ones.
 */
export const releaseCodebase = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self' | 'onEnvironmentLost'>,
  codebase: Codebase,
): Promise<KeptDirectory[]> => {
  const live = await context.store.environments.live(codebase.id)
  await refuseInUse(context, codebase, live)
  const spares = await context.store.spares.list(codebase.id)
  await context.store.transaction(async (store) => {
    for (const environment of live) {
      await releaseRow(context, store, environment, { trigger: 'command' }, { kind: 'repository-gone' })
    }
    for (const spare of spares) await store.spares.claim(spare.id)
    for (const entry of await store.journal.open(context.host, codebase.id)) await store.journal.end(entry.id)
    await store.codebases.remove(codebase.id)
  })
  const kept = [
    ...(await Promise.all(live.map(async (one) => ({ branch: one.branch, path: await whereIs(one) })))),
    ...spares.map(({ path }) => ({ branch: undefined, path })),
  ]
  return kept.filter(({ path }) => exists(path))
}

const refuseInUse = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self'>,
  { name }: Codebase,
  live: readonly IsolatedEnvironment[],
): Promise<void> => {
  const ids = live.map(({ id }) => id)
  const holders = [...(await leaseHolders(context, ids)).values()].flat()
  const user = holders.find(({ liveness }) => liveness !== 'dead')
  if (user === undefined) return
  const { purpose, holder } = user.lease
  throw new AppError('codebase-in-use', `a worktree of ${name} is in use: ${purpose} (process ${holder.pid})`, {
    remedy: 'wait until it is done, or stop it first',
  })
}

/** An interrupted removal may have left the directory in the trash. */
const whereIs = async ({ path, id }: IsolatedEnvironment): Promise<string> => {
  return (await findInTrash(dirname(dirname(path)), path, id).catch(() => undefined)) ?? path
}

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
