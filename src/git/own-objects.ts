import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { unlessMissing } from '../domain/missing.ts'
import type { Sha } from '../domain/names.ts'
import { openUntrusted, readUntrustedText } from '../process/files/read-untrusted.ts'
import { syncPath } from '../process/files/sync-path.ts'
import type { CallOptions, Git, Repo, Tree } from './door.ts'
import { lstatIfThere } from '../process/files/lstat-if-there.ts'

/*
 * A repository made with `git clone --shared` borrows objects from another one. Git writes no object that the lender
 * has, and `git gc` even deletes copies. Objects that the lender drops are then lost here too.
 */

export const borrowsObjects = ({ commonDir }: Repo): boolean =>
  lstatIfThere(join(commonDir, 'objects/info/alternates')) !== undefined

export type OwnObjects = {
  /** Keep everything it reaches, unless `except` reaches it too. */
  readonly commit: Sha
  readonly except: Sha | undefined
  /** One line; passed to `releaseOwnObjects` later. */
  readonly owner: string
  /** For temporary files. */
  readonly tempPrefix: string
}

/** Copies the objects into the repository's own pack, which `git gc` keeps until released. Synced. */
export const keepOwnObjects = async (
  git: Git,
  repo: Repo,
  { commit, except, owner, tempPrefix }: OwnObjects,
): Promise<void> => {
  const at = { commonDir: repo.commonDir }
  const revisions = `${commit}\n${except === undefined ? '' : `^${except}\n`}`
  await copyObjects(git, { from: at, to: at, revisions, tempPrefix, keepFor: owner })
  for (const keep of await keepsOf(repo, owner)) await syncPath(keep)
  await syncPath(packDirectory(repo))
}

export type ObjectCopy = CallOptions & {
  readonly from: Repo | Tree
  readonly to: Repo
  /** One per line, as for `git rev-list --stdin`. */
  readonly revisions: string
  /** For temporary files. */
  readonly tempPrefix: string
  /** Skip what `from` borrows from another repository. */
  readonly withoutBorrowed?: boolean
  /** Their owner: `git gc` keeps the pack. */
  readonly keepFor?: string
}

/** Through a file, since git verifies the whole pack before using any of it. */
export const copyObjects = async (
  git: Git,
  { from, to, revisions, tempPrefix, withoutBorrowed = false, keepFor, signal }: ObjectCopy,
): Promise<void> => {
  const options = signal === undefined ? {} : { signal }
  const { stdout } = await git.run({
    operation: 'pack-objects',
    at: from,
    args: ['pack-objects', '--revs', ...(withoutBorrowed ? ['--local'] : []), '-q', tempPrefix],
    stdin: revisions,
    // One complete pack, regardless of the repository's settings.
    settings: [
      ['pack.packSizeLimit', '0'],
      ['pack.useSparse', 'false'],
    ],
    ...options,
  })
  const made = `${tempPrefix}-${stdout.trim()}`
  const pack = await openUntrusted(`${made}.pack`)
  try {
    // Deleted while open, so a crash leaves nothing behind.
    for (const ending of ['pack', 'idx', 'rev']) await rm(`${made}.${ending}`, { force: true })
    if (pack === undefined) throw new AppError('git-failed', `git pack-objects did not write ${basename(made)}.pack`)
    await git.run({
      operation: 'index-pack',
      at: { commonDir: to.commonDir },
      args: ['index-pack', '--stdin', ...(keepFor === undefined ? [] : [`--keep=${keepFor}`])],
      stdin: pack.createReadStream({ autoClose: false }),
      locks: true,
      durable: true,
      ...options,
    })
  } finally {
    await pack?.close()
  }
}

/** Leaves them to `git gc`. Idempotent. */
export const releaseOwnObjects = async (repo: Repo, owner: string): Promise<void> => {
  for (const keep of await keepsOf(repo, owner)) await rm(keep, { force: true })
}

const packDirectory = ({ commonDir }: Repo): string => join(commonDir, 'objects/pack')

/** Git never rewrites or deletes a pack with a `.keep` file, which says why it's kept. */
const keepsOf = async (repo: Repo, owner: string): Promise<string[]> => {
  const names = (await unlessMissing(readdir(packDirectory(repo)))) ?? []
  const found: string[] = []
  for (const name of names.filter((one) => one.endsWith('.keep'))) {
    const path = join(packDirectory(repo), name)
    if ((await readUntrustedText(path))?.trim() === owner) found.push(path)
  }
  return found
}
