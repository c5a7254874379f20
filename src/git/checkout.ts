import type { Sha } from '../domain/names.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import type { CallOptions, Git, Tree } from './door.ts'
import type { Setting } from './neutral.ts'

export type CheckoutOptions = CallOptions & { readonly settings?: readonly Setting[] }

/** Switches a worktree to a commit without a branch. Refuses to overwrite changes, and ignored files. */
export const checkoutDetached = async (
  git: Git,
  tree: Tree,
  sha: Sha,
  { signal, settings, onSpawn }: CheckoutOptions & { onSpawn?: (identity: ProcessIdentity) => void } = {},
): Promise<void> => {
  await git.run({
    operation: 'checkout',
    at: tree,
    args: [
      'checkout',
      '--quiet',
      '--detach',
      '--no-overwrite-ignore',
      '--no-recurse-submodules',
      '--no-guess',
      sha,
      '--',
    ],
    locks: true,
    ...(settings && { settings }),
    ...(signal && { signal }),
    ...(onSpawn && { onSpawn }),
  })
}

/**
 * Moves the checked-out branch forward, files included; git itself refuses anything but a fast-forward. It replaces
 * whole directories all the same: ask `inTheWay` first, here and before `moveTo`.
 */
export const fastForward = async (git: Git, tree: Tree, to: Sha, { settings }: CheckoutOptions = {}): Promise<void> => {
  await git.run({
    operation: 'fast-forward',
    at: tree,
    // Without this git replaces an ignored file (`.env`) by a tracked one of the same name, without a word.
    args: ['merge', '--quiet', '--ff-only', '--no-overwrite-ignore', '--no-verify-signatures', to],
    locks: true,
    ...(settings && { settings }),
  })
}

/** Moves the checked-out branch to another commit. `--keep` refuses when a changed file would be overwritten. */
export const moveTo = async (git: Git, tree: Tree, to: Sha, { settings }: CheckoutOptions = {}): Promise<void> => {
  const args = ['reset', '--quiet', '--keep', to, '--']
  await git.run({ operation: 'move branch', at: tree, args, locks: true, ...(settings && { settings }) })
}

/** Writes the files of a worktree as its index has them, over nothing that is there. */
export const checkoutIndex = async (git: Git, tree: Tree, { settings }: CheckoutOptions = {}): Promise<void> => {
  const args = ['checkout-index', '--all', '--quiet']
  await git.run({ operation: 'checkout-index', at: tree, args, locks: true, ...(settings && { settings }) })
}

/** Makes a sparse checkout a full one: `git worktree add` copies the patterns of the main working tree. */
export const disableSparse = async (git: Git, tree: Tree, { settings }: CheckoutOptions = {}): Promise<void> => {
  const args = ['sparse-checkout', 'disable']
  await git.run({ operation: 'sparse-checkout', at: tree, args, locks: true, ...(settings && { settings }) })
}

/** Takes the files outside a sparse checkout away again, those with changes excepted. */
export const reapplySparse = async (git: Git, tree: Tree): Promise<void> => {
  const args = ['sparse-checkout', 'reapply']
  await git.run({ operation: 'sparse-checkout', at: tree, args, locks: true, ok: [0, 1, 128] })
}
