import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../../domain/errors.ts'
import { type EnvironmentId, type Sha, toEnvironmentId } from '../../../domain/names.ts'
import { shellWord } from '../../../domain/text/shell-word.ts'
import type { Repo } from '../../../domain/tree.ts'
import { listRefs, type Ref, updateRefs } from '../../../git/refs.ts'
import type { IsolationContext } from '../../context.ts'

/*
 * Refs that the codebase's repository keeps for a clone while it exists, so that gc doesn't delete what the clone
 * borrows: its start, base at that time, what it was restored from, and whatever its refs have led to since, once
 * imported. None of it is given up while the clone exists: its stashes, reflogs or index may still need it.
 */

const below = (id: EnvironmentId): string => `refs/coppice/clone/${id}`

/** Where it began, and on which branch: an agent can rename that, but not change this. */
const startRefOf = (id: EnvironmentId, branch: string): string => `${below(id)}/start/${branch}`

/** The branch it was created on: the only one of the repository that its removal may move. */
export const madeOn = (id: EnvironmentId, pins: readonly Ref[]): string | undefined => {
  const prefix = startRefOf(id, '')
  return pins.find(({ name }) => name.startsWith(prefix))?.name.slice(prefix.length)
}

/** What Coppice put into it: where it and base were then. Its remote-tracking refs point there. */
export const givenTo = (id: EnvironmentId, pins: readonly Ref[]): readonly Ref[] =>
  pins.filter(({ name }) => name === `${below(id)}/base` || name.startsWith(startRefOf(id, '')))

export const tipRefOf = (id: EnvironmentId): string => `${below(id)}/tip`

/** A commit whose parents are the targets of all other refs of the clone, and the commit before it. */
export const othersRefOf = (id: EnvironmentId): string => `${below(id)}/others`

/** A commit that its branch has left. It stays pinned: a gc in the clone deletes what the repository has as well. */
export const leftRefOf = (id: EnvironmentId, sha: Sha): string => `${below(id)}/left/${sha}`

/** The stamp of the clone's refs at the last import. */
export const stampFile = (home: string, id: EnvironmentId): string => join(home, 'clones', id)

export type Pins = {
  readonly start: Sha
  readonly branch: string
  readonly base: Sha | undefined
  /** The restore point it is made from: everything its refs will lead to again. */
  readonly restored: Sha | undefined
}

/** Call before cloning. */
export const pinStart = async (
  { git }: Pick<IsolationContext, 'git'>,
  repo: Repo,
  id: EnvironmentId,
  { start, branch, base, restored }: Pins,
): Promise<void> => {
  const pins: [string, Sha | undefined][] = [
    [startRefOf(id, branch), start],
    [tipRefOf(id), start],
    [`${below(id)}/base`, base],
    [`${below(id)}/restored`, restored],
  ]
  const commands = pins.flatMap(([name, to]) => (to === undefined ? [] : [{ update: name, to, from: undefined }]))
  const made = await updateRefs(git, repo, commands, { reason: 'coppice: cloned', durable: true })
  if (!made.ok) throw new AppError('git-failed', `${below(id)} could not be written: ${made.stderr.trim()}`)
}

export const pinsOf = ({ git }: Pick<IsolationContext, 'git'>, repo: Repo, id: EnvironmentId): Promise<Ref[]> =>
  listRefs(git, repo, [`${below(id)}/`])

/** The environments that the repository keeps refs for. */
export const pinnedIds = async ({ git }: Pick<IsolationContext, 'git'>, repo: Repo): Promise<Set<EnvironmentId>> => {
  const prefix = below(toEnvironmentId(''))
  const names = (await listRefs(git, repo, [prefix])).map(({ name }) => name.slice(prefix.length).split('/')[0] ?? '')
  // Any program can write a ref of any name.
  return new Set(names.filter((name) => /^[\w-]+$/.test(name)).map(toEnvironmentId))
}

/** Deletes an environment's refs, for a person to run. */
export const unpinCommand = ({ commonDir }: Repo, id: EnvironmentId): string => {
  const git = `git --git-dir=${shellWord(commonDir)}`
  return `${git} for-each-ref --format='delete %(refname)' ${shellWord(`${below(id)}/`)} | ${git} update-ref --stdin`
}

/** The clone is gone, and a restore point keeps everything that depends on these. Idempotent. */
export const unpin = async (
  { git, home }: Pick<IsolationContext, 'git' | 'home'>,
  repo: Repo,
  id: EnvironmentId,
): Promise<void> => {
  await rm(stampFile(home, id), { force: true })
  const refs = await pinsOf({ git }, repo, id)
  if (refs.length === 0) return
  const commands = refs.map(({ name }) => ({ delete: name, from: undefined }))
  await updateRefs(git, repo, commands, { reason: 'coppice: removed' })
}
