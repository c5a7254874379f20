import { type Dirent, opendirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../domain/errors.ts'
import { unlessMissingSync } from '../../domain/missing.ts'
import { lstatIfThere } from '../../process/files/lstat-if-there.ts'
import type { Budget } from './git-budget.ts'

/** A file, and its name in reports. */
export type Named = readonly [name: string, file: string]

export const hooksIn = (gitDir: string, budget: Budget, whose = ''): Named[] => {
  const directory = join(gitDir, 'hooks')
  return entriesIn(directory, MOST_HOOKS, budget)
    .map(({ name }) => name)
    .filter((name) => !name.endsWith('.sample'))
    .toSorted()
    .map((name) => [`the hook \`${plain(name)}\`${whose}`, join(directory, name)])
}

/** Git directories of submodules, recursively, are in `modules`: each has its own configuration and hooks. */
export const submodulesIn = async (gitDir: string, budget: Budget): Promise<{ configs: Named[]; files: Named[] }> => {
  const found: { configs: Named[]; files: Named[] } = { configs: [], files: [] }
  const left: Named[] = [['', join(gitDir, 'modules')]]
  for (let [at, looked] = [left.pop(), 0]; at !== undefined; at = left.pop()) {
    if (++looked > MOST_DIRECTORIES) throw new AppError('unsupported', `${gitDir} has too many submodules to check`)
    await budget.giveWay()
    const [name, directory] = at
    const entries = entriesIn(directory, MOST_DIRECTORIES, budget)
    const whose = ` of submodule \`${plain(name)}\``
    if (name !== '' && entries.some((entry) => entry.name === 'HEAD')) {
      for (const file of ['config', 'config.worktree'])
        found.configs.push([`\`${file}\`${whose}`, join(directory, file)])
      found.files.push([`\`info/attributes\`${whose}`, join(directory, 'info', 'attributes')])
      found.files.push(...hooksIn(directory, budget, whose))
      left.push(
        ...below(
          name,
          directory,
          entries.filter((entry) => entry.name === 'modules'),
        ),
      )
    } else left.push(...below(name, directory, entries))
    for (const entry of entries.filter((one) => one.isSymbolicLink())) {
      found.files.push([
        `the link \`${plain(entry.name)}\`${name === '' ? ' in `modules`' : whose}`,
        join(directory, entry.name),
      ])
    }
  }
  return found
}

const MOST_DIRECTORIES = 2_000
const MOST_HOOKS = 500
/** About 1,000 names, which are read faster at once. */
const SMALL_BYTES = 32 * 1024
/** Names per kernel call. */
const NAMES_AT_ONCE = 64

const entriesIn = (directory: string, most: number, budget: Budget): Dirent[] => {
  const stat = lstatIfThere(directory)
  if (stat === undefined) return []
  const tooMany = (): AppError => new AppError('unsupported', `${directory} has too many files to check`)
  // A link's size says nothing about the directory that it leads to.
  if (!stat.isDirectory() || stat.size > SMALL_BYTES) return entriesInChunks(directory, most, budget, tooMany)
  const entries = unlessMissingSync(() => readdirSync(directory, { withFileTypes: true })) ?? []
  budget.takeItems(entries.length)
  if (entries.length > most) throw tooMany()
  return entries
}

/** A directory can have millions of names, and reading all would block the thread. */
const entriesInChunks = (directory: string, most: number, budget: Budget, tooMany: () => AppError): Dirent[] => {
  const listing = unlessMissingSync(() => opendirSync(directory, { bufferSize: NAMES_AT_ONCE }))
  if (listing === undefined) return []
  try {
    const entries: Dirent[] = []
    for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
      budget.takeItems(1)
      if (entries.push(entry) > most) throw tooMany()
    }
    return entries
  } finally {
    listing.closeSync()
  }
}

/** Doesn't follow links: their targets aren't ours. */
const below = (name: string, directory: string, entries: readonly Dirent[]): Named[] =>
  entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => [name === '' ? entry.name : `${name}/${entry.name}`, join(directory, entry.name)])

/** Agents choose names and paths: show them on one line, at a readable length, without closing the quotes. */
export const plain = (name: string, mostCharacters = 300): string => {
  const line = name
    .slice(0, mostCharacters)
    .replaceAll('`', "'")
    .replaceAll(/[\p{Cc}]/gu, ' ')
  return name.length > mostCharacters ? `${line}…` : line
}
