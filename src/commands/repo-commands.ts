import type { Codebase } from '../domain/environment.ts'
import { AppError, isAppError } from '../domain/errors.ts'
import { validated, flag, list, type Rule, text } from '../domain/config/rules.ts'
import { type Sha, toRepoPath } from '../domain/names.ts'
import { catFiles } from '../git/blobs.ts'
import type { CallOptions, Git, Repo } from '../git/door.ts'
import { listFolder, type FolderEntry } from '../git/list-folder.ts'
import { baseAndConfig } from '../isolation/codebases/base-and-config.ts'
import { nearest } from './grammar/suggest.ts'
import type { IsolationContext } from '../isolation/context.ts'

/** A command defined by the repository: `.coppice/commands/<name>.md`. */
export type RepoCommand = {
  readonly name: string
  readonly description: string | undefined
  /** What people say when they want it. */
  readonly examples: readonly string[]
  readonly type: 'read' | 'write' | 'mixed'
  /** False only matters for a `read` command: it may run without an environment, with writing tools denied. */
  readonly requiresIsolation: boolean
  readonly allowedTools: readonly string[]
  readonly disallowedTools: readonly string[]
  /** The prompt; `$ARGUMENTS` is replaced by the user's arguments. */
  readonly body: string
}

export type RepoCommands = {
  readonly commands: ReadonlyMap<string, RepoCommand>
  /** Unusable commands, each with an error that names the file and the problem. */
  readonly problems: ReadonlyMap<string, AppError>
}

/** Each codebase's commands by base commit: a commit never changes, so they are read once. */
export type RepoCommandCache = Map<string, { readonly sha: string; readonly commands: RepoCommands }>

const folder = '.coppice/commands'
const mostFiles = 100
/** A longer prompt is a book. */
const mostBytes = 64 * 1024

/**
 * The repository's commands at the base commit: not from the work's branch, which anybody may have written, and not
 * from the checkout, where they may be half edited. Read once per base commit.
 */
export const repoCommandsOf = async (
  { isolation, repoCommands }: { readonly isolation: IsolationContext; readonly repoCommands: RepoCommandCache },
  codebase: Codebase,
  options: CallOptions = {},
): Promise<RepoCommands> => {
  const { base } = await baseAndConfig(isolation, codebase)
  const known = repoCommands.get(codebase.id)
  if (known?.sha === base.sha) return known.commands
  const commands = await readCommands(isolation.git, { commonDir: toRepoPath(codebase.repoPath) }, base.sha, options)
  repoCommands.set(codebase.id, { sha: base.sha, commands })
  return commands
}

/** The body with the user's arguments filled in, or appended. */
export const promptOf = ({ body }: RepoCommand, words: string): string => {
  // A function, because `replaceAll` interprets `$&` in a string.
  if (body.includes('$ARGUMENTS')) return body.replaceAll('$ARGUMENTS', () => words)
  return words === '' ? body : `${body}\n\n${words}`
}

const readCommands = async (git: Git, repo: Repo, sha: Sha, options: CallOptions): Promise<RepoCommands> => {
  const files = (await listFolder(git, repo, sha, folder, options))
    .flatMap((entry) => {
      // Other names aren't commands: only allow-listed characters can be called.
      const name = /^([a-z0-9][a-z0-9-]{0,49})\.md$/.exec(entry.name)?.[1]
      return name === undefined
        ? []
        : [{ ...entry, called: name, file: `${folder}/${name}.md (at ${sha.slice(0, 7)})` }]
    })
    .slice(0, mostFiles)
  const commands = new Map<string, RepoCommand>()
  const problems = new Map<string, AppError>()
  const readable = files.filter(({ called, file, ...entry }) => {
    const problem = entryProblem(entry, file)
    if (problem !== undefined) problems.set(called, problem)
    return problem === undefined
  })
  const contents = new Map<string, Buffer>()
  const ids = [...new Set(readable.map((entry) => String(entry.sha)))]
  await catFiles(git, repo, ids, (id, content) => void contents.set(id, content), options)
  for (const { called, file, sha: id } of readable) {
    try {
      commands.set(called, await parseRepoCommand(called, file, decode(contents.get(id), file)))
    } catch (error) {
      // One bad file must not disable the others.
      if (!isAppError(error, 'config-invalid')) throw error
      problems.set(called, error)
    }
  }
  return { commands, problems }
}

const entryProblem = ({ mode, size }: Pick<FolderEntry, 'mode' | 'size'>, file: string): AppError | undefined => {
  if (!mode.startsWith('100'))
    return invalid(`${file} is not a regular file`, 'replace it with a regular file on the base branch')
  if ((size ?? 0) > mostBytes) return invalid(`${file} is too large: ${size} bytes`, `the limit is ${mostBytes} bytes`)
  return undefined
}

