import { LineCounter, isNode, parseDocument, type Document } from 'yaml'
import { validated, type Rule } from './rules.ts'
import { maxConfigLength, configTooLong } from './size.ts'
import { AppError } from '../errors.ts'

/** The valid settings, as `section.key` → rule. Sections in `opaque` are validated by their readers. */
export type KnownKeys = {
  readonly keys: ReadonlyMap<string, Rule<unknown>>
  readonly opaque: readonly string[]
  /** Sections whose keys are names that the user chooses, such as `fleet.pools`. */
  readonly maps?: ReadonlyMap<string, MapKeys<unknown>>
  /** Sections that are lists of entries with keys, such as `hooks`. */
  readonly lists?: ReadonlyMap<string, ListKeys<unknown>>
}

/** A list's entries: the rules for the keys of each one. */
export type ListKeys<T> = {
  readonly most: number
  readonly keys: ReadonlyMap<string, Rule<unknown>>
  /** Builds the list's value from all entries, or returns a problem that involves several keys. */
  readonly finish: (
    entries: readonly ReadonlyMap<string, unknown>[],
  ) => { readonly value: T } | { readonly at: readonly [entry: number, key: string]; readonly problem: string }
}

/** A section's entries: the rule for their names, and for the keys below each name. */
export type MapKeys<T> = {
  readonly name: Rule<string>
  readonly most: number
  readonly keys: ReadonlyMap<string, Rule<unknown>>
  /** Builds the section's value from all entries, or returns a problem that involves several keys. */
  readonly finish: (
    entries: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
  ) => { readonly value: T } | { readonly at: readonly [name: string, key: string]; readonly problem: string }
}

/**
 * Reads a YAML file of sections with keys. Throws at the first mistake, naming file, line and key.
 * A section or key without a value counts as unset: that's what commenting out its lines leaves.
 */
export const readConfigFile = (text: string, file: string, known: KnownKeys): Map<string, unknown> => {
  const lines = new LineCounter()
  const document = parse(text, file, lines)
  const where = (path: Path): string => place(file, lineOf(document, path, lines))
  const found = new Map<string, unknown>()
  for (const [section, content] of entries(toPlain(document, file), () => sectionProblem(file, 'the file', known))) {
    if (known.opaque.includes(section)) {
      found.set(section, content)
      continue
    }
    if (section.includes('.') || !sections(known).includes(section)) throw unknownKey(where([section]), section, known)
    const list = known.lists?.get(section)
    if (list === undefined) readSection([section], content)
    else readList(section, content, list)
  }
  return found

  /**
   * Keys can nest (`claude:` below `agent:`). Dotted keys (`claude.command:`) are refused: with both forms a file could
   * set the same thing twice, and nobody would see which one counts.
   */
  function readSection(path: readonly string[], content: unknown): void {
    const map = known.maps?.get(path.join('.'))
    if (map !== undefined) return readMap(path, content, map)
    const problem = () => sectionProblem(where(path), `"${path.join('.')}"`, known, path.join('.'))
    for (const [key, value] of entries(content, problem)) {
      const name = [...path, key].join('.')
      if (key.includes('.')) throw unknownKey(where([...path, key]), name, known)
      const rule = known.keys.get(name)
      if (known.maps?.has(name) === true) readSection([...path, key], value)
      else if (rule !== undefined) {
        if (value !== null) found.set(name, validated(rule, value, name, where([...path, key])))
      } else if (sections(known).includes(name)) readSection([...path, key], value)
      else throw unknownKey(where([...path, key]), name, known)
    }
  }

  function readMap(path: readonly string[], content: unknown, map: MapKeys<unknown>): void {
    const section = path.join('.')
    const all = new Map<string, ReadonlyMap<string, unknown>>()
    for (const [name, below] of entries(content, () => sectionProblem(where(path), `"${section}"`, known, section))) {
      const at = [...path, name]
      const called = `${section}.${name}`
      validated(map.name, name, `a name in ${section}`, where(at))
      all.set(name, readEntry(at, called, below, map.keys))
    }
    finish(path, all.size, map.most, () => map.finish(all))
  }

  function readList(section: string, content: unknown, list: ListKeys<unknown>): void {
    if (content === null) return
    if (!Array.isArray(content)) {
      throw new AppError('config-invalid', `${where([section])}: "${section}" must be a list`, {
        remedy: `start each entry with "- "; its valid keys are ${[...list.keys.keys()].join(', ')}`,
      })
    }
    const all = content.map((below: unknown, at) => readEntry([section, at], `${section}[${at}]`, below, list.keys))
    finish([section], all.length, list.most, () => list.finish(all))
  }

  function readEntry(
    at: Path,
    called: string,
    content: unknown,
    keys: ReadonlyMap<string, Rule<unknown>>,
  ): ReadonlyMap<string, unknown> {
    const inner: KnownKeys = { keys, opaque: [] }
    const given = new Map<string, unknown>()
    for (const [key, value] of entries(content, () => sectionProblem(where(at), `"${called}"`, inner))) {
      const rule = keys.get(key)
      if (rule === undefined) throw unknownKey(where([...at, key]), key, inner)
      if (value !== null) given.set(key, validated(rule, value, `${called}.${key}`, where([...at, key])))
    }
    return given
  }

  function finish(
    path: readonly string[],
    count: number,
    most: number,
    build: () => { readonly value: unknown } | { readonly at: Path; readonly problem: string },
  ): void {
    const section = path.join('.')
    if (count === 0) return
    if (count > most) {
      throw new AppError('config-invalid', `${where(path)}: ${section} has ${count} entries`, {
        remedy: `${section} can have at most ${most}`,
      })
    }
    const finished = build()
    if ('value' in finished) found.set(section, finished.value)
    else {
      const at = [...path, ...finished.at]
      const called = at
        .map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? part : `.${part}`))
        .join('')
      throw new AppError('config-invalid', `${where(at)}: ${called} doesn't fit`, { remedy: finished.problem })
    }
  }
}

