import { lstatSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { unlessMissing, unlessMissingSync } from '../domain/missing.ts'
import type { Sha } from '../domain/names.ts'
import { openUntrusted, readUntrustedText } from '../process/files/read-untrusted.ts'
import { syncPath } from '../process/files/sync-path.ts'
import type { CallOptions, Git, Repo, Tree } from './door.ts'

/*
 * A repository made with `git clone --shared` borrows objects from another one. Git writes no object that the lender has,
 * and `git gc` even deletes a copy of it. Whatever the lender drops is then gone from here, too.
 */

export const borrowsObjects = ({ commonDir }: Repo): boolean =>
  unlessMissingSync(() => lstatSync(join(commonDir, 'objects/info/alternates'))) !== undefined

export type OwnObjects = {
  /** Everything that this reaches, unless `except` reaches it as well. */
  readonly commit: Sha
  readonly except: Sha | undefined
  /** Whose they are, one line: what they are given up by. */
  readonly owner: string
  /** How the names of temporary files begin. */
  readonly tempPrefix: string
}

/** Copies the objects into a pack of the repository's own, which `git gc` leaves alone until it is given up. Synced. */
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
  /** One on each line, as `git rev-list --stdin` reads them. */
  readonly revisions: string
  /** How the names of temporary files begin. */
  readonly tempPrefix: string
  /** Not what `from` borrows from another repository. */
  readonly withoutBorrowed?: boolean
  /** Whose they are: `git gc` leaves the pack alone. */
  readonly keepFor?: string
}

/** Through a file, since git checks the whole pack before any of it counts. */
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
    // All in one pack, and all of it, whatever the repository says.
    settings: [
      ['pack.packSizeLimit', '0'],
      ['pack.useSparse', 'false'],
    ],
    ...options,
  })
  const made = `${tempPrefix}-${stdout.trim()}`
  const pack = await openUntrusted(`${made}.pack`)
  try {
    // The open file is enough, and a crash leaves nothing behind.
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

/** Leaves them to `git gc`. Doing it twice is doing it once. */
export const releaseOwnObjects = async (repo: Repo, owner: string): Promise<void> => {
  for (const keep of await keepsOf(repo, owner)) await rm(keep, { force: true })
}

const packDirectory = ({ commonDir }: Repo): string => join(commonDir, 'objects/pack')

/** A pack with a `.keep` file beside it is never rewritten or deleted; the file says why it is kept. */
const keepsOf = async (repo: Repo, owner: string): Promise<string[]> => {
  const names = (await unlessMissing(readdir(packDirectory(repo)))) ?? []
  const found: string[] = []
  for (const name of names.filter((one) => one.endsWith('.keep'))) {
    const path = join(packDirectory(repo), name)
    if ((await readUntrustedText(path))?.trim() === owner) found.push(path)
  }
  return found
}