const decode = (bytes: Buffer | undefined, file: string): string => {
  if (bytes === undefined) throw new AppError('git-failed', `git has no content for ${file}`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new AppError('config-invalid', `${file} is not UTF-8 text`, { cause: error, remedy: 'save it as UTF-8' })
  }
}

/** Markdown with front matter between two lines of `---`. */
export const parseRepoCommand = async (name: string, file: string, source: string): Promise<RepoCommand> => {
  const { front, body } = splitFront(source, file)
  if (body.trim() === '') throw invalid(`${file} has no prompt`, 'write the prompt below the front matter')
  const given = new Map(await entriesOf(front, file))
  const unknown = [...given.keys()].find((key) => !(key in rules))
  if (unknown !== undefined) throw unknownKey(file, unknown)
  const read = <T>(key: keyof typeof rules, rule: Rule<T>): T | undefined => {
    const value = given.get(key)
    return value === undefined || value === null ? undefined : validated(rule, value, key, file)
  }
  return {
    name,
    description: read('description', rules.description),
    examples: read('examples', rules.examples) ?? [],
    type: read('type', rules.type) ?? 'mixed',
    requiresIsolation: read('requiresIsolation', rules.requiresIsolation) ?? true,
    allowedTools: read('allowedTools', rules.allowedTools) ?? [],
    disallowedTools: read('disallowedTools', rules.disallowedTools) ?? [],
    body: body.trim(),
  }
}

/** Parsing YAML can take quadratic time. */
const maxFrontLength = 8 * 1024

const splitFront = (source: string, file: string): { front: string; body: string } => {
  if (!/^---[ \t]*\r?\n/.test(source)) return { front: '', body: source }
  const match = /^---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/.exec(source)
  if (match === null) throw invalid(`the front matter of ${file} isn't closed`, 'close it with a --- line')
  const front = match[1] ?? ''
  if (front.length > maxFrontLength) {
    throw invalid(`the front matter of ${file} is too large`, `the limit is ${maxFrontLength} characters`)
  }
  return { front, body: source.slice(match[0].length) }
}

const kind: Rule<RepoCommand['type']> = {
  expected: 'read, write or mixed',
  read: (value) => (value === 'read' || value === 'write' || value === 'mixed' ? value : undefined),
}

/** A list, or one line with commas as in agents' own files: `Read, Grep, Bash(git log:*)`. */
const tools: Rule<readonly string[]> = {
  expected: 'a list of tool names, or tool names separated by commas',
  read: (value) => list(text, 100).read(typeof value === 'string' ? atCommas(value) : value),
}

/** Splits at commas outside parentheses. No regular expression: that looks ahead at every comma. */
const atCommas = (line: string): string[] => {
  const names = ['']
  let depth = 0
  for (const letter of line) {
    if (letter === '(') depth += 1
    if (letter === ')') depth = Math.max(0, depth - 1)
    if (letter === ',' && depth === 0) names.push('')
    else names[names.length - 1] += letter
  }
  return names.map((name) => name.trim())
}

const rules = {
  description: text,
  examples: list(text, 20),
  type: kind,
  requiresIsolation: flag,
  allowedTools: tools,
  disallowedTools: tools,
} as const

const entriesOf = async (front: string, file: string): Promise<[string, unknown][]> => {
  const { parseDocument } = await import('../domain/yaml.ts')
  let plain: unknown
  try {
    const document = parseDocument(front, { prettyErrors: false })
    if (document.errors[0] !== undefined) throw document.errors[0]
    plain = document.toJS({ maxAliasCount: 50 })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new AppError('config-invalid', `couldn't parse the front matter of ${file}: ${why}`, {
      cause: error,
      remedy: 'fix the YAML',
    })
  }
  if (plain === null || plain === undefined) return []
  if (typeof plain !== 'object' || Array.isArray(plain)) {
    throw invalid(`the front matter of ${file} has no keys`, `write it as "key: value" lines: ${known.join(', ')}`)
  }
  return Object.entries(plain)
}

const known = Object.keys(rules)

const unknownKey = (file: string, given: string): AppError => {
  const key = given.slice(0, 80)
  const guess = nearest(key, known)
  return invalid(
    `${file}: unknown key "${key}"`,
    guess === undefined ? `valid keys are ${known.join(', ')}` : `did you mean "${guess}"?`,
  )
}

const invalid = (message: string, remedy: string): AppError => new AppError('config-invalid', message, { remedy })
