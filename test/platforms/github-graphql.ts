/*
 * As much of GraphQL as GitHub's API has when it is asked: fields, arguments, aliases, variables and fragments, the
 * errors beside an answer, and the limits on connections.
 */

/** A field is a value, or answers to its arguments. */
export type Fields = { readonly [name: string]: unknown }
type Resolver = (args: Readonly<Record<string, unknown>>) => unknown

type Selection = {
  readonly alias: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly selections: readonly Selection[] | undefined
}

export type GraphqlErrorJson = { type?: string; path?: readonly string[]; message: string }

/** A field that GitHub can't find: null, with an error beside the rest of the answer. */
export class NotFound extends Error {}
/**
 * A field that went wrong: null, with an error beside the rest of the answer. One that is never null in the schema makes
 * what it is in null instead (GraphQL specification, October 2021, 6.4.4).
 */
export class Failed extends Error {
  readonly nonNull: boolean
  constructor(message: string, nonNull: boolean) {
    super(message)
    this.nonNull = nonNull
  }
}
/** Reported already; the nearest field that can be null is. */
class Nulled extends Error {}
/** The whole query is refused. */
class Invalid extends Error {}

export const answerGraphql = (
  root: Fields,
  { query, variables = {} }: { readonly query?: unknown; readonly variables?: unknown },
): { data?: unknown; errors?: GraphqlErrorJson[] } => {
  const errors: GraphqlErrorJson[] = []
  try {
    const selections = parse(String(query), variables as Record<string, unknown>)
    const data = select(root, selections, [], errors)
    return errors.length === 0 ? { data } : { data, errors }
  } catch (error) {
    if (!(error instanceof Invalid)) throw error
    return { errors: [{ message: error.message }] }
  }
}

const select = (
  fields: Fields,
  selections: readonly Selection[],
  path: readonly string[],
  errors: GraphqlErrorJson[],
): Record<string, unknown> =>
  Object.fromEntries(
    selections.map(({ alias, name, args, selections: inner }) => {
      if (!(name in fields)) throw new Invalid(`Field '${name}' doesn't exist`)
      const here = [...path, alias]
      try {
        const field = fields[name]
        const value = typeof field === 'function' ? (field as Resolver)(args) : field
        return [alias, shape(value, inner, here, errors)]
      } catch (error) {
        if (error instanceof NotFound) errors.push({ type: 'NOT_FOUND', path: here, message: error.message })
        else if (error instanceof Failed) errors.push({ path: here, message: error.message })
        else if (!(error instanceof Nulled)) throw error
        if (error instanceof Failed && error.nonNull) throw new Nulled()
        return [alias, null]
      }
    }),
  )

const shape = (
  value: unknown,
  inner: readonly Selection[] | undefined,
  path: readonly string[],
  errors: GraphqlErrorJson[],
): unknown => {
  if (Array.isArray(value)) return value.map((one: unknown, i) => shape(one, inner, [...path, String(i)], errors))
  if (value === null || value === undefined) return null
  const isObject = typeof value === 'object'
  if (isObject !== (inner !== undefined)) throw new Invalid(`Selections of '${path.at(-1)}' don't fit`)
  return inner === undefined ? value : select(value as Fields, inner, path, errors)
}

/** GitHub wants to know how many, and gives a hundred at most. */
export const connection = <T>(all: readonly T[], { first }: Readonly<Record<string, unknown>>): { nodes: T[] } => {
  if (typeof first !== 'number') throw new Invalid('You must provide a `first` or `last` value to properly paginate')
  if (first < 1 || first > 100) throw new Invalid(`Requesting ${first} records exceeds the \`first\` limit of 100`)
  return { nodes: all.slice(0, first) }
}

type Words = { take: () => string; peek: () => string | undefined; expect: (word: string) => void }

