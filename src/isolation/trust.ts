import { createHash } from 'node:crypto'
import type { RepoConfig } from '../domain/config.ts'
import type { Codebase } from '../domain/environment.ts'
import type { IsolationContext } from './context.ts'

export type Permission =
  | { readonly run: true }
  /** No notice: there is nothing to run. */
  | { readonly run: false; readonly notice: string | undefined }

/** Setup and teardown are code: one approval is for one content, and any change asks again. */
export const scriptsDigest = ({ setup, teardown }: Pick<RepoConfig, 'setup' | 'teardown'>): string =>
  createHash('sha256').update(JSON.stringify({ setup, teardown })).digest('hex')

/** Whether the repository's own commands may run. Asks a person at most once, and only where there is one. */
export const mayRunScripts = async (
  context: Pick<IsolationContext, 'store' | 'approve'>,
  codebase: Codebase,
  config: RepoConfig,
  { isFork }: { readonly isFork: boolean },
): Promise<Permission> => {
  if (config.setup.length === 0 && config.teardown.length === 0) return { run: false, notice: undefined }
  // The commands are base's own, but what they run (`npm ci`, `make`) is the fork's.
  if (isFork && !config.allowForks) {
    return {
      run: false,
      notice: `Setup and teardown do not run in the tree of a fork (worktree.allowForks of ${codebase.name} is not set).`,
    }
  }
  const digest = scriptsDigest(config)
  // Read anew: somebody may have approved it since this codebase was loaded.
  const current = await context.store.codebases.get(codebase.id)
  if (current?.trustedConfig === digest) return { run: true }
  const approved = await context.approve?.({ codebase: codebase.name, commands: [...config.setup, ...config.teardown] })
  if (approved !== true) return { run: false, notice: notApproved(codebase.name) }
  await context.store.codebases.update(codebase.id, { trustedConfig: digest })
  return { run: true }
}

const notApproved = (name: string): string =>
  `Setup and teardown of ${name} did not run, since nobody has approved them: coppice codebase trust ${name}`
