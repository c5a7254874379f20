/** One line of git's configuration, with where it came from. `value` is undefined for a key without `=`. */
export type ConfigEntry = {
  readonly scope: ConfigScope
  readonly origin: string
  /** Section and variable in lower case, the subsection between them as it was written. */
  readonly key: string
  readonly value: string | undefined
}

export type ConfigScope = 'system' | 'global' | 'local' | 'worktree' | 'command' | 'unknown'

export const configListArgs = ['config', '--list', '-z', '--show-scope', '--show-origin'] as const

/** `scope NUL origin NUL key LF value NUL`; a key without `=` has no LF. */
export const parseConfigList = (output: string): ConfigEntry[] => {
  const fields = output.split('\0')
  const entries: ConfigEntry[] = []
  for (let i = 0; i + 2 < fields.length; i += 3) {
    const line = fields[i + 2] ?? ''
    const newline = line.indexOf('\n')
    entries.push({
      scope: toScope(fields[i] ?? ''),
      origin: fields[i + 1] ?? '',
      key: newline < 0 ? line : line.slice(0, newline),
      value: newline < 0 ? undefined : line.slice(newline + 1),
    })
  }
  return entries
}

/** What anyone who can write in the repository or one of its worktrees can set. Everything but the user's own files. */
export const isRepositoryScope = (entry: ConfigEntry): boolean => entry.scope !== 'system' && entry.scope !== 'global'

export const isUserScope = (entry: ConfigEntry): boolean => !isRepositoryScope(entry)

/** The last value wins, as in git. */
export const lastValue = (entries: readonly ConfigEntry[], key: string): string | undefined =>
  entries.findLast((entry) => entry.key === key)?.value

/** `section.sub.section.variable` → its three parts; the subsection may itself hold dots. */
export const splitKey = (key: string): { section: string; subsection: string | undefined; variable: string } => {
  const first = key.indexOf('.')
  const last = key.lastIndexOf('.')
  return {
    section: key.slice(0, first),
    subsection: first === last ? undefined : key.slice(first + 1, last),
    variable: key.slice(last + 1),
  }
}

const toScope = (text: string): ConfigScope => {
  switch (text) {
    case 'system':
    case 'global':
    case 'local':
    case 'worktree':
    case 'command':
      return text
    default:
      return 'unknown'
  }
}
