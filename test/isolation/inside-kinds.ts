import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { GateName } from '../../src/domain/removal/gates.ts'
import { everyCase } from '../helpers/every-case.ts'
import type { World } from '../helpers/world.ts'
import { canMount } from '../helpers/with-mounts.ts'

/** Something inside a tree that must outlive the tree. */
export type Kind = {
  readonly name: string
  readonly gate: GateName
  /** Puts it there; answers whether it is still whole. */
  readonly plant: (world: World, tree: string) => () => boolean
}

/** So that each is in an ignored directory. */
export const ignoreFile = 'ign/\nnode_modules/\n.venv/\n.claude/\n'

let planted = 0

const mount = (at: string, ...args: string[]): void => {
  execFileSync('mount', [...args, at])
}

/** Before the sandbox is deleted by whoever does cross mounts. A mount may have moved with the tree. */
export const unmountAll = (root: string): void => {
  const table = canMount ? readFileSync('/proc/self/mountinfo', 'utf8') : ''
  const unescaped = (text: string): string =>
    text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
  const points = table.split('\n').map((line) => unescaped(line.split(' ')[4] ?? ''))
  for (const at of points.filter((one) => one.startsWith(`${root}/`)).toReversed()) execFileSync('umount', ['-l', at])
}

/** A directory outside of every tree, with something precious in it. */
const outside = (world: World): { readonly path: string; readonly isWhole: () => boolean } => {
  const path = world.box.path(`outside-${(planted += 1)}`)
  mkdirSync(path)
  const gold = join(path, 'gold')
  writeFileSync(gold, 'gold\n')
  return { path, isWhole: () => existsSync(gold) && readFileSync(gold, 'utf8') === 'gold\n' }
}

const directory = (tree: string, name: string): string => {
  mkdirSync(join(tree, name), { recursive: true })
  return join(tree, name)
}

const bindMountAt =
  (name: string): Kind['plant'] =>
  (world, tree) => {
    const { path, isWhole } = outside(world)
    mount(directory(tree, name), '--bind', path)
    return isWhole
  }

const commitIn = (world: World, path: string): void => {
  writeFileSync(join(path, 'work'), 'work\n')
  world.box.raw(path, 'add', 'work')
  world.box.raw(path, 'commit', '-q', '-m', 'work')
}

/** Its files and its commit, wherever the repository keeps that. */
const isWorktreeWhole = (world: World, path: string) => {
  const commit = world.box.raw(path, 'rev-parse', 'HEAD')
  return (): boolean => {
    try {
      return world.box.raw(path, 'rev-parse', 'HEAD') === commit && world.box.raw(path, 'status', '--short') === ''
    } catch {
      return false
    }
  }
}

const mounts: readonly Kind[] = [
  { name: 'a bind mount of the same device', gate: 'no-mount', plant: bindMountAt('ign/data') },
  { name: 'a bind mount on node_modules', gate: 'no-mount', plant: bindMountAt('node_modules') },
  { name: 'a bind mount whose name has a space and a newline', gate: 'no-mount', plant: bindMountAt('ign/a b\nc\\') },
  {
    name: 'a tmpfs',
    gate: 'no-mount',
    plant: (world, tree) => {
      const { path } = outside(world)
      const at = directory(tree, 'ign/volume')
      mount(at, '-t', 'tmpfs', 'none')
      writeFileSync(join(at, 'gold'), 'gold\n')
      mount(path, '--bind', at)
      return () => existsSync(join(path, 'gold'))
    },
  },
  {
    name: 'a mount on a file',
    gate: 'no-mount',
    plant: (world, tree) => {
      const { path, isWhole } = outside(world)
      const file = join(directory(tree, 'ign'), 'file')
      writeFileSync(file, '')
      mount(file, '--bind', join(path, 'gold'))
      return () => isWhole() && readFileSync('/proc/self/mountinfo', 'utf8').includes(`/ign/file `)
    },
  },
  {
    name: 'a mount on the tree itself',
    gate: 'no-mount',
    plant: (_world, tree) => {
      writeFileSync(join(directory(tree, 'ign'), 'gold'), 'gold\n')
      mount(tree, '--bind', tree)
      return () => existsSync(join(tree, 'ign/gold'))
    },
  },
]

const worktrees: readonly Kind[] = [
  {
    name: 'a linked worktree',
    gate: 'no-worktree-inside',
    plant: (world, tree) => {
      const path = join(tree, '.claude/worktrees/a')
      mkdirSync(dirname(path), { recursive: true })
      world.repo.git('worktree', 'add', '-q', '--detach', path)
      commitIn(world, path)
      return isWorktreeWhole(world, path)
    },
  },
  {
    name: 'a linked worktree of another repository',
    gate: 'no-worktree-inside',
    plant: (world, tree) => {
      const other = world.box.repo(`other-${(planted += 1)}`)
      const path = join(directory(tree, 'node_modules/deep'), 'a')
      other.git('worktree', 'add', '-q', '--detach', path)
      commitIn(world, path)
      return isWorktreeWhole(world, path)
    },
  },
]

const repositories: readonly Kind[] = [
  {
    name: 'a repository deep in node_modules',
    gate: 'no-repository-inside',
    plant: (world, tree) => {
      const path = directory(tree, 'node_modules/@scope/lib')
      world.box.raw(path, 'init', '-q')
      commitIn(world, path)
      return isWorktreeWhole(world, path)
    },
  },
  {
    name: 'a bare repository',
    gate: 'no-repository-inside',
    plant: (world, tree) => {
      const path = join(directory(tree, '.venv/src'), 'pkg')
      world.box.raw(world.box.root, 'clone', '-q', '--bare', world.repo.path, path)
      return () => existsSync(join(path, 'HEAD')) && world.box.raw(path, 'rev-parse', 'HEAD') === world.repo.sha()
    },
  },
]

export const kinds: readonly Kind[] = [...(canMount ? mounts : []), ...worktrees, ...repositories]
/** What a restore point can hold. */
export const keepable = new Set(repositories.map(({ name }) => name))
export const mountOnTree = 'a mount on the tree itself'

/** Where they are planted. */
const places = [
  'an environment',
  'a review',
  'remove.saved',
  'remove.moved',
  'remove.checked',
  'a creation',
  'a spare that cannot serve',
  'a spare',
  'the trash',
  'a clone',
] as const
export type Place = (typeof places)[number]

/**
 * Every kind at every place takes long (`npm run test:every-case`). Else one of each sort at every place, and the members of
 * a sort take turns; the mount on the tree itself, which behaves like no other, is always among them.
 */
export const kindsAt = (place: Place): readonly Kind[] => {
  if (everyCase) return kinds
  const turn = places.indexOf(place)
  const sorts = [mounts.filter(({ name }) => name !== mountOnTree), worktrees, repositories]
  const chosen = new Set([mountOnTree, ...sorts.map((sort) => sort[turn % sort.length]?.name)])
  return kinds.filter(({ name }) => chosen.has(name))
}
