import { type Dirent, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { unlessMissingSync } from '../domain/missing.ts'

/** A file, with how a person is told about it. */
export type Named = readonly [name: string, file: string]

/** The hooks of a git directory. */
export const hooksIn = (gitDir: string, whose = ''): Named[] => {
  const directory = join(gitDir, 'hooks')
  const names = (unlessMissingSync(() => readdirSync(directory)) ?? []).sort()
  if (names.length > MOST_HOOKS) throw new AppError('unsupported', `${directory} has too many files to look at`)
  return names
    .filter((name) => !name.endsWith('.sample'))
    .map((name) => [`the hook \`${plain(name)}\`${whose}`, join(directory, name)])
}

/** The git directories of submodules, and of theirs, are in `modules`: each has a configuration and hooks of its own. */
export const submodulesIn = (gitDir: string): { configs: Named[]; files: Named[] } => {
  const found: { configs: Named[]; files: Named[] } = { configs: [], files: [] }
  const left: Named[] = [['', join(gitDir, 'modules')]]
  for (let [at, looked] = [left.pop(), 0]; at !== undefined; at = left.pop()) {
    if (++looked > MOST_DIRECTORIES) throw new AppError('unsupported', `${gitDir} has too many submodules to look at`)
    const [name, directory] = at
    const entries = unlessMissingSync(() => readdirSync(directory, { withFileTypes: true })) ?? []
    const whose = ` of submodule \`${plain(name)}\``
    if (name !== '' && entries.some((entry) => entry.name === 'HEAD')) {
      for (const file of ['config', 'config.worktree'])
        found.configs.push([`\`${file}\`${whose}`, join(directory, file)])
      found.files.push([`\`info/attributes\`${whose}`, join(directory, 'info', 'attributes')])
      found.files.push(...hooksIn(directory, whose))
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

/** Not through links: where they lead is another's. */
const below = (name: string, directory: string, entries: readonly Dirent[]): Named[] =>
  entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => [name === '' ? entry.name : `${name}/${entry.name}`, join(directory, entry.name)])

/** Names are an agent's to choose: on one line, and without ending the quotes around them. */
export const plain = (name: string): string => name.replaceAll('`', "'").replaceAll(/[\p{Cc}]/gu, ' ')
