import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../../../domain/errors.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { type Sha, toSha } from '../../../../domain/names.ts'
import type { RestorePoint } from '../../../../domain/removal/restore-point.ts'
import { catFiles } from '../../../../git/blobs.ts'
import { readBranchReflog } from '../../../../git/reflog.ts'
import type { Repo, Tree } from '../../../../git/door.ts'
import { maxLogBytes } from '../../../../git/file-limits.ts'
import { mayMention } from '../../../../git/index-scan.ts'
import { namedObjects, type NamedObjects, unreferencedObjects } from '../../../../git/named-objects.ts'
import { commitTree, type NewCommit, readTree, writeObject, writeTree } from '../../../../git/objects.ts'
import { privateRefs } from '../../../../git/private-refs.ts'
import { resolvedConflicts } from '../../../../git/snapshot.ts'
import { readUntrusted } from '../../../../process/files/read-untrusted.ts'
import type { IsolationContext } from '../../../context.ts'

/*
 * Git's record of a worktree may be all that names certain objects: in its own refs and reflogs, in ORIG_HEAD,
 * FETCH_HEAD and the like, in a rebase's todo list. Without the record, the next `git gc` deletes them.
 */

/** What only the record or the branch's reflog names. `at`: where to ask if the record is incomplete. */
export const namedIn = async (
  { git }: Pick<IsolationContext, 'git'>,
  tree: Tree,
  branch: string | undefined,
  except: readonly Sha[],
  at: Tree = tree,
): Promise<NamedObjects> => {
  const named = new Set(await idsIn(tree, branch))
  if (at === tree) {
    for (const { sha } of await privateRefs(git, tree)) named.add(sha)
    // `git checkout --merge` restores a conflict from these.
    const resolved = mayMention(join(tree.gitDir, 'index'), 'REUC') ? await resolvedConflicts(git, tree) : []
    for (const sha of resolved) named.add(sha)
  }
  for (const sha of except) named.delete(sha)
  return unreferencedObjects(git, at, [...named], except)
}

/** What its own refs and the other side of a merge or cherry-pick in progress lead to, whatever else holds it. */
export const heldByRefs = async ({ git }: Pick<IsolationContext, 'git'>, tree: Tree): Promise<NamedObjects> => {
  const named = new Set<string>((await privateRefs(git, tree)).map(({ sha }) => sha))
  for (const name of ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'REBASE_HEAD', 'NOTES_MERGE_PARTIAL']) {
    const text = (await readUntrusted(join(tree.gitDir, name)))?.toString('latin1') ?? ''
    for (const [, id = ''] of text.matchAll(wholeIds)) named.add(id)
  }
  return namedObjects(git, tree, [...named])
}

export const together = (a: NamedObjects, b: NamedObjects): NamedObjects => ({
  commits: [...a.commits, ...b.commits],
  tags: new Map([...a.tags, ...b.tags]),
  others: [...new Map([...a.others, ...b.others].map((one) => [one.sha, one])).values()],
})

/** A commit whose tree holds tags, as blobs of their content, and every other object that isn't a commit. */
export const holdNamed = async (
  context: Pick<IsolationContext, 'git' | 'clock'>,
  repo: Repo,
  { tags, others }: NamedObjects,
): Promise<Sha | undefined> => {
  if (tags.size === 0 && others.length === 0) return undefined
  const entries = others.map(({ sha, type }) => ({ name: `${type}-${sha}`, type, sha }))
  for (const [sha, content] of tags) {
    const blob = await writeObject(context.git, repo, 'blob', content, { durable: true })
    entries.push({ name: `tag-${sha}`, type: 'blob', sha: blob })
  }
  const tree = await writeTree(context.git, repo, entries, { durable: true })
  const message = "Objects that git's record of a worktree names\n"
  return commitTree(context.git, repo, { tree, parents: [], message, by: author(context) }, { durable: true })
}

export const author = ({ clock }: Pick<IsolationContext, 'clock'>): NewCommit['by'] => ({
  name: 'Coppice',
  email: 'coppice@localhost',
  at: clock(),
})

/** Call before restoring the refs to them. */
export const bringTags = async (
  context: Pick<IsolationContext, 'git'>,
  repo: Repo,
  { contents }: RestorePoint,
): Promise<void> => {
  if (contents.tags === undefined) return
  const entries = await readTree(context.git, repo, contents.tags)
  const tags = new Map(entries.filter(({ path }) => path.startsWith('tag-')).map(({ path, sha }) => [sha, path]))
  await catFiles(context.git, repo, [...tags.keys()], async (blob, content) => {
    const sha = await writeObject(context.git, repo, 'tag', content)
    if (tags.get(toSha(blob)) !== `tag-${sha}`)
      throw new AppError('restore-failed', `the tag ${sha} was not kept as it was`)
  })
}

/** Every object id in the files of git's record and in the branch's reflog. */
const idsIn = async (tree: Tree, branch: string | undefined): Promise<ReadonlySet<string>> => {
  const found = new Set<string>()
  const take = (text: string, pattern = wholeIds): void => {
    for (const [, id = ''] of text.matchAll(pattern)) if (!/^0+$/.test(id)) found.add(id)
  }
  const visit = async (directory: string): Promise<void> => {
    for (const entry of (await unlessMissing(readdir(directory, { withFileTypes: true }))) ?? []) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && !(directory === tree.gitDir && withoutIds.has(entry.name))) await visit(path)
      if (!entry.isFile() || /^(index|sharedindex\.|coppice$|locked$)/.test(entry.name)) continue
      const text = (await readUntrusted(path, { maxBytes: maxLogBytes }))?.toString('latin1') ?? ''
      take(text)
      if (/^(?:todo|done|git-rebase-todo(?:\.backup)?)$/.test(entry.name)) take(text, abbreviatedIds)
    }
  }
  await visit(tree.gitDir)
  if (branch !== undefined) take((await readBranchReflog(tree, branch))?.toString('latin1') ?? '')
  return found
}

/** Submodules' git directories, and what a clone has beside its record: objects, and the content of large files. */
const withoutIds: ReadonlySet<string> = new Set(['modules', 'objects', 'lfs', 'annex'])

const wholeIds = /\b([0-9a-f]{40}(?:[0-9a-f]{24})?)\b/g
/** `pick 1a2b3c4 subject`: git abbreviates ids in a cherry-pick's or revert's list. */
const abbreviatedIds = /^[a-z]+ (?:-[cC] )?([0-9a-f]{4,39})\b/gm
