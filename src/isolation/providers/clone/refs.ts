import type { EnvironmentId, Sha } from '../../../domain/names.ts'
import type { Repo } from '../../../domain/tree.ts'
import { listRefs, updateRefs } from '../../../git/refs.ts'
import type { IsolationContext } from '../../context.ts'

/*
 * What the codebase's repository keeps for a clone, for as long as that lives. A gc of the repository must not take what
 * the clone borrows: where it began and where base stood then. And what the clone has committed since, once it was brought.
 */

const below = (id: EnvironmentId): string => `refs/coppice/clone/${id}`

export const tipRefOf = (id: EnvironmentId): string => `${below(id)}/tip`

/** Before the clone is made. */
export const pinStart = async (
  { git }: Pick<IsolationContext, 'git'>,
  repo: Repo,
  id: EnvironmentId,
  { start, base }: { readonly start: Sha; readonly base: Sha | undefined },
): Promise<void> => {
  const pins = { start, tip: start, ...(base !== undefined && { base }) }
  const commands = Object.entries(pins).map(([name, to]) => ({ update: `${below(id)}/${name}`, to, from: undefined }))
  await updateRefs(git, repo, commands, { reason: 'coppice: cloned', durable: true })
}

/** The clone is gone, and whatever stands on these is kept by a restore point. Doing it twice is doing it once. */
export const unpin = async ({ git }: Pick<IsolationContext, 'git'>, repo: Repo, id: EnvironmentId): Promise<void> => {
  const refs = await listRefs(git, repo, [`${below(id)}/`])
  if (refs.length === 0) return
  const commands = refs.map(({ name }) => ({ delete: name, from: undefined }))
  await updateRefs(git, repo, commands, { reason: 'coppice: removed' })
}
