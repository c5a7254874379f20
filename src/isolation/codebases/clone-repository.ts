import { lstat, mkdir, readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import { type RepoPath, toRepoPath } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import { cloneBare } from '../../git/clone-bare.ts'
import type { Setting } from '../../git/neutral.ts'
import { publicAddress } from '../../git/public-url.ts'
import { listRefs } from '../../git/refs.ts'
import { remoteInfo } from '../../git/remote.ts'
import { validateRemoteUrl } from '../../git/remote-url.ts'
import { deleteTree } from '../../process/files/delete-tree.ts'
import { liveness } from '../../process/identity.ts'
import type { JournalEntry } from '../../store/store.ts'
import { endLeftoverGit, withChild } from '../children.ts'
import { type Added, type AddOptions, plainName, register } from './register.ts'
import type { IsolationContext } from '../context.ts'
import { trimEndOf } from '../../domain/text/trim-end.ts'
import { syncDirectory } from '../durable.ts'
import { isGivenUpDirectory } from '../trash/given-up.ts'

/**
 * A bare clone under the home, so that there is no shared checkout to damage. It is cloned next to its final path and
 * renamed when complete, so only whole repositories are ever at that path. One that is there without a row (after a
 * crash, or unregistered) is reused.
 */
export const addClone = async (context: IsolationContext, url: string, options: AddOptions): Promise<Added> => {
  validateRemoteUrl(url)
  const settings = options.onlyPublic === true ? await publicAddress(url) : []
  await recoverRepositoryClones(context)
  const known = await cloneOf(context, url)
  if (known !== undefined) return { codebase: known, isNew: false }
  const name = options.name ?? plainName(basename(trimEndOf(url, '/').replace(/^.*:/, '')))
  const repos = reposDirectory(context)
  await mkdir(repos, { recursive: true, mode: 0o700 })
  const target = await placeFor(context, repos, name, url)
  if (!target.isThere) await cloneTo(context, url, target.path, settings, options)
  const codebase = { repoPath: target.path, checkoutPath: undefined, remote: { name: 'origin', url }, cloned: true }
  return register(context, codebase, name, options)
}

export const reposDirectory = ({ home }: Pick<IsolationContext, 'home'>): string => join(home, 'repos')

const growing = '.cloning-'
/** A clone being deleted; a later call finishes an interrupted deletion. */
export const deleted = '.gone-'

export const isDeletedClone = async (context: Pick<IsolationContext, 'home'>, path: string): Promise<boolean> =>
  dirname(path) === reposDirectory(context) && isGivenUpDirectory(deleted, path)

export type RecoveredClones = { readonly settled: readonly Notice[]; readonly left: readonly Notice[] }

/** Deletes what interrupted clones left, unless git still works there. */
export const recoverRepositoryClones = async (context: IsolationContext): Promise<RecoveredClones> => {
  const settled: Notice[] = []
  const left: Notice[] = []
  const open = (await context.store.journal.open(context.host)).filter(({ kind }) => kind === 'clone')
  for (const entry of open) {
    if (liveness(entry.holder) !== 'dead') continue
    const target = entry.data['path']
    const what = { operation: 'clone', name: typeof target === 'string' ? basename(target) : entry.id }
    const problem = await clearInterrupted(context, entry).catch((error: unknown) => toAppError(error).message)
    if (problem === undefined) settled.push({ kind: 'recovered', ...what })
    else left.push({ kind: 'left-alone', ...what, why: { kind: 'failed', message: problem } })
  }
  const gone: string[] = []
  for (const name of await readdir(reposDirectory(context)).catch(() => [])) {
    const path = join(reposDirectory(context), name)
    if (await isDeletedClone(context, path)) gone.push(path)
  }
  if (gone.length > 0) context.deleteInBackground(gone)
  return { settled, left }
}

/** Returns what is still running there; undefined if it was cleared. */
const clearInterrupted = async (context: IsolationContext, entry: JournalEntry): Promise<string | undefined> => {
  const path = growingPath(context, entry.id)
  const running = await endLeftoverGit(context, path, entry)
  if (running !== undefined) return running
  await deleteTree(path)
  await context.store.journal.end(entry.id)
  return undefined
}

/** Incomplete clones without a journal entry; they occur only if the database was lost. */
export const strayClones = async (context: Pick<IsolationContext, 'store' | 'host' | 'home'>): Promise<string[]> => {
  const names = await readdir(reposDirectory(context)).catch(() => [])
  const open = new Set((await context.store.journal.open(context.host)).map(({ id }) => growing + id))
  return names
    .filter((name) => name.startsWith(growing) && !open.has(name))
    .map((name) => join(reposDirectory(context), name))
}

const growingPath = (context: Pick<IsolationContext, 'home'>, id: string): string =>
  join(reposDirectory(context), growing + id)

const cloneTo = async (
  context: IsolationContext,
  url: string,
  target: string,
  settings: readonly Setting[],
  { signal }: AddOptions,
): Promise<void> => {
  const entry = cloneEntry(context, target)
  const path = growingPath(context, entry.id)
  await context.store.journal.begin(entry)
  try {
    await context.failpoint('clone.intent')
    const cloned = await withChild(context, entry.id, {}, (onSpawn) =>
      cloneBare(context.git, url, path, {
        onSpawn,
        settings,
        onProgress: ({ phase, percent }) => context.progress(`cloning ${basename(target)}: ${phase} ${percent}%`),
        ...(signal && { signal }),
      }),
    )
    if ((await listRefs(context.git, cloned, ['refs/remotes'])).length === 0) throw emptyRemote(url)
    await context.failpoint('clone.whole')
    await rename(path, target)
    await syncDirectory(reposDirectory(context))
    await context.failpoint('clone.renamed')
  } finally {
    await deleteTree(path)
    await context.store.journal.end(entry.id)
  }
}

const cloneEntry = (
  context: Pick<IsolationContext, 'clock' | 'ids' | 'host' | 'self'>,
  target: string,
): JournalEntry => ({
  id: context.ids(),
  host: context.host,
  codebaseId: undefined,
  environmentId: undefined,
  kind: 'clone',
  step: 'cloning',
  data: { path: target },
  holder: context.self,
  child: undefined,
  startedAt: context.clock(),
})

const emptyRemote = (url: string): AppError =>
  new AppError('no-commits', `${url} has no commits yet, so there is nothing to start from`, {
    remedy: 'push a first commit to it and try again',
  })

const cloneOf = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  url: string,
): Promise<Codebase | undefined> =>
  (await store.codebases.list(host)).find(
    (codebase) => codebase.cloned && codebase.remoteUrl !== undefined && sameUrl(codebase.remoteUrl, url),
  )

const sameUrl = (a: string, b: string): boolean => plainUrl(a) === plainUrl(b)
const plainUrl = (url: string): string => trimEndOf(url, '/').replace(/\.git$/, '')

type CloneTarget = { readonly path: RepoPath; readonly isThere: boolean }

const placeFor = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'host'>,
  repos: string,
  name: string,
  url: string,
): Promise<CloneTarget> => {
  for (let n = 1; n < 1000; n++) {
    const path = toRepoPath(join(repos, `${n === 1 ? name : `${name}-${n}`}.git`))
    const there = await lstat(path).then(
      () => true,
      () => false,
    )
    if (!there) return { path, isThere: false }
    const registered = await context.store.codebases.byRepoPath(context.host, path)
    if (registered !== undefined) continue
    const remote = await remoteInfo(context.git, { commonDir: path }).catch(() => undefined)
    if (remote !== undefined && sameUrl(remote.url, url)) return { path, isThere: true }
  }
  throw new AppError('path-taken', `no free directory name for ${name} in ${repos}`)
}
