import { realpathSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type Discovered, discoverRepository } from '../../git/discover.ts'
import { remoteInfo } from '../../git/remote.ts'
import { assertCommits } from '../../isolation/codebases/codebases.ts'
import { findCodebase, idForNew } from '../../isolation/codebases/recognise.ts'
import { githubOf, plainName, withoutSecret } from '../../isolation/codebases/register.ts'
import type { ArchonCodebase, ArchonInstallation } from '../../store/archon/archon.ts'
import { mapPath } from './path-map.ts'
import { eachRow, type Planning } from './planning.ts'
import { type RepositorySettings, settingsFor } from './repository-settings.ts'

/** A repository of Archon's that is, or will be, registered here. */
export type PlannedCodebase = {
  /** As it is registered, or will be. */
  readonly codebase: Codebase
  /** How to register it; undefined if it is registered already. */
  readonly register: { readonly place: string; readonly called: string } | undefined
  /** Where it is now, if it was registered elsewhere. */
  readonly movedTo: string | undefined
  readonly settings: RepositorySettings
}

export type PlannedCodebases = {
  /** Each once, in order. */
  readonly list: readonly PlannedCodebase[]
  readonly byArchonId: ReadonlyMap<string, PlannedCodebase>
  readonly known: number
}

export const planCodebases = async (planning: Planning): Promise<PlannedCodebases> => {
  const { archon, context } = planning
  const list: PlannedCodebase[] = []
  const byArchonId = new Map<string, PlannedCodebase>()
  const registered = await context.store.codebases.list(context.host)
  let known = 0
  await eachRow(planning, 'codebase', archon.codebases, nameOf, async (row) => {
    if (row.id === undefined) throw new AppError('not-found', 'its row has no id')
    const all = [...registered, ...list.map(({ codebase }) => codebase)]
    const found = await repositoryAt(planning, row.path).catch((error: unknown) => {
      // The directory is gone, but the repository may be registered elsewhere.
      const elsewhere = all.find((codebase) => sameAddress(codebase, row.repositoryUrl))
      if (elsewhere === undefined) throw error
      return elsewhere
    })
    const existing = 'id' in found ? found : await findCodebase(context, found)
    const path = existing?.repoPath ?? ('id' in found ? found.repoPath : found.commonDir)
    const earlier = list.find(({ codebase }) => codebase.repoPath === path || codebase.id === existing?.id)
    if (earlier !== undefined || existing !== undefined) known += 1
    if (earlier !== undefined) return void byArchonId.set(row.id, earlier)
    const planned = await plan(planning, row, existing, found, all)
    byArchonId.set(row.id, planned)
    list.push(planned)
  })
  return { list, byArchonId, known }
}

const nameOf = ({ name, path, id }: ArchonCodebase): string => name ?? path ?? id ?? 'a row without a name'

/** The repository with this top directory; for a linked worktree, its main repository. */
const repositoryAt = async ({ context, signal, map }: Planning, given: string | undefined): Promise<Discovered> => {
  if (given === undefined || !given.startsWith('/') || given.includes('\0')) {
    throw new AppError('not-a-repository', 'its directory is not an absolute path')
  }
  const path = mapPath(map, given)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined)
    throw new AppError('not-a-repository', `${path} doesn't exist${path === given ? mapHint(path) : ''}`)
  if (!found.isDirectory()) throw new AppError('not-a-repository', `${path} is not a directory`)
  const repository = await discoverRepository(context.git, path, { signal })
  const { commonDir, checkoutPath, linkedWorktree } = repository
  // Git searches upwards: in a home that is a repository, a plain directory would match the home.
  if (![commonDir, checkoutPath, linkedWorktree].includes(realpathSync(path))) {
    throw new AppError('not-a-repository', `${path} is inside a repository, but isn't its root`)
  }
  return repository
}

/** Archon's image keeps everything below these directories. */
const mapHint = (path: string): string => {
  const [root] = /^\/(?:\.archon|workspace)(?=\/)/.exec(path) ?? []
  return root === undefined ? '' : `; if it is from Archon's container, use --map ${root}=<directory on this machine>`
}

