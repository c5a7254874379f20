import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { unlessMissing } from '../../domain/missing.ts'
import { readToken, readWorktreeLink, worktreePaths } from '../../git/admin-dir.ts'
import { reposDirectory, strayClones } from '../../isolation/codebases/clone-repository.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { isAbandoned } from '../../isolation/abandon.ts'
import { leaseHolders } from '../../isolation/lease.ts'
import { isInside, managedRoot, spareDirectory, trashDirectory } from '../../isolation/paths.ts'
import { isGivenUp, listTrash } from '../../isolation/trash/trash.ts'
import { describeGone, goneRemedy, realPlace, repositoryState } from '../../isolation/codebases/repository-place.ts'
import { forgottenSpares } from '../../isolation/providers/worktree/forgotten-spares.ts'
import { liveness } from '../../process/identity.ts'
import { mountsInside } from '../../process/files/mounts.ts'
import type { JournalEntry } from '../../store/store.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { remedy, shell } from '../../domain/remedy.ts'
import { repoOf } from '../../isolation/codebases/repo-of.ts'
import { pinnedIds, unpinCommand } from '../../isolation/providers/clone/refs.ts'
import { type Finding, fix, look, note, problem } from './finding.ts'
import { examineRepository } from './repository.ts'
import { examineUnknown, examineWorktrees } from './worktrees.ts'

/** Compares one codebase's records with git and the disk. Read-only. */
export const examineCodebase = async (context: IsolationContext, codebase: Codebase): Promise<Finding[]> => {
  const { name } = codebase
  const found = repositoryState(codebase)
  if (found.state !== 'there') return [problem(name, describeGone(codebase, found), goneRemedy(codebase, found))]
  const place = realPlace(codebase.repoPath)
  if (place !== codebase.repoPath) return [problem(name, `its repository was moved to ${place}`, fix)]
  const findings = await Promise.all([
    look(name, () => interrupted(context, codebase)),
    look(name, () => examineWorktrees(context, codebase)),
    look(name, () => deadLeases(context, codebase)),
    look(name, () => examineUnknown(context, codebase)),
  ])
  const repository = await look(name, () => examineRepository(context, codebase))
  const pins = repository.length > 0 ? [] : await look(name, () => unknownPins(context, codebase))
  return [...repository.filter((one) => !isNamed(one, findings.flat())), ...findings.flat(), ...pins]
}

/** A file in a worktree's record is reported with that worktree. */
const isNamed = ({ file }: Finding, others: readonly Finding[]): boolean =>
  file !== undefined && others.some((other) => other.file === file)

/** What belongs to no codebase: unclaimed trash, spares and clones. */
export const examineHome = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self' | 'home' | 'worktreesBase'>,
  codebases: readonly Codebase[],
): Promise<Finding[]> => {
  const open = await context.store.journal.open(context.host)
  const clones = open.filter(({ kind }) => kind === 'clone')
  const roots = await rootsOf(context, codebases)
  return (
    await Promise.all([
      look('clones', async () => [
        ...clones.flatMap((entry) => describeEntry('clones', entry)),
        ...(await strayClones(context)).map((path) =>
          problem('clones', `${path} is an incomplete clone`, `delete it: rm -r ${shellWord(path)}`),
        ),
      ]),
      ...roots.map((root) => look('trash', () => unknownTrash(context, root, open))),
      ...[...roots.map(trashDirectory), reposDirectory(context)].map((path) => look('trash', () => mountsIn(path))),
      ...roots.map((root) => look('worktrees', () => leftToUser(context, root, open, codebases))),
      ...roots.map((root) => look('spares', () => unknownSpares(context, root, open, codebases))),
    ])
  ).flat()
}

/** A clone may still borrow these, wherever it is now: it was moved while half made, or the database was lost. */
const unknownPins = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'host'>,
  codebase: Codebase,
): Promise<Finding[]> => {
  const open = await context.store.journal.open(context.host, codebase.id)
  const underWay = new Set(open.map(({ environmentId }) => environmentId))
  const findings: Finding[] = []
  for (const id of await pinnedIds(context, repoOf(codebase))) {
    const status = (await context.store.environments.get(id))?.status
    if (underWay.has(id) || (status !== undefined && status !== 'removed')) continue
    const detail = `the repository keeps commits for a clone that Coppice doesn't manage (environment ${id})`
    const command = unpinCommand(repoOf(codebase), id)
    findings.push(note(codebase.name, detail, remedy`if that clone is deleted, run ${shell(command)}`))
  }
  return findings
}

const interrupted = async (context: Pick<IsolationContext, 'store' | 'host'>, codebase: Codebase): Promise<Finding[]> =>
  (await context.store.journal.open(context.host, codebase.id)).flatMap((entry) => describeEntry(codebase.name, entry))

const describeEntry = (about: string, entry: JournalEntry): Finding[] => {
  const path = entry.data['path']
  const what = `${entry.kind} of ${typeof path === 'string' ? basename(path) : entry.id}`
  switch (isAbandoned(entry) ? 'dead' : liveness(entry.holder)) {
    case 'alive':
      return [note(about, `${what} is under way (process ${entry.holder.pid})`)]
    case 'cannot-tell':
      return [
        problem(
          about,
          `cannot tell whether ${what} is still under way (process ${entry.holder.pid})`,
          `check that process, then: ${fix}`,
        ),
      ]
    case 'dead':
      return [problem(about, `${what} was interrupted (${entry.step})`, `finish or undo it: ${fix}`)]
  }
}

