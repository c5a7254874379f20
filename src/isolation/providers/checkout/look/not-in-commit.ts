import type { RepoConfig } from '../../../../domain/config/repository.ts'
import type { Codebase, IsolatedEnvironment } from '../../../../domain/environment.ts'
import type { Sha } from '../../../../domain/names.ts'
import type { Fact } from '../../../../domain/removal/reason.ts'
import { bytesBelow, rawBytes, shownPath, toRaw } from '../../../../domain/text/raw-path.ts'
import { trimEndOf } from '../../../../domain/text/trim-end.ts'
import { withCheckoutCopy } from '../../../../git/checkout-copy.ts'
import type { Tree } from '../../../../git/door.ts'
import { readIndexState, skippedFiles } from '../../../../git/hidden.ts'
import type { Setting } from '../../../../git/neutral.ts'
import { resolveCommit } from '../../../../git/refs.ts'
import { readStatus } from '../../../../git/status.ts'
import { listDirectory } from '../../../../process/files/list-directory.ts'
import { createTimeSlice } from '../../../../process/time-slice.ts'
import type { IsolationContext } from '../../../context.ts'
import { checkoutSettings } from '../checkout-settings.ts'
import { isOurAddition } from '../provision/additions.ts'
import { convertedEdits } from './converted-edits.ts'
import { readDirt } from './dirt.ts'
import { coveredBy, repositoriesInside } from './repositories-inside.ts'
import { walk } from '../../../walk.ts'
import { submoduleTree } from './submodules.ts'
import { lstatIfThere } from '../../../../process/files/lstat-if-there.ts'

export type Subject = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly tree: Tree
  readonly config: RepoConfig
  readonly commit: Sha
}

/**
 * What a worktree holds that isn't in its commit, so that nobody who reviewed the commit has seen it. An untrusted
 * agent may have written any of it, and git's index too: so every file is read again.
 */
export const notInCommit = async (
  context: IsolationContext,
  subject: Subject,
  { ignored }: { readonly ignored: boolean },
): Promise<Fact[]> => {
  const { codebase, environment, tree, config, commit } = subject
  const dirt = await readDirt(context, codebase, environment, tree, config)
  const settings = checkoutSettings(environment.trust)
  const known = new Set([...dirt.changed, ...dirt.hidden])
  const read = await differsByContent(context, tree, { commit, settings, known, doubtful: dirt.converted })
  const changed = new Set([...known, ...read])
  // Git runs commands from a repository's configuration, even if that repository is hidden among tracked files.
  const listed = [...dirt.untracked, ...dirt.ignored]
  const nested = await nestedGitlinks(context, tree)
  const inside =
    nested.length === 0
      ? dirt
      : await repositoriesInside(context, tree, await walk(tree.path, context.clock()), {
          gitlinks: [...dirt.submodulePaths, ...nested],
          untracked: dirt.untracked,
          ignored: dirt.ignored,
          recordedPath: environment.path,
        })
  const special = dirt.special.filter(({ kind }) => kind !== 'a socket')
  const planted = [...inside.repositories, ...inside.worktrees, ...special].filter(
    ({ path }) => coveredBy(path, listed) === undefined,
  )
  const embedded = planted.filter(({ path }) => dirt.submodulePaths.includes(path))
  const others = planted.filter((one) => !embedded.includes(one)).map(({ path }) => path)
  const foreign = ignored ? await ignoredByOthers(context, subject, dirt.ignored) : []
  const files = (state: 'changed' | 'untracked' | 'ignored', found: readonly string[]): Fact[] =>
    found.length === 0 ? [] : [{ kind: 'not-in-commit', state, paths: found.map(shownPath) }]
  return [
    ...files('changed', [...changed]),
    ...files('untracked', [...dirt.untracked, ...others]),
    ...files('ignored', foreign),
    ...dirt.problems.filter(({ kind }) => kind === 'operation' || kind === 'submodule'),
    ...embedded.map(({ path }): Fact => ({ kind: 'submodule', path: shownPath(path), problem: 'has changes' })),
  ]
}

