import { isSha, type Sha, toSha } from '../domain/names.ts'
import { catFiles } from './blobs.ts'
import type { Git, Repo, Tree } from './door.ts'
import { lostCommits } from './snapshot.ts'

/** The objects that a list of ids leads to. */
export type NamedObjects = {
  readonly commits: readonly Sha[]
  /** Annotated tags with their content: trees and commits can't hold them. */
  readonly tags: ReadonlyMap<Sha, Buffer>
  /** Trees and blobs. Some commit may have them too: that isn't checked. */
  readonly others: readonly { readonly sha: Sha; readonly type: 'tree' | 'blob' }[]
}

const noObjects: NamedObjects = { commits: [], tags: new Map(), others: [] }

/** All of them, referenced elsewhere or not: a restored ref needs its objects even if a branch is deleted meanwhile. */
export const namedObjects = async (git: Git, at: Repo | Tree, names: readonly string[]): Promise<NamedObjects> => {
  const types = await objectTypes(git, at, names)
  const tags = await tagsFrom(git, at, ofType(types, 'tag'), types)
  return { commits: ofType(types, 'commit'), tags, others: treesAndBlobs(types) }
}

/**
 * Only commits and tags that no branch, tag or remote-tracking ref holds. `names` are full or abbreviated ids. Missing
 * and ambiguous ones are skipped: a reflog outlives its objects.
 */
export const unreferencedObjects = async (
  git: Git,
  at: Repo | Tree,
  names: readonly string[],
  except: readonly Sha[],
): Promise<NamedObjects> => {
  if (names.length === 0) return noObjects
  const whole = new Set(names.filter(isSha))
  const [lost, types] = await Promise.all([lostCommits(git, at, [...whole], except), objectTypes(git, at, names)])
  const tags = await tagsFrom(git, at, ofType(types, 'tag'), types)
  const others = treesAndBlobs(types)
  // Found by abbreviation, or through a tag.
  const further = ofType(types, 'commit').filter((sha) => !whole.has(sha))
  const commits = [...lost, ...(await lostCommits(git, at, further, except))]
  if (tags.size === 0) return { commits, tags, others }
  const held = await taggedObjects(git, at)
  return { commits, tags: new Map([...tags].filter(([sha]) => !held.has(sha))), others }
}

const ofType = (types: ReadonlyMap<Sha, string>, wanted: string): Sha[] =>
  [...types].flatMap(([sha, type]) => (type === wanted ? [sha] : []))

const treesAndBlobs = (types: ReadonlyMap<Sha, string>): NamedObjects['others'] =>
  [...types].flatMap(([sha, type]) => (type === 'tree' || type === 'blob' ? [{ sha, type }] : []))

/** The types of those objects that exist. */
export const objectTypes = async (git: Git, at: Repo | Tree, names: readonly string[]): Promise<Map<Sha, string>> => {
  if (names.length === 0) return new Map()
  const args = ['cat-file', '--batch-check=%(objectname) %(objecttype)']
  const { stdout } = await git.run({ operation: 'cat-file', at, args, stdin: `${names.join('\n')}\n` })
  // Other lines: "<name> missing" and "<name> ambiguous".
  const found = stdout.split('\n').map((line) => line.split(' '))
  return new Map(
    found.flatMap(([sha = '', type = '']): [Sha, string][] =>
      isSha(sha) && /^(?:commit|tag|tree|blob)$/.test(type) ? [[toSha(sha), type]] : [],
    ),
  )
}

/** The commit that each of these leads to; undefined if there is no such commit. */
export const commitsOf = async (git: Git, at: Repo | Tree, names: readonly Sha[]): Promise<(Sha | undefined)[]> => {
  if (names.length === 0) return []
  const args = ['cat-file', '--batch-check=%(objectname)']
  const stdin = names.map((name) => `${name}^{commit}\n`).join('')
  const lines = (await git.run({ operation: 'cat-file', at, args, stdin })).stdout.split('\n')
  return names.map((_, i) => {
    const line = lines[i] ?? ''
    return isSha(line) ? line : undefined
  })
}

/** Follows tags of tags, and adds what they point to to `types`. */
const tagsFrom = async (
  git: Git,
  at: Repo | Tree,
  first: readonly Sha[],
  types: Map<Sha, string>,
): Promise<Map<Sha, Buffer>> => {
  const tags = new Map<Sha, Buffer>()
  for (let pending = first; pending.length > 0;) {
    const targets = new Set<string>()
    await catFiles(
      git,
      at,
      pending,
      (sha, content) => {
        tags.set(toSha(sha), content)
        const target = /^object ([0-9a-f]+)\n/.exec(content.toString('latin1', 0, 100))?.[1]
        if (target !== undefined) targets.add(target)
      },
      { type: 'tag' },
    )
    const found = await objectTypes(git, at, [...targets])
    pending = ofType(found, 'tag').filter((sha) => !tags.has(sha))
    for (const [sha, type] of found) types.set(sha, type)
  }
  return tags
}

/** What refs below `refs/tags` point to: after fetching tags, FETCH_HEAD lists each of them. */
export const taggedObjects = async (git: Git, at: Repo | Tree): Promise<ReadonlySet<string>> => {
  const args = ['for-each-ref', '--format=%(objectname)', 'refs/tags']
  return new Set((await git.run({ operation: 'for-each-ref', at, args })).stdout.split('\n'))
}
