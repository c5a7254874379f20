import { AppError } from '../errors.ts'
import { maxGlobLength } from '../glob.ts'
import { branchNameProblem } from '../names.ts'
import { trimEndOf } from '../text/trim-end.ts'

/** Validates a config key or an environment variable. `expected` completes the sentence "it must be …". */
export type Rule<T> = {
  readonly expected: string
  /** undefined: invalid. */
  readonly read: (value: unknown) => T | undefined
  /** Parses a variable's text; used as is without it. */
  readonly fromText?: (text: string) => unknown
  /** The value may hold a password and is never shown. */
  readonly secret?: boolean
}

/** `name` is the key or variable; `where` is its file. */
export const validated = <T>(rule: Rule<T>, value: unknown, name: string, where?: string): T => {
  const read = rule.read(value)
  if (read !== undefined) return read
  const what = `${name} is ${rule.secret ? 'not usable' : shown(value)}`
  throw new AppError('config-invalid', where === undefined ? what : `${where}: ${what}`, {
    remedy: `${name} must be ${rule.expected}`,
  })
}

export const wholeNumber = (min: number, max: number, example: number): Rule<number> => ({
  expected: `a whole number from ${min} to ${max}, such as ${example}`,
  read: (value) => (Number.isInteger(value) ? within(value, min, max) : undefined),
  fromText: decimal,
})

export const number = (min: number, max: number, example: number): Rule<number> => ({
  expected: `a number from ${min} to ${max}, such as ${example}`,
  read: (value) => within(value, min, max),
  fromText: decimal,
})

export const mapped = <A, B>(rule: Rule<A>, change: (value: A) => B): Rule<B> => ({
  ...rule,
  read: (value) => {
    const read = rule.read(value)
    return read === undefined ? undefined : change(read)
  },
})

export const text: Rule<string> = {
  expected: 'a single non-empty line of text',
  read: (value) =>
    typeof value === 'string' && value.trim() !== '' && !control.test(value) ? value.trim() : undefined,
}

/** In milliseconds, written as `90s`, `20m` or `2h`. */
export const duration = (min: number, max: number, example: string): Rule<number> => ({
  expected: `a time from ${min / 1000} seconds to ${max / 3_600_000} hours, such as ${example}`,
  read: (value) => {
    const [, number, unit] = typeof value === 'string' ? (/^(\d+(?:\.\d+)?)(s|m|h)$/.exec(value) ?? []) : []
    if (number === undefined) return undefined
    return within(Number(number) * ({ s: 1_000, m: 60_000, h: 3_600_000 }[unit ?? 's'] ?? 1_000), min, max)
  },
})

/** Several lines of text. */
export const template: Rule<string> = {
  expected: 'text of at most 20,000 characters',
  read: (value) =>
    typeof value === 'string' && value.trim() !== '' && value.length <= 20_000 && !value.includes('\0')
      ? value
      : undefined,
}

export const oneOf = <T extends string>(values: readonly T[]): Rule<T> => ({
  expected: `one of ${values.join(', ')}`,
  read: (value) => values.find((known) => known === value),
})

export const flag: Rule<boolean> = {
  expected: 'true or false',
  read: (value) => (typeof value === 'boolean' ? value : undefined),
}

export const databaseUrl: Rule<string> = {
  expected: 'a PostgreSQL URL, such as postgres://user@host/coppice (leave it out for SQLite)',
  secret: true,
  read: (value) => (typeof value === 'string' && /^postgres(?:ql)?:\/\/\S+$/.test(value) ? value : undefined),
}

/** A relative path would change meaning after every `cd`. */
export const directory: Rule<string> = {
  expected: 'an absolute path, or one that starts with ~/',
  read: (value) =>
    typeof value === 'string' && /^(?:\/|~$|~\/)/.test(value) && !control.test(value) ? value : undefined,
}

export const base: Rule<string> = {
  expected: 'a branch name, such as main',
  read: (value) => (typeof value === 'string' && branchNameProblem(value) === undefined ? value : undefined),
}

/** A script can have several lines; NUL can't be passed to a shell. */
export const command: Rule<string> = {
  expected: 'a shell command',
  read: (value) => (typeof value === 'string' && value.trim() !== '' && !value.includes('\0') ? value : undefined),
}

export const list = <T>(rule: Rule<T>, most: number): Rule<readonly T[]> => ({
  expected: `${rule.expected}, or a list of these (at most ${most})`,
  read: (value) => {
    const items = (Array.isArray(value) ? value : [value]).map(rule.read)
    return items.length <= most && items.every((item) => item !== undefined) ? [...new Set(items)] : undefined
  },
})

/**
 * Threat: a repository's config that copies from or writes to a place outside its own tree, or into `.git`, where a
 * file can be a hook. Braces and extended globs are refused because `.{.,x}/y` spells `../y`.
 * A pattern such as `.g*` can still match `.git`, so expanding a glob must skip `.git`.
 */
export const relativeGlob: Rule<string> = {
  expected: `a relative path of at most ${maxGlobLength} characters, with *, **, ? or [] (no "..", no braces, nothing in .git)`,
  read: (value) =>
    typeof value === 'string' && value.length <= maxGlobLength && !/[{}]|[@+!?*]\(|^!/.test(value)
      ? contained(value)
      : undefined,
}

export const relativePath: Rule<string> = {
  expected: 'a plain relative path (no wildcards, no "..", nothing in .git)',
  read: (value) => (typeof value === 'string' && !/[*?[\]{}]/.test(value) ? contained(value) : undefined),
}

export const directoryName: Rule<string> = {
  expected: 'a directory name without "/"',
  read: (value) => {
    const path = relativePath.read(value)
    return path === undefined || path.includes('/') ? undefined : path
  },
}

/** A port number in PATH or HOME would break every program started in the environment. */
export const variableName: Rule<string> = {
  expected: 'an environment variable name, such as PORT (not one used by the system, git or Coppice)',
  read: (value) =>
    typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(value) && !reserved.test(value)
      ? value
      : undefined,
}

const reserved =
  /^(?:PATH|HOME|PWD|SHELL|USER|LOGNAME|TERM|TMPDIR|LANG|LC_.*|LD_.*|DYLD_.*|NODE_.*|GIT_.*|SSH_.*|COPPICE_.*)$/i

// eslint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f]/

const shown = (value: unknown): string => {
  const json = JSON.stringify(value) ?? String(value)
  return json.length > 80 ? `${json.slice(0, 77)}…` : json
}

const within = (value: unknown, min: number, max: number): number | undefined =>
  typeof value === 'number' && value >= min && value <= max ? value : undefined

/** `Number('')` is 0 and `Number('0x10')` is 16; a person meant neither. */
const decimal = (value: string): unknown => (/^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value)

/** The system's limit; also keeps long texts away from the expressions below. */
const maxPathLength = 4096

const contained = (value: string): string | undefined => {
  if (value.length > maxPathLength) return undefined
  const path = trimEndOf(value.replace(/^(?:\.\/+)+/, ''), '/')
  if (path === '' || path.startsWith('/') || path.startsWith('~') || path.includes('\\') || control.test(path)) {
    return undefined
  }
  // `.GIT` is `.git` on a Mac.
  const bad = (part: string) => part === '' || part === '.' || part === '..' || part.toLowerCase() === '.git'
  return path.split('/').some(bad) ? undefined : path
}