const deadLeases = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self'>,
  codebase: Codebase,
): Promise<Finding[]> => {
  const live = await context.store.environments.live(codebase.id)
  const held = await leaseHolders(
    context,
    live.map(({ id }) => id),
  )
  return live.flatMap(({ id, branch }) =>
    (held.get(id) ?? [])
      .filter(({ liveness }) => liveness === 'dead')
      .map(({ lease }) => problem(codebase.name, `${branch} is leased to a dead process (${lease.purpose})`, fix)),
  )
}

/** Environments stay where they were created, so a former root may still be in use. */
const rootsOf = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'worktreesBase'>,
  codebases: readonly Codebase[],
): Promise<string[]> => {
  const live = await Promise.all(codebases.map(({ id }) => context.store.environments.live(id)))
  const paths = live.flat().filter(({ host, owned }) => host === context.host && owned)
  return [...new Set([context.worktreesBase, ...paths.map(({ path }) => dirname(dirname(path)))])]
}

/** Removed worktrees are being deleted; an ongoing removal keeps its own under its ID. */
const unknownTrash = async (
  context: Pick<IsolationContext, 'host'>,
  root: string,
  open: readonly JournalEntry[],
): Promise<Finding[]> => {
  // A spare isn't an environment: its trash directory is named after the operation.
  const wanted = new Set<string>(open.map(({ environmentId, id }) => environmentId ?? id))
  const unknown: string[] = []
  let gone = 0
  for (const path of await listTrash(root)) {
    if (await isGivenUp(context, path)) gone += 1
    else if (!wanted.has(basename(path))) unknown.push(path)
  }
  return [
    ...(gone > 0
      ? [
          note(
            'trash',
            `${gone === 1 ? '1 removed worktree is' : `${gone} removed worktrees are`} still to be deleted`,
            fix,
          ),
        ]
      : []),
    ...unknown.map((path) => unknownThing('trash', path)),
  ]
}

/** Deletion skips mounts in the trash and their parent directories. */
const mountsIn = async (directory: string): Promise<Finding[]> =>
  existsSync(directory)
    ? (await mountsInside([directory])).map(({ path, what }) =>
        problem('trash', `${path} can't be deleted: something is mounted there (${what})`, `umount ${shellWord(path)}`),
      )
    : []

const unknownSpares = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  root: string,
  open: readonly JournalEntry[],
  codebases: readonly Codebase[],
): Promise<Finding[]> => {
  const names = (await entriesOf(spareDirectory(root))).filter((name) => name !== '.trash')
  const rows = (await Promise.all(codebases.map(({ id }) => context.store.spares.list(id)))).flat()
  const forgotten = (await Promise.all(codebases.map((codebase) => forgottenPaths(context, codebase)))).flat()
  const known = new Set([...rows.map(({ path }) => path), ...open.map(({ data }) => data['path']), ...forgotten])
  return names
    .map((name) => join(spareDirectory(root), name))
    .filter((path) => !known.has(path))
    .map((path) => unknownThing('spares', path))
}

/**
 * Left by a creation that couldn't be undone: nothing else reports it. Worktrees known to git are reported with their
 * repository, and a clone with a token is another home's.
 */
const leftToUser = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'worktreesBase'>,
  root: string,
  open: readonly JournalEntry[],
  codebases: readonly Codebase[],
): Promise<Finding[]> => {
  const live = (await Promise.all(codebases.map(({ id }) => context.store.environments.live(id)))).flat()
  const known = new Set([...live.map(({ path }) => path), ...open.map(({ data }) => data['path'])])
  // One that was taken over from another tool has its layout: worktrees further down, and repositories.
  const isTheirs = root === context.worktreesBase ? () => false : await usedIn(codebases)
  const findings: Finding[] = []
  for (const { name } of codebases) {
    const directory = join(root, name)
    for (const entry of await directoriesIn(directory)) {
      const path = join(directory, entry)
      if (known.has(path) || isTheirs(path) || (await managedRoot(path, context.host)) === undefined) continue
      if (await isAccountedFor(path)) continue
      const remedy = `move what you need elsewhere, then delete it: rm -r ${shellWord(path)}`
      findings.push(
        note(name, `${path} is not tracked: an unfinished worktree was left there, or you put it there`, remedy),
      )
    }
  }
  return findings
}

/** Whether a directory has a worktree or a repository in it, or is in a checkout. */
const usedIn = async (codebases: readonly Codebase[]): Promise<(path: string) => boolean> => {
  const places = codebases.flatMap(({ checkoutPath, repoPath }) => [checkoutPath ?? repoPath, repoPath])
  const worktrees = (await Promise.all(codebases.map(({ repoPath }) => worktreePaths(repoPath)))).flat()
  return (path) =>
    places.some((one) => isInside(one, path)) || [...places, ...worktrees].some((one) => isInside(path, one))
}

const isAccountedFor = async (path: string): Promise<boolean> =>
  (await readWorktreeLink(path)) !== undefined || (await readToken(join(path, '.git'))) !== undefined

const directoriesIn = async (path: string): Promise<string[]> =>
  ((await unlessMissing(readdir(path, { withFileTypes: true }))) ?? [])
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)

/** Those reported with their codebase. */
const forgottenPaths = async (
  context: Pick<IsolationContext, 'store' | 'host'>,
  codebase: Codebase,
): Promise<string[]> =>
  repositoryState(codebase).state === 'there' ? (await forgottenSpares(context, codebase)).map(({ path }) => path) : []

const unknownThing = (about: 'trash' | 'spares', path: string): Finding => {
  const look = "inspect it, and delete it if you don't need it"
  const register = 'run `coppice status` in its repository to register it again'
  return problem(
    about,
    `${path} is not in the database`,
    about === 'spares' ? `${register}; if it is still listed, ${look}` : look,
  )
}

const entriesOf = (path: string): Promise<string[]> =>
  readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
