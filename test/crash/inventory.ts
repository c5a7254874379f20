import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { World } from '../helpers/world.ts'

/** Everything there is before a fault, so that it can be looked for after it. */
export type Inventory = {
  /** Blob id → where it was seen. Files of every linked worktree, staged content, what restore points keep. */
  readonly blobs: ReadonlyMap<string, string>
  readonly commits: ReadonlyMap<string, string>
  readonly branches: readonly string[]
  readonly environments: readonly IsolatedEnvironment[]
  /** What Coppice did not make, by path: the canonical checkout, adopted and strangers' worktrees, the neighbours. */
  readonly foreign: ReadonlyMap<string, string>
}

export const takeInventory = async (world: World, foreign: readonly string[] = []): Promise<Inventory> => {
  const { repo, context, codebase } = world
  const blobs = new Map<string, string>()
  const commits = new Map<string, string>()
  for (const { path, head } of worktrees(world).slice(1)) {
    if (head !== undefined) commits.set(head, `HEAD of ${path}`)
    for (const file of filesBelow(path)) blobs.set(blobId(join(path, file)), join(path, file))
  }
  for (const name of adminNames(world)) takeRecord(world, join(repo.commonDir, 'worktrees', name), blobs, commits)
  for (const { path, head } of await clones(world)) {
    if (head !== undefined) commits.set(head, `HEAD of ${path}`)
    for (const file of filesBelow(path)) blobs.set(blobId(join(path, file)), join(path, file))
    for (const [name, sha] of refsIn(world, path)) commits.set(sha, `${name} of ${path}`)
    takeRecord(world, join(path, '.git'), blobs, commits)
  }
  const refs = refsOf(world)
  for (const [name, sha] of refs) {
    if (name.startsWith('refs/coppice/restore/')) takeRestorePoint(world, name, blobs, commits)
    else commits.set(sha, name)
  }
  for (const kept of keptBesideGit(world)) blobs.set(blobId(kept), kept)
  return {
    blobs,
    commits,
    branches: headsIn(refs),
    environments: await context.store.environments.live(codebase.id),
    foreign: new Map([repo.path, ...foreign].map((path) => [path, fingerprint(path)])),
  }
}

/** What git's own record of a worktree, or a clone's git directory, names: its index and its reflog. */
const takeRecord = (world: World, dir: string, blobs: Map<string, string>, commits: Map<string, string>): void => {
  if (existsSync(join(dir, 'index')) && existsSync(join(dir, 'HEAD'))) {
    const staged = world.box.raw(world.box.root, `--git-dir=${dir}`, 'ls-files', '-s')
    // A submodule's entry names a commit of another repository.
    for (const [, id, path] of staged.matchAll(/^(?!160000 )\d+ ([0-9a-f]+) \d\t(.+)$/gm)) {
      if (id !== undefined && !blobs.has(id)) blobs.set(id, `index of ${dir}: ${path}`)
    }
  }
  const log = join(dir, 'logs/HEAD')
  if (!existsSync(log)) return
  for (const [sha] of readFileSync(log, 'utf8').matchAll(/\b[0-9a-f]{40}\b/g)) {
    if (!/^0+$/.test(sha)) commits.set(sha, `reflog of ${dir}`)
  }
}

/** What the point holds. Its own commit is only the wrapping: a removal that is taken back may throw it away. */
const takeRestorePoint = (
  world: World,
  ref: string,
  blobs: Map<string, string>,
  commits: Map<string, string>,
): void => {
  const [sha = '', ...parents] = world.repo.git('rev-list', '--parents', '-1', ref).split(' ')
  const wrapped = world.repo.git('log', '-1', '--format=%s', ref).startsWith('restore point of ')
  for (const commit of wrapped ? parents : [sha]) commits.set(commit, ref)
  for (const [, id, path] of world.repo.git('ls-tree', '-r', ref).matchAll(/^\d+ blob ([0-9a-f]+)\t(.+)$/gm)) {
    if (id !== undefined && !blobs.has(id)) blobs.set(id, `${ref}: ${path}`)
  }
}

