/*
 * Globs of a repository's configuration: `*`, `?`, `[a-z]` within a name, `**` for any directories. The patterns are
 * written by whoever can push, so no regular expression is built from them: `*a*a*a*b` as one takes years on a name of a
 * hundred letters. Here every name costs at most its length times the pattern's.
 *
 * As in a shell, a wildcard at the start of a name does not match a leading dot.
 */

export type Glob = { readonly segments: readonly Segment[] }

/** A name of the pattern; `**` stands for any number of names. */
type Segment = '**' | readonly Token[]

type Token =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | { readonly kind: 'class'; readonly ranges: readonly (readonly [string, string])[]; readonly negated: boolean }

/** How far the names of a path have got through a pattern: the segments that may come next. Empty: it cannot match. */
export type GlobState = ReadonlySet<number>

/** `worktree.copy` and its like: longer patterns and more of them are refused when the file is read. */
export const maxGlobLength = 200
export const maxGlobs = 100

export const compileGlob = (pattern: string): Glob => ({
  segments: pattern.split('/').map((segment) => (segment === '**' ? '**' : tokensOf(Array.from(segment)))),
})

export const globStart = (glob: Glob): GlobState => closed(glob, new Set([0]))

/** After one more name of the path. */
export const globStep = (glob: Glob, state: GlobState, name: string): GlobState => {
  const next = new Set<number>()
  for (const at of state) {
    const segment = glob.segments[at]
    if (segment === undefined) continue
    if (segment !== '**') {
      if (matchesName(segment, name)) next.add(at + 1)
    } else if (!name.startsWith('.')) {
      next.add(at)
      // At the end of a pattern `**` stands for one name or more.
      if (at === glob.segments.length - 1) next.add(at + 1)
    }
  }
  return closed(glob, next)
}

export const isGlobMatch = (glob: Glob, state: GlobState): boolean => state.has(glob.segments.length)

/** Whether something further down can still match. */
export const mayMatchBelow = (glob: Glob, state: GlobState): boolean =>
  [...state].some((at) => at < glob.segments.length)

/** `**` may also stand for no name at all, unless it is the last. */
const closed = (glob: Glob, state: Set<number>): GlobState => {
  for (const at of state) {
    if (glob.segments[at] === '**' && at < glob.segments.length - 1) state.add(at + 1)
  }
  return state
}

/** Two positions, and one place to go back to: after a `*` matched too little, only the last one needs to take more. */
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

/** `[abc]`, `[a-z]`, `[!a]` or `[^a]`; a `]` that comes first is a letter. Without an end it is only a bracket. */
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
