/** Isolation providers, from the least to the most separation. */
export const providerNames = ['worktree', 'clone'] as const
export type ProviderName = (typeof providerNames)[number]

/** A repository may ask for more separation than the home's configuration, never for less. */
export const stricter = (a: ProviderName, b: ProviderName): ProviderName =>
  providerNames.indexOf(a) >= providerNames.indexOf(b) ? a : b
