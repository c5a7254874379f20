import type { IsolationContext, Provider } from '../context.ts'
import type { Providers } from '../provider.ts'
import { worktree } from './worktree/provider.ts'

/** Every isolation provider, by the name that rows and settings use. Most commands need only the default one. */
export const providers: Providers<IsolationContext> = new Map<string, () => Promise<Provider>>([
  ['worktree', async () => worktree],
  ['clone', async () => (await import('./clone/provider.ts')).clone],
])