/** Of keys, and of an entry's place in a list. */
type Path = readonly (string | number)[]

const parse = (text: string, file: string, lines: LineCounter): Document => {
  if (text.length > maxConfigLength) throw configTooLong(file, text.length)
  let document: Document
  try {
    document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  } catch (error) {
    // Thousands of nested brackets overflow the parser's stack.
    throw new AppError('config-invalid', `couldn't parse ${file} as YAML`, { cause: error })
  }
  const [problem] = document.errors
  if (problem === undefined) return document
  throw new AppError('config-invalid', `${place(file, lines.linePos(problem.pos[0]).line)}: ${problem.message}`, {
    cause: problem,
    remedy: 'fix the YAML',
  })
}

/** `toJS` throws on aliases that multiply ("billion laughs"). */
const toPlain = (document: Document, file: string): unknown => {
  try {
    return document.toJS({ maxAliasCount: 50 })
  } catch (error) {
    throw new AppError('config-invalid', `couldn't read ${file}: its aliases expand to too much`, { cause: error })
  }
}

const entries = (value: unknown, problem: () => AppError): [string, unknown][] => {
  if (value === null || value === undefined) return []
  if (typeof value !== 'object' || Array.isArray(value)) throw problem()
  return Object.entries(value)
}

const sectionProblem = (where: string, what: string, known: KnownKeys, section?: string): AppError => {
  const keys = [...known.keys.keys()].filter((key) => section === undefined || key.startsWith(`${section}.`))
  return new AppError('config-invalid', `${where}: ${what} must be a section with keys`, {
    remedy: `write it as "section:" with indented "key: value" lines; valid keys are ${keys.join(', ')}`,
  })
}

const unknownKey = (where: string, full: string, known: KnownKeys): AppError => {
  if (full.includes('.') && (known.keys.has(full) || sections(known).includes(full))) {
    const parts = full.split('.')
    return new AppError('config-invalid', `${where}: "${full}" must be nested, without dots`, {
      remedy: `write it as "${parts.join(': { ')}: …${' }'.repeat(parts.length - 1)}", or as indented lines`,
    })
  }
  const name = full.slice(0, 80)
  const guess = nearest(name, [...known.keys.keys(), ...sections(known)])
  const section = name.split('.')[0]
  const near = [...known.keys.keys()].filter((key) => key.startsWith(`${section}.`))
  return new AppError('config-invalid', `${where}: unknown setting "${name}"`, {
    remedy:
      guess === undefined
        ? `valid settings are ${(near.length > 0 ? near : [...known.keys.keys()]).join(', ')}`
        : `did you mean "${guess}"?`,
  })
}

/** For `agent.claude.command`: `agent` and `agent.claude`. */
const sections = (known: KnownKeys): string[] => {
  const parents = [...known.keys.keys()].flatMap((key) => {
    const parts = key.split('.')
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('.'))
  })
  const ofMaps = [...(known.maps?.keys() ?? [])].flatMap((key) => {
    const parts = key.split('.')
    return parts.map((_, index) => parts.slice(0, index + 1).join('.'))
  })
  return [...new Set([...parents, ...ofMaps, ...(known.lists?.keys() ?? []), ...known.opaque])]
}

/** `cleanup.stale_days`, `worktrees.staleDays` and `staleDays` all mean `cleanup.staleDays`. */
const nearest = (name: string, candidates: readonly string[]): string | undefined => {
  const plain = (key: string): string => key.toLowerCase().replaceAll(/[-_]/g, '')
  const last = (key: string): string => plain(key.slice(key.lastIndexOf('.') + 1))
  const scored = candidates
    .map((key) => ({
      key,
      distance: Math.min(distance(plain(name), plain(key)), distance(last(name), last(key)) + 0.5),
      allowed: Math.max(1, Math.floor(last(name).length / 3)),
    }))
    .filter(({ distance, allowed }) => distance <= allowed + 0.5)
    .sort((a, b) => a.distance - b.distance)
  return scored[0]?.key
}

/** Levenshtein, one row at a time. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const substituted = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1)
      next.push(Math.min(substituted, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

const place = (file: string, line: number | undefined): string => (line === undefined ? file : `${file} line ${line}`)

/** The value's line; for a key without a value, its section's. */
const lineOf = (document: Document, path: Path, lines: LineCounter): number | undefined => {
  const node: unknown = document.getIn(path, true)
  if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  return path.length > 1 ? lineOf(document, path.slice(0, -1), lines) : undefined
}
