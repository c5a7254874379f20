import { createHash } from 'node:crypto'
import type { RepoConfig } from '../domain/config/repository.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { Notice } from '../domain/notice.ts'
import { AppError } from '../domain/errors.ts'
import { isTrusted, type Trust } from '../domain/trust.ts'
import type { IsolationContext } from './context.ts'
import { leaseHolders } from './lease.ts'
import { providerOf } from './provider-of.ts'

export type Permission =
  | { readonly run: true }
  /** No notice: nothing to run. */
  | { readonly run: false; readonly notice: Notice | undefined }

type Approved = Pick<RepoConfig, 'setup' | 'teardown' | 'allowForks'>

/**
 * Setup and teardown are code, and `allowForks` decides whose files they run on. An approval covers one content; any
 * change asks again.
 */
export const scriptsDigest = ({ setup, teardown, allowForks }: Approved): string =>
  createHash('sha256')
    // Omit a false `allowForks`, so that approvals from before it existed stay valid.
    .update(JSON.stringify(allowForks ? { setup, teardown, allowForks } : { setup, teardown }))
    .digest('hex')

/**
 * Whether the repository's own commands may run in a worktree, and whether an untrusted one gets anything that a
 * trusted one gets. Asks a person at most once, and only if there is one.
 */
export const mayRunScripts = async (
  context: Pick<IsolationContext, 'store' | 'approve'>,
  codebase: Codebase,
  config: RepoConfig,
  trust: Trust,
): Promise<Permission> => {
  const hasScripts = config.setup.length + config.teardown.length > 0
  const forFork = !isTrusted(trust)
  if (!hasScripts && !(forFork && config.allowForks)) return { run: false, notice: undefined }
  // The commands are base's own, but what they run (`npm ci`, `make`) is the fork's.
  if (forFork && !config.allowForks) {
    return { run: false, notice: { kind: 'scripts-not-for-forks', codebase: codebase.name } }
  }
  const digest = scriptsDigest(config)
  // Read again: somebody may have approved it since.
  const current = await context.store.codebases.get(codebase.id)
  if (current?.trustedConfig === digest) return { run: true }
  const commands = [...config.setup, ...config.teardown]
  const approved = await context.approve?.({ codebase: codebase.name, commands, forks: config.allowForks })
  if (approved !== true) return { run: false, notice: { kind: 'scripts-not-approved', codebase: codebase.name } }
  await context.store.codebases.update(codebase.id, { trustedConfig: digest })
  return { run: true }
}

/**
 * Whether a run that holds the lease may be trusted. Checked again because the previous run may have moved the
 * worktree. An untrusted run can change anything in it, so once one starts, the vouching lapses.
 */
export const trustRun = async (
  context: IsolationContext,
  codebase: Codebase,
  { id, branch }: IsolatedEnvironment,
  { trusted, signal }: { readonly trusted: boolean; readonly signal: AbortSignal },
): Promise<boolean> => {
  // Nobody vouches for the repository's own, whose trust never changes.
  if ((await context.store.environments.get(id))?.trust === 'own') return trusted
  // Before the row is read again: the trust is recorded before its lease ends.
  await assertNotBeingTrusted(context, { id, branch })
  const environment = await context.store.environments.get(id)
  if (environment === undefined || !isTrusted(environment.trust)) return false
  const provider = await providerOf(context, environment)
  if (trusted && (await provider.isVouched(context, codebase, environment, { signal }))) return true
  await context.store.environments.update(id, { trust: 'lapsed', vouchedSha: undefined, vouchedLog: undefined })
  return false
}

/** The purpose of the lease that `worktree trust` holds while setup runs. */
export const trustPurpose = 'setting up a trusted worktree'

/** A run would change what is being vouched for. Each holds its lease first, so one of them sees the other. */
const assertNotBeingTrusted = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self'>,
  { id, branch }: Pick<IsolatedEnvironment, 'id' | 'branch'>,
): Promise<void> => {
  const leases = (await leaseHolders(context, [id])).get(id) ?? []
  const other = leases.find(({ lease, liveness }) => liveness !== 'dead' && lease.purpose === trustPurpose)
  if (other === undefined) return
  throw new AppError('busy', `another command is trusting ${branch} (process ${other.lease.holder.pid})`, {
    remedy: 'try again when it has finished',
  })
}
