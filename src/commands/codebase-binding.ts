import type { Codebase } from '../domain/environment.ts'
import type { IsolationContext } from '../isolation/context.ts'
import type { Conversation } from '../store/store.ts'

/** The conversation's current or former codebase. */
export type CodebaseBinding = { readonly kind: 'none' } | KnownCodebase | GoneCodebase

type KnownCodebase = { readonly kind: 'known'; readonly codebase: Codebase }

export type GoneCodebase = {
  readonly kind: 'gone'
  /** Undefined if unregistered by a version that didn't record names. */
  readonly name: string | undefined
  readonly why: 'unregistered' | 'other-host'
}

export const codebaseBinding = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  { codebaseId, formerCodebase }: Pick<Conversation, 'codebaseId' | 'formerCodebase'>,
): Promise<CodebaseBinding> => {
  const id = codebaseId ?? formerCodebase?.id
  if (id === undefined) return { kind: 'none' }
  const codebase = await store.codebases.get(id)
  // A repository that is registered again keeps its ID.
  if (codebase === undefined) return { kind: 'gone', name: formerCodebase?.name, why: 'unregistered' }
  // Paths are valid on one host only.
  return codebase.host === host ? { kind: 'known', codebase } : { kind: 'gone', name: codebase.name, why: 'other-host' }
}

export const goneBecause = ({ why }: Pick<GoneCodebase, 'why'>): string =>
  why === 'unregistered' ? 'no longer registered' : 'on another host'