export type ListedWorktree = {
  readonly path: string
  readonly head: string | undefined
  readonly branch: string | undefined
}

/** By git's own account. The main working tree is the first. */
export const worktrees = (world: World): ListedWorktree[] =>
  world.repo
    .git('worktree', 'list', '--porcelain')
    .split('\n\n')
    .filter((block) => block.trim() !== '')
    .map((block) => {
      const field = (name: string): string | undefined => new RegExp(`^${name} (.+)$`, 'm').exec(block)?.[1]
      return {
        path: field('worktree') ?? '',
        head: field('HEAD'),
        branch: field('branch'),
      }
    })

/** Environments that are clones and are there. */
export const clones = async (world: World): Promise<ListedWorktree[]> =>
  (await world.context.store.environments.live(world.codebase.id))
    .filter(({ provider, path }) => provider === 'clone' && existsSync(join(path, '.git/HEAD')))
    .map(({ path }) => {
      const head = readFileSync(join(path, '.git/HEAD'), 'utf8').trim()
      const branch = head.startsWith('ref: ') ? head.slice('ref: '.length) : undefined
      return { path, branch, head: branch === undefined ? head : refsIn(world, path).get(branch) }
    })

export const refsOf = (world: World): Map<string, string> => refsIn(world, world.repo.path)

const refsIn = ({ box }: World, path: string): Map<string, string> =>
  new Map(
    box
      .raw(path, 'for-each-ref', '--format=%(refname) %(objectname)')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]),
  )

const headsIn = (refs: ReadonlyMap<string, string>): string[] =>
  [...refs.keys()].filter((name) => name.startsWith('refs/heads/'))

export const branchesOf = (world: World): string[] => headsIn(refsOf(world))

export const adminNames = ({ repo }: World): string[] => namesIn(join(repo.commonDir, 'worktrees'))

export const namesIn = (path: string): string[] => (existsSync(path) ? readdirSync(path).sort() : [])

/** Files that restore points hold beside git; `admin` and `point.json` are about the tree, not of it. */
export const keptBesideGit = ({ context }: World): string[] =>
  namesIn(join(context.home, 'restore')).flatMap((id) =>
    ['ignored', 'nested'].flatMap((kind) => {
      const directory = join(context.home, 'restore', id, kind)
      return filesBelow(directory).map((file) => join(directory, file))
    }),
  )

/** Relative paths of all files and links, without any `.git`. */
export const filesBelow = (directory: string): string[] => {
  const found: string[] = []
  const visit = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.name === '.git') continue
      if (entry.isDirectory()) visit(join(path, entry.name))
      else found.push(relative(directory, join(path, entry.name)))
    }
  }
  if (existsSync(directory) && lstatSync(directory).isDirectory()) visit(directory)
  return found.sort()
}

/** As git would call the file's bytes. */
export const blobId = (path: string): string => {
  const bytes = lstatSync(path).isSymbolicLink() ? Buffer.from(readlinkSync(path)) : readFileSync(path)
  return createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
}

/** Files, modes, HEAD and index: whatever a person would notice. */
export const fingerprint = (path: string): string => {
  const hash = createHash('sha256')
  for (const file of filesBelow(path))
    hash.update(`${file} ${lstatSync(join(path, file)).mode} ${blobId(join(path, file))}\n`)
  const dotGit = join(path, '.git')
  if (!existsSync(dotGit)) return hash.digest('hex')
  const gitDir = lstatSync(dotGit).isDirectory() ? dotGit : readFileSync(dotGit, 'utf8').trim().replace('gitdir: ', '')
  for (const name of ['HEAD', 'index']) {
    const file = join(gitDir, name)
    hash.update(existsSync(file) ? blobId(file) : `no ${name}`)
  }
  return hash.digest('hex')
}