type Compared = {
  readonly commit: Sha
  readonly settings: readonly Setting[]
  /** Known to differ; may be left out of the answer. */
  readonly known?: ReadonlySet<string>
  /** Clean by git's filters, which may hide other bytes. */
  readonly doubtful?: readonly string[]
}

/** By a fresh index, which has neither times nor flags that somebody could have set. Raw paths. */
const differsByContent = async (
  context: IsolationContext,
  tree: Tree,
  { commit, settings, known = new Set(), doubtful = [] }: Compared,
): Promise<string[]> => {
  const { git } = context
  const compare = async ({ indexFile }: { readonly indexFile: string }): Promise<string[]> => {
    const { changed, unmerged } = await readStatus(git, tree, { indexFile })
    return [...changed, ...unmerged].map(({ bytes }) => toRaw(bytes))
  }
  const withAll = { settings: [...settings, ['core.sparseCheckout', 'false'] as const] }
  const differing = await withCheckoutCopy(git, tree, commit, compare, withAll)
  const kindOf = (path: string): 'missing' | 'file' | 'other' => {
    const found = lstatIfThere(bytesBelow(tree.path, path))
    return found === undefined ? 'missing' : found.isFile() ? 'file' : 'other'
  }
  const missing = differing.filter((path) => kindOf(path) === 'missing')
  const sparse = new Set(missing.length === 0 ? [] : (await skippedFiles(git, tree)).map(({ bytes }) => toRaw(bytes)))
  const gone = missing.filter((path) => !sparse.has(path))
  // Git calls some files changed right after it has written them, such as CRLF in a `text` file.
  const paths = [...new Set([...differing, ...doubtful])].filter((path) => kindOf(path) === 'file' && !known.has(path))
  const edited = await convertedEdits(context, tree, { commit, paths, settings })
  // A link, a directory, or a submodule at another commit.
  const found = [...gone, ...edited, ...differing.filter((path) => kindOf(path) === 'other')]
  for (const { bytes } of (await readIndexState(git, tree)).gitlinks) {
    const path = toRaw(bytes)
    const inner = await submoduleTree(tree, path)
    const head = inner && (await resolveCommit(git, inner, 'HEAD'))
    if (inner === undefined || head === undefined) continue
    const below = await differsByContent(context, inner, { commit: head, settings })
    found.push(...below.map((name) => `${path}/${name}`))
  }
  return found
}

/** Without what Coppice put there: copied files, links, the issue store. A directory is one entry, ending in `/`. */
const ignoredByOthers = async (
  context: IsolationContext,
  { codebase, tree, config }: Subject,
  ignored: readonly string[],
): Promise<string[]> => {
  const slice = createTimeSlice()
  const isOurs = async (path: string): Promise<boolean> => {
    if (slice.isOver()) await slice.next()
    const at = bytesBelow(tree.path, path)
    const found = lstatIfThere(at)
    if (found === undefined) return true
    if (!found.isDirectory()) {
      const name = shownPath(path)
      // Nothing of ours has a name that isn't UTF-8.
      return rawBytes(path).equals(Buffer.from(name)) && isOurAddition(context, codebase, tree, config, name)
    }
    for (const { name } of await listDirectory(at, { size: found.size, slice })) {
      if (!(await isOurs(`${path}/${name}`))) return false
    }
    return true
  }
  const others: string[] = []
  for (const path of ignored) if (!(await isOurs(trimEndOf(path, '/')))) others.push(path)
  return others
}

/** Submodules of submodules, at any depth. Raw paths. */
const nestedGitlinks = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree, prefix = ''): Promise<string[]> => {
  const found: string[] = []
  for (const { bytes } of (await readIndexState(git, tree)).gitlinks) {
    const path = toRaw(bytes)
    if (prefix !== '') found.push(`${prefix}${path}`)
    const inner = await submoduleTree(tree, path)
    if (inner !== undefined) found.push(...(await nestedGitlinks({ git }, inner, `${prefix}${path}/`)))
  }
  return found
}