const sameAddress = (codebase: Codebase, url: string | undefined): boolean => {
  const address = withoutSecret(url)
  if (address === undefined) return false
  const github = githubOf(address)
  return codebase.remoteUrl === address || (github !== undefined && codebase.github === github)
}

const plan = async (
  planning: Planning,
  row: ArchonCodebase,
  existing: Codebase | undefined,
  found: Codebase | Discovered,
  others: readonly Codebase[],
): Promise<PlannedCodebase> => {
  const { codebase, register, movedTo } =
    'id' in found
      ? { codebase: found, register: undefined, movedTo: undefined }
      : existing === undefined
        ? await asRegistered(planning, row, found, others)
        : asMoved(existing, found)
  const github = codebase.github ?? githubOf(withoutSecret(row.repositoryUrl)) ?? githubOfConversations(planning, row)
  const settings = await settingsFor(planning, row, codebase)
  const all = { ...settings, ...(github !== undefined && github !== codebase.github && { github }) }
  const { base, agent } = all
  return {
    codebase: {
      ...codebase,
      github,
      ...(base !== undefined && { base }),
      ...(agent !== undefined && { defaultAgent: agent }),
    },
    register,
    movedTo,
    settings: all,
  }
}

/** A registered repository that was moved is followed. */
const asMoved = (existing: Codebase, { commonDir, checkoutPath }: Discovered): Registration => {
  if (existing.repoPath === commonDir) return { codebase: existing, register: undefined, movedTo: undefined }
  const codebase = { ...existing, repoPath: commonDir, checkoutPath }
  return { codebase, register: undefined, movedTo: checkoutPath ?? commonDir }
}

type Registration = Pick<PlannedCodebase, 'codebase' | 'register' | 'movedTo'>

/** The row that registering it will make, under the first free name. */
const asRegistered = async (
  { context }: Planning,
  row: ArchonCodebase,
  { commonDir, checkoutPath }: Discovered,
  others: readonly Codebase[],
): Promise<Registration> => {
  const place = checkoutPath ?? commonDir
  await assertCommits(context, commonDir, place)
  // Archon's names are `owner/name` or plain; its directories are called `source`.
  const called = row.name?.split('/').at(-1) ?? basename(place)
  const remote = await remoteInfo(context.git, { commonDir })
  const remoteUrl = withoutSecret(remote?.url)
  const codebase: Codebase = {
    id: await idForNew(context, commonDir),
    host: context.host,
    name: freeName(plainName(called), others),
    repoPath: commonDir,
    checkoutPath,
    repoInode: undefined,
    remote: remote?.name,
    remoteUrl,
    baseBranch: undefined,
    base: undefined,
    github: githubOf(remoteUrl),
    defaultAgent: undefined,
    cloned: false,
    trustedConfig: undefined,
    configCommit: undefined,
    configText: undefined,
    fetchedAt: undefined,
    createdAt: context.clock(),
  }
  return { codebase, register: { place, called }, movedTo: undefined }
}

const freeName = (plain: string, others: readonly Codebase[]): string => {
  const taken = new Set(others.map(({ name }) => name))
  for (let n = 1; ; n++) {
    const name = n === 1 ? plain : `${plain}-${n}`
    if (!taken.has(name)) return name
  }
}

/** GitHub's messages name their repository, so without it they wouldn't reach the conversations that are imported. */
const githubOfConversations = (
  { archon }: { readonly archon: ArchonInstallation },
  { id }: ArchonCodebase,
): string | undefined => {
  const names = archon.conversations
    .filter(({ codebaseId, platform }) => codebaseId === id && platform === 'github')
    .flatMap(({ conversationId }) => /^([\w.-]{1,100}\/[\w.-]{1,100})#\d+$/.exec(conversationId ?? '')?.[1] ?? [])
  const [only, ...more] = new Set(names.map((name) => name.toLowerCase()))
  return only === undefined || more.length > 0 ? undefined : names[0]
}
