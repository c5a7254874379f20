import type { IsolationContext, Provider } from '../context.ts'
import type { Providers } from '../provider.ts'

/** Every isolation provider, by the name that rows and settings use. Each is loaded when it is first needed. */
export const providers: Providers<IsolationContext> = new Map<string, () => Promise<Provider>>([
  ['worktree', async () => (await import('./worktree/provider.ts')).worktree],
  ['clone', async () => (await import('./clone/provider.ts')).clone],
])
