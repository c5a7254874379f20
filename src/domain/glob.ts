/*
 * Globs in a repository's configuration: `*`, `?`, `[a-z]` within a name, `**` for any directories. Anyone who can push
 * can write the patterns, so they don't become regular expressions: `*a*a*a*b` would take years on a name of a hundred
 * letters. Here matching a name takes at most its length times the pattern's.
 *
 * As in a shell, a wildcard at the start of a name does not match a leading dot.
 */

export type Glob = { readonly segments: readonly Segment[] }

/** One path segment of the pattern; `**` matches any number of segments. */
type Segment = '**' | readonly Token[]

type Token =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | { readonly kind: 'class'; readonly ranges: readonly (readonly [string, string])[]; readonly negated: boolean }

/** How far a path has matched: the indexes of the segments that may come next. Empty: it can't match. */
export type GlobState = ReadonlySet<number>

/** For `worktree.copy` and the like. Enforced when the configuration is read. */
export const maxGlobLength = 200
export const maxGlobs = 100

export const compileGlob = (pattern: string): Glob => ({
  segments: pattern.split('/').map((segment) => (segment === '**' ? '**' : tokensOf(Array.from(segment)))),
})

export const globStart = (glob: Glob): GlobState => closed(glob, new Set([0]))

/** The state after one more name of the path. */
export const globStep = (glob: Glob, state: GlobState, name: string): GlobState => {
  const next = new Set<number>()
  for (const at of state) {
    const segment = glob.segments[at]
    if (segment === undefined) continue
    if (segment !== '**') {
      if (matchesName(segment, name)) next.add(at + 1)
    } else if (!name.startsWith('.')) {
      next.add(at)
      // At the end of a pattern, `**` matches one or more names.
      if (at === glob.segments.length - 1) next.add(at + 1)
    }
  }
  return closed(glob, next)
}

export const isGlobMatch = (glob: Glob, state: GlobState): boolean => state.has(glob.segments.length)

/** Whether something below can still match. */
export const mayMatchBelow = (glob: Glob, state: GlobState): boolean =>
  [...state].some((at) => at < glob.segments.length)

/** `**` may also match no name at all, unless it's last. */
const closed = (glob: Glob, state: Set<number>): GlobState => {
  for (const at of state) {
    if (glob.segments[at] === '**' && at < glob.segments.length - 1) state.add(at + 1)
  }
  return state
}

/** Backtracks only to the last `*`: earlier ones never need to match more. */
const matchesName = (tokens: readonly Token[], name: string): boolean => {
  const letters = Array.from(name)
  if (name.startsWith('.') && tokens[0]?.kind !== 'literal') return false
  let token = 0
  let letter = 0
  let star = -1
  let resume = 0
  while (letter < letters.length) {
    const current = tokens[token]
    if (current?.kind === 'star') {
      star = token
      resume = letter
      token += 1
    } else if (current !== undefined && matchesLetter(current, letters[letter] ?? '')) {
      token += 1
      letter += 1
    } else if (star >= 0) {
      token = star + 1
      resume += 1
      letter = resume
    } else return false
  }
  return tokens.slice(token).every(({ kind }) => kind === 'star')
}

const matchesLetter = (token: Token, letter: string): boolean => {
  switch (token.kind) {
    case 'any':
    case 'star':
      return true
    case 'literal':
      return token.text === letter
    case 'class':
      return token.ranges.some(([from, to]) => from <= letter && letter <= to) !== token.negated
  }
}

const tokensOf = (letters: readonly string[]): Token[] => {
  const tokens: Token[] = []
  for (let i = 0; i < letters.length; i += 1) {
    const letter = letters[i] ?? ''
    const found = letter === '[' ? classAt(letters, i) : undefined
    if (found !== undefined) {
      tokens.push(found.token)
      i = found.end
    } else if (letter === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' })
    } else tokens.push(letter === '?' ? { kind: 'any' } : { kind: 'literal', text: letter })
  }
  return tokens
}

/** `[abc]`, `[a-z]`, `[!a]` or `[^a]`; a leading `]` is a literal, and so is an unclosed `[`. */
const classAt = (letters: readonly string[], start: number): { token: Token; end: number } | undefined => {
  const negated = letters[start + 1] === '!' || letters[start + 1] === '^'
  const first = start + (negated ? 2 : 1)
  const end = letters.indexOf(']', first + 1)
  if (end < 0) return undefined
  const ranges: [string, string][] = []
  for (let i = first; i < end; i += 1) {
    const from = letters[i] ?? ''
    const isRange = letters[i + 1] === '-' && i + 2 < end
    ranges.push([from, isRange ? (letters[i + 2] ?? '') : from])
    if (isRange) i += 2
  }
  return { token: { kind: 'class', ranges, negated }, end }
}
