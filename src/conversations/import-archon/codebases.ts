import { realpathSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type Discovered, discoverRepository } from '../../git/discover.ts'
import { codebaseId } from '../../isolation/codebases/recognise.ts'
import { githubOf, plainName, withoutSecret } from '../../isolation/codebases/register.ts'
import { addCodebase, assertCommits } from '../../isolation/codebases/codebases.ts'
import type { ArchonCodebase } from '../../store/archon/archon.ts'
import { eachRow, type Import } from './each-row.ts'

/** Keyed by Archon ID. */
export type CodebasesTaken = ReadonlyMap<string, Codebase>

export const takeOverCodebases = async (run: Import): Promise<CodebasesTaken> => {
  const taken = new Map<string, Codebase>()
  const registered = await run.context.store.codebases.list(run.context.host)
  await eachRow(run, 'codebase', run.archon.codebases, nameOf, async (row) => {
    if (row.id === undefined) throw new AppError('not-found', 'its row has no id')
    const known = (codebase: Codebase): void => {
      taken.set(row.id ?? '', codebase)
      run.record.known('codebase')
    }
    const found = await repositoryAt(run, row.path).catch((error: unknown) => {
      // The directory is gone, but the repository may be registered elsewhere.
      const elsewhere = registered.find((codebase) => sameAddress(codebase, row.repositoryUrl))
      if (elsewhere === undefined) throw error
      return elsewhere
    })
    if ('id' in found) return known(found)
    const { store, host } = run.context
    const same =
      (await store.codebases.byRepoPath(host, found.commonDir)) ??
      [...taken.values()].find(({ repoPath }) => repoPath === found.commonDir)
    if (same !== undefined) return known(same)
    const codebase = await register(run, row, found)
    taken.set(row.id, codebase)
    run.record.taken('codebase')
    run.record.codebase(codebase.name)
  })
  return taken
}

const nameOf = ({ name, path, id }: ArchonCodebase): string => name ?? path ?? id ?? 'a row without a name'

/** The repository with this top directory; for a linked worktree, its main repository. */
const repositoryAt = async ({ context, signal }: Import, path: string | undefined): Promise<Discovered> => {
  if (path === undefined || !path.startsWith('/') || path.includes('\0')) {
    throw new AppError('not-a-repository', 'its directory is not an absolute path')
  }
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new AppError('not-a-repository', `${path} doesn't exist`)
  if (!found.isDirectory()) throw new AppError('not-a-repository', `${path} is not a directory`)
  const repository = await discoverRepository(context.git, path, { signal })
  const { commonDir, checkoutPath, linkedWorktree } = repository
  // Git searches upwards: in a home that is a repository, a plain directory would match the home.
  if (![commonDir, checkoutPath, linkedWorktree].includes(realpathSync(path))) {
    throw new AppError('not-a-repository', `${path} is inside a repository, but isn't its root`)
  }
  return repository
}

const sameAddress = (codebase: Codebase, url: string | undefined): boolean => {
  const address = withoutSecret(url)
  if (address === undefined) return false
  const github = githubOf(address)
  return codebase.remoteUrl === address || (github !== undefined && codebase.github === github)
}

const register = async (run: Import, row: ArchonCodebase, found: Discovered): Promise<Codebase> => {
  const { context, dryRun, signal } = run
  const { commonDir, checkoutPath } = found
  // Archon's names are `owner/name` or plain; its directories are called `source`.
  const called = row.name?.split('/').at(-1)
  const github = githubOf(withoutSecret(row.repositoryUrl))
  const place = checkoutPath ?? commonDir
  if (!dryRun) {
    const options = { signal, ...(called !== undefined && { called }) }
    const { codebase } = await addCodebase(context, place, '/', options)
    if (codebase.github !== undefined || github === undefined) return codebase
    await context.store.codebases.update(codebase.id, { github })
    return { ...codebase, github }
  }
  await assertCommits(context, commonDir, place)
  return {
    id: codebaseId(context.host, commonDir),
    host: context.host,
    name: plainName(called ?? basename(place)),
    repoPath: commonDir,
    checkoutPath,
    repoInode: undefined,
    remote: undefined,
    remoteUrl: undefined,
    baseBranch: undefined,
    github,
    defaultAgent: undefined,
    cloned: false,
    trustedConfig: undefined,
    fetchedAt: undefined,
    createdAt: context.clock(),
  }
}
