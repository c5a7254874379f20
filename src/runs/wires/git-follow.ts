import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { AppError } from '../../domain/errors.ts'
import type { Budget } from './git-budget.ts'
import { type ConfigFile, readConfig, valuesOf } from './git-config-file.ts'
import { type Named, plain } from './git-places.ts'

/** A configuration file that git reads. */
export type ConfigSource = {
  /** Shown in reports. */
  readonly name: string
  readonly file: string
  readonly config: ConfigFile
  /** The base of a relative `core.hooksPath`; undefined: a worktree, whose files are the agent's work. */
  readonly hooksFrom: string | undefined
}

/** Variables that locate the user's files. */
export type UserFiles = { readonly HOME?: string | undefined; readonly XDG_CONFIG_HOME?: string | undefined }

const MOST_INCLUDED = 50
const MOST_HOOK_DIRECTORIES = 10

/** All files included by these, recursively, whatever the condition. */
export const includedBy = async (
  sources: readonly ConfigSource[],
  user: UserFiles,
  budget: Budget,
): Promise<readonly ConfigSource[]> => {
  const found: ConfigSource[] = []
  for (const source of sources) {
    const included = await includedByOne(source, user, budget)
    found.push(...included)
  }
  return found
}

const includedByOne = async (source: ConfigSource, user: UserFiles, budget: Budget): Promise<ConfigSource[]> => {
  const found: ConfigSource[] = []
  const seen = new Set([source.file])
  const ahead = [source]
  for (let at = ahead.pop(); at !== undefined; at = ahead.pop()) {
    const { file: includer, config } = at
    for (const file of valuesOf(config, isInclude).flatMap((path) => placesOf(path, dirname(includer), user))) {
      if (seen.has(file)) continue
      seen.add(file)
      if (found.length === MOST_INCLUDED)
        throw new AppError('unsupported', `${plain(source.file)} includes too many files`)
      const name = `\`${plain(file)}\`, included by ${source.name}`
      const included = { ...source, name, file, config: await readConfig(file, { followLink: true }, budget) }
      found.push(included)
      ahead.push(included)
    }
  }
  return found
}

const isInclude = (key: string): boolean => key === 'include.path' || /^includeif\..*\.path$/s.test(key)

/** The user's own configuration; read only to see which hooks apply. */
export const userConfigs = async (user: UserFiles, budget: Budget): Promise<readonly ConfigSource[]> => {
  const { HOME: home } = user
  // To git, empty means unset.
  const named = user.XDG_CONFIG_HOME === '' ? undefined : user.XDG_CONFIG_HOME
  const configHome = named ?? (home === undefined ? undefined : join(home, '.config'))
  const files = [
    '/etc/gitconfig',
    ...(configHome === undefined ? [] : [join(configHome, 'git', 'config')]),
    ...(home === undefined ? [] : [join(home, '.gitconfig')]),
  ]
  const found: ConfigSource[] = []
  for (const file of files) {
    const config = await readConfig(file, { followLink: true }, budget)
    found.push({ name: `\`${file}\``, file, config, hooksFrom: undefined })
  }
  return found
}

/** Hooks in directories named by `core.hooksPath` instead of the repository's own. */
export const hooksElsewhere = (sources: readonly ConfigSource[], user: UserFiles): Named[] => {
  const directories = new Set(
    sources.flatMap(({ config, hooksFrom }) =>
      valuesOf(config, (key) => key === 'core.hookspath').flatMap((path) => placesOf(path, hooksFrom, user)),
    ),
  )
  if (directories.size > MOST_HOOK_DIRECTORIES) throw new AppError('unsupported', 'core.hooksPath has too many values')
  return [...directories].flatMap((directory) =>
    HOOKS.map((name): Named => [`the hook \`${name}\` in \`${plain(directory)}\``, join(directory, name)]),
  )
}

/** Git before 2.45 reads any blank in a value as a space. */
const placesOf = (path: string, from: string | undefined, user: UserFiles): string[] =>
  [...new Set([path, path.replaceAll(/[\t\r]/g, ' ')])].flatMap((one) => placeOf(one, from, user) ?? [])

/** Undefined: nowhere to look, or nowhere an agent could write. */
const placeOf = (path: string, from: string | undefined, { HOME: home }: UserFiles): string | undefined => {
  // `%(prefix)/` is where git is installed.
  if (path === '' || path.startsWith('%(prefix)/')) return undefined
  if (path.includes(NOT_UTF8)) throw unknownPlace(path)
  if (!path.startsWith('~')) return path.startsWith('/') ? resolve(path) : from && resolve(from, path)
  const [name = ''] = path.slice(1).split('/', 1)
  const rest = path.slice(1 + name.length)
  if (home !== undefined && (name === '' || name === userInfo().username)) return join(home, rest)
  throw unknownPlace(path)
}

const NOT_UTF8 = '\uFFFD'

const unknownPlace = (path: string): AppError =>
  new AppError('config-invalid', `git's configuration refers to ${plain(path)}, which Coppice can't resolve`, {
    remedy: 'use an absolute path',
  })

/** All hooks git runs. Checked by name, since the directory may hold any number of files. */
const HOOKS = [
  'applypatch-msg',
  'pre-applypatch',
  'post-applypatch',
  'pre-commit',
  'pre-merge-commit',
  'prepare-commit-msg',
  'commit-msg',
  'post-commit',
  'pre-rebase',
  'post-checkout',
  'post-merge',
  'pre-push',
  'pre-receive',
  'update',
  'proc-receive',
  'post-receive',
  'post-update',
  'reference-transaction',
  'push-to-checkout',
  'pre-auto-gc',
  'post-rewrite',
  'sendemail-validate',
  'fsmonitor-watchman',
  'p4-changelist',
  'p4-prepare-changelist',
  'p4-post-changelist',
  'p4-pre-submit',
  'post-index-change',
]