const parse = (query: string, variables: Readonly<Record<string, unknown>>): Selection[] => {
  const found = [...query.matchAll(/\.\.\.|"(?:[^"\\]|\\.)*"|[{}()[\]:!=$]|-?\d+|[A-Za-z_]\w*/g)].map(([word]) => word)
  let at = 0
  const words: Words = {
    peek: () => found[at],
    take: () => {
      const word = found[at]
      if (word === undefined) throw new Invalid('Unexpected end of document')
      at += 1
      return word
    },
    expect: (word) => {
      if (words.take() !== word) throw new Invalid(`Expected ${word}`)
    },
  }
  const fragments = new Map<string, Part[]>()
  let operation: Part[] | undefined
  while (words.peek() !== undefined) {
    const kind = words.take()
    if (kind === 'fragment') {
      const name = words.take()
      words.expect('on')
      words.take()
      fragments.set(name, readSelections(words, variables))
      continue
    }
    if (kind !== 'query') throw new Invalid(`Unexpected ${kind}`)
    readDeclarations(words, variables)
    operation = readSelections(words, variables)
  }
  return expand(operation ?? [], fragments)
}

type Part = { readonly spread: string } | (Omit<Selection, 'selections'> & { readonly inner: Part[] | undefined })

const expand = (parts: readonly Part[], fragments: ReadonlyMap<string, Part[]>): Selection[] =>
  parts.flatMap((part): Selection[] => {
    if (!('spread' in part)) {
      const { inner, ...field } = part
      return [{ ...field, selections: inner && expand(inner, fragments) }]
    }
    const fragment = fragments.get(part.spread)
    if (fragment === undefined) throw new Invalid(`Fragment ${part.spread} was used, but not defined`)
    return expand(fragment, fragments)
  })

/** `($owner: String!, …)`; what is declared must be given. */
const readDeclarations = (words: Words, variables: Readonly<Record<string, unknown>>): void => {
  if (words.peek() !== '(') return
  words.take()
  while (words.peek() !== ')') {
    words.expect('$')
    const name = words.take()
    words.expect(':')
    const type = words.take()
    if (words.peek() === '!') {
      words.take()
      const given = variables[name]
      const fits = type === 'Int' ? isInt(given) : typeof given === 'string'
      if (!fits) throw new Invalid(`Variable $${name} of type ${type}! was provided invalid value`)
    }
  }
  words.take()
}

/** 32 bits with a sign (GraphQL specification, October 2021, 3.5.1). */
const isInt = (value: unknown): boolean => Number.isInteger(value) && Math.abs(Number(value)) < 2 ** 31

const readSelections = (words: Words, variables: Readonly<Record<string, unknown>>): Part[] => {
  const parts: Part[] = []
  words.expect('{')
  while (words.peek() !== '}') {
    const first = words.take()
    if (first === '...') {
      parts.push({ spread: words.take() })
      continue
    }
    const isAlias = words.peek() === ':'
    if (isAlias) words.take()
    const name = isAlias ? words.take() : first
    const args = words.peek() === '(' ? readArguments(words, variables, '(', ')') : {}
    parts.push({ alias: first, name, args, inner: words.peek() === '{' ? readSelections(words, variables) : undefined })
  }
  words.take()
  return parts
}

const readArguments = (
  words: Words,
  variables: Readonly<Record<string, unknown>>,
  open: string,
  close: string,
): Record<string, unknown> => {
  const args: Record<string, unknown> = {}
  words.expect(open)
  while (words.peek() !== close) {
    const name = words.take()
    words.expect(':')
    args[name] = readValue(words, variables)
  }
  words.take()
  return args
}

const readValue = (words: Words, variables: Readonly<Record<string, unknown>>): unknown => {
  if (words.peek() === '{') return readArguments(words, variables, '{', '}')
  const word = words.take()
  if (word === '$') return variables[words.take()]
  if (word.startsWith('"')) return JSON.parse(word)
  if (/^-?\d+$/.test(word)) return Number(word)
  if (word !== '[') return word
  const list: unknown[] = []
  while (words.peek() !== ']') list.push(readValue(words, variables))
  words.take()
  return list
}
