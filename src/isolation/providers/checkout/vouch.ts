import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { IsolationBlockedError } from '../../../domain/errors.ts'
import { isTrusted } from '../../../domain/trust.ts'
import type { CallOptions } from '../../../git/door.ts'
import { baseAndConfig } from '../../codebases/base-and-config.ts'
import type { IsolationContext } from '../../context.ts'
import { acquireLease } from '../../lease.ts'
import { presenceOf } from '../../served-by.ts'
import type { Vouched } from '../../provider.ts'
import { provisionEnvironment, type Provisioned } from './provision/provision.ts'

/**
 * A person at the terminal says that they trust what is in a worktree now. It gets what it was denied when it was made;
 * an adopted one has nothing of ours in it and only becomes trusted. The trust is recorded last: a setup that fails, or a
 * crash, leaves it untrusted. And while the lease holds: once that is released, a pull request that moved can bring a
 * commit that nobody has looked at.
 */
export const vouchFor = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { signal }: CallOptions = {},
): Promise<Vouched> => {
  if (isTrusted(environment.trust)) return { wasTrusted: true, ...nothing }
  const record = (): Promise<void> => context.store.environments.update(environment.id, { trust: 'vouched' })
  if (!environment.owned) {
    await record()
    return { wasTrusted: false, ...nothing }
  }
  const vouched: IsolatedEnvironment = { ...environment, trust: 'vouched' }
  return { wasTrusted: false, ...(await provision(context, codebase, vouched, { signal, record })) }
}

const nothing: Provisioned = { copied: 0, linked: 0, ranSetup: false, notices: [] }

const provision = async (
  context: IsolationContext,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { signal, record }: CallOptions & { readonly record: () => Promise<void> },
): Promise<Provisioned> => {
  const presence = await presenceOf(context, codebase, environment)
  if (presence.state !== 'present') {
    throw new IsolationBlockedError(`couldn't set up ${environment.branch}: its worktree isn't there`, {
      remedy: 'run `coppice doctor` for what can be done',
    })
  }
  const { config } = await baseAndConfig(context, codebase)
  const purpose = `setting up ${environment.branch}`
  const lease = await acquireLease(context, codebase, environment, { purpose, ...(signal && { signal }) })
  try {
    const { tree } = presence
    const provisioned = await provisionEnvironment(context, { codebase, environment, tree, config, signal })
    await record()
    return provisioned
  } finally {
    await lease.release()
  }
}
