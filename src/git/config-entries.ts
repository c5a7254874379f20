/** One git setting and its origin. `value` is undefined for a key without `=`. */
export type ConfigEntry = {
  readonly scope: ConfigScope
  readonly origin: string
  /** Section and variable in lower case, the subsection as written. */
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

/** Can be set by anyone who can write to the repository or a worktree: everything but the user's own files. */
export const isRepositoryScope = (entry: ConfigEntry): boolean => entry.scope !== 'system' && entry.scope !== 'global'

export const isUserScope = (entry: ConfigEntry): boolean => !isRepositoryScope(entry)

/** The last value wins, as in git. */
export const lastValue = (entries: readonly ConfigEntry[], key: string): string | undefined =>
  entries.findLast((entry) => entry.key === key)?.value

/** `section.sub.section.variable` → its three parts; the subsection may contain dots. */
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
