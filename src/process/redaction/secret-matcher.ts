/*
 * Finds many secrets in one pass over streamed text (Aho and Corasick, 1975): the work per character doesn't grow with
 * the number of secrets, and it always knows how much of a secret may have started.
 */
import { createEscapeReader, createNoiseFilter, MAX_ESCAPE_LENGTH, withoutNoise } from './text-noise.ts'

export type Span = { readonly from: number; readonly to: number }

/** Scans text piece by piece. Positions count from the first character. */
export type Scanner = {
  readonly feed: (text: string) => void
  /** Secrets completed since the last call, in order, without overlaps. */
  readonly takeSpans: () => Span[]
  /** How many characters at the end may start a secret, and where. */
  readonly open: () => { readonly depth: number; readonly from: number }
}

export type Matcher = {
  readonly longest: number
  readonly scan: () => Scanner
  /** All secrets in a complete text. */
  readonly find: (text: string) => Span[]
}

/**
 * From this length, a secret also matches in another case or with line breaks, since nothing else looks like it. A
 * short one ("foobar") would match ordinary text.
 */
const MIN_DISTINCTIVE_LENGTH = 16

/** Undefined if there are no secrets. */
export const createMatcher = (forms: Iterable<string>): Matcher | undefined => {
  const trie = buildTrie([...new Set([...forms].flatMap(withoutNoise))].filter((form) => form !== ''))
  if (trie.longest === 0) return undefined
  const whole = createScanner(trie)
  return {
    longest: trie.longest,
    scan: () => createScanner(trie),
    find: (text) => {
      whole.reset()
      whole.feed(text)
      return whole.takeSpans()
    },
  }
}

type Trie = {
  readonly longest: number
  /** One node per character of a form. Nearly all have a single child, so children are a list. */
  readonly firstChild: Int32Array
  /** ASCII first characters, by code: most text goes from root to root. */
  readonly root: Int32Array
  readonly sibling: Int32Array
  readonly code: Uint16Array
  readonly depth: Int32Array
  /** Where to continue if no child matches: the longest suffix that is also a prefix. */
  readonly fail: Int32Array
  /** The nearest node, itself or via `fail`, that ends a form; 0 for none. */
  readonly ending: Int32Array
  /** Forms that end at a node, as written; several if they differ only in case. */
  readonly forms: ReadonlyMap<number, readonly string[]>
}

const buildTrie = (forms: readonly string[]): Trie => {
  const size = forms.reduce((sum, form) => sum + form.length, 1)
  const trie = {
    firstChild: new Int32Array(size),
    root: new Int32Array(128),
    sibling: new Int32Array(size),
    code: new Uint16Array(size),
    depth: new Int32Array(size),
    fail: new Int32Array(size),
    ending: new Int32Array(size),
    forms: new Map<number, string[]>(),
  }
  let count = 1
  for (const form of forms) {
    let node = 0
    for (let i = 0; i < form.length; i++) {
      const code = lowerCase(form.charCodeAt(i))
      let child = childOf(trie, node, code)
      if (child === 0) {
        child = count++
        trie.code[child] = code
        trie.depth[child] = i + 1
        trie.sibling[child] = trie.firstChild[node] ?? 0
        trie.firstChild[node] = child
      }
      node = child
    }
    trie.forms.set(node, [...(trie.forms.get(node) ?? []), form])
  }
  for (let child = trie.firstChild[0] ?? 0; child !== 0; child = trie.sibling[child] ?? 0) {
    const code = trie.code[child] ?? 0
    if (code < trie.root.length) trie.root[code] = child
  }
  linkSuffixes(trie)
  return { ...trie, longest: forms.reduce((most, form) => Math.max(most, form.length), 0) }
}

type Links = Pick<Trie, 'firstChild' | 'sibling' | 'code' | 'root' | 'fail'>

const childOf = (trie: Links, node: number, code: number): number => {
  let child = trie.firstChild[node] ?? 0
  while (child !== 0 && trie.code[child] !== code) child = trie.sibling[child] ?? 0
  return child
}

const next = (trie: Links, from: number, code: number): number => {
  let node = from
  for (;;) {
    if (node === 0 && code < trie.root.length) return trie.root[code] ?? 0
    const child = childOf(trie, node, code)
    if (child !== 0 || node === 0) return child
    node = trie.fail[node] ?? 0
  }
}

/** Breadth first: a node's fallback is shorter, so it is already linked. */
const linkSuffixes = (trie: Omit<Trie, 'longest'>): void => {
  const queue: number[] = [0]
  for (const node of queue) {
    for (let child = trie.firstChild[node] ?? 0; child !== 0; child = trie.sibling[child] ?? 0) {
      if (node !== 0) trie.fail[child] = next(trie, trie.fail[node] ?? 0, trie.code[child] ?? 0)
      trie.ending[child] = trie.forms.has(child) ? child : (trie.ending[trie.fail[child] ?? 0] ?? 0)
      queue.push(child)
    }
  }
}

/**
 * One interpretation of the text. Escape sequences allow several: `ESC [ 0f1e…` is a token if they are ignored, and `0f
 * ESC [ m 1e…` if they are parsed.
 */
type Reading = {
  /** Positions and codes of the last characters: a ring buffer sized for the longest secret plus a sequence to undo. */
  readonly positions: Float64Array
  readonly codes: Uint16Array
  skips: (code: number) => 'noise' | 'break' | undefined
  count: number
  lastBreak: number
  node: number
}

const createReading = (trie: Trie): Reading => {
  const ring = 2 ** Math.ceil(Math.log2(trie.longest + MAX_ESCAPE_LENGTH + 2))
  const [positions, codes] = [new Float64Array(ring), new Uint16Array(ring)]
  return { positions, codes, skips: createNoiseFilter(), count: 0, lastBreak: -1, node: 0 }
}

/** Copies only what may be the start of a secret. */
const copyPrefix = (trie: Trie, reading: Reading, other: Reading): void => {
  const ring = reading.positions.length
  for (let i = other.count - (trie.depth[other.node] ?? 0); i < other.count; i++) {
    reading.positions[i % ring] = other.positions[i % ring] ?? 0
    reading.codes[i % ring] = other.codes[i % ring] ?? 0
  }
  reading.skips = createNoiseFilter()
  ;[reading.count, reading.lastBreak, reading.node] = [other.count, other.lastBreak, other.node]
}

const matchesForm = ({ codes, count, lastBreak }: Reading, form: string): boolean => {
  if (form.length >= MIN_DISTINCTIVE_LENGTH) return true
  if (lastBreak > count - form.length) return false
  for (let i = 0; i < form.length; i++) {
    if (codes[(count - form.length + i) % codes.length] !== form.charCodeAt(i)) return false
  }
  return true
}

/** Returns the start of the secret that ends with this character. */
const read = (trie: Trie, reading: Reading, code: number, position: number): number | undefined => {
  const { positions, codes } = reading
  const skipped = reading.skips(code)
  if (skipped === 'break') reading.lastBreak = reading.count
  if (skipped !== undefined) return undefined
  positions[reading.count % positions.length] = position
  codes[reading.count % codes.length] = code
  reading.count++
  reading.node = next(trie, reading.node, lowerCase(code))
  for (let end = trie.ending[reading.node] ?? 0; end !== 0; end = trie.ending[trie.fail[end] ?? 0] ?? 0) {
    const form = trie.forms.get(end)?.find((one) => matchesForm(reading, one))
    if (form !== undefined) return positions[(reading.count - form.length) % positions.length] ?? 0
  }
  return undefined
}

const openPrefix = (trie: Trie, { positions, count, node }: Reading): { depth: number; from: number } => {
  let last = node
  // A complete secret that isn't a prefix of a longer one is finished: don't wait for more.
  while (last !== 0 && trie.firstChild[last] === 0) last = trie.fail[last] ?? 0
  const depth = trie.depth[last] ?? 0
  return { depth, from: depth === 0 ? Infinity : (positions[(count - depth) % positions.length] ?? 0) }
}

const createScanner = (trie: Trie): Scanner & { readonly reset: () => void } => {
  const depthOf = ({ node }: Reading): number => trie.depth[node] ?? 0
  /** As a terminal shows it: without escape sequences. */
  const shown = createReading(trie)
  /** With escape sequences as plain text. */
  const plain = createReading(trie)
  /** At each sequence, whichever of the two gets further into a secret. */
  const best = createReading(trie)
  /** `best` before the current sequence, to restore. */
  let beforeEscape: Reading | undefined
  let inEscape = createEscapeReader()
  let position = 0
  let spans: Span[] = []
  /** Whether the other readings differ from `shown`. */
  let diverged = false

  const readInto = (reading: Reading, code: number): void => {
    const from = read(trie, reading, code, position)
    if (from !== undefined) spans.push({ from, to: position + 1 })
  }
  const chooseBest = (): void => {
    if (beforeEscape !== undefined && depthOf(beforeEscape) > depthOf(best)) Object.assign(best, beforeEscape)
    beforeEscape = undefined
  }
  const readDiverged = (code: number, part: 'begin' | 'inside' | undefined): void => {
    if (!diverged) for (const reading of [plain, best]) copyPrefix(trie, reading, shown)
    diverged = true
    if (part !== 'inside') chooseBest()
    if (part === 'begin') beforeEscape = { ...best }
    if (part === undefined) readInto(shown, code)
    readInto(plain, code)
    readInto(best, code)
    // From here on they would find nothing that `shown` misses.
    diverged = part !== undefined || plain.node !== 0 || best.node !== 0
  }

  return {
    reset: () => {
      for (const reading of [shown, plain, best]) {
        reading.skips = createNoiseFilter()
        ;[reading.count, reading.lastBreak, reading.node] = [0, -1, 0]
      }
      inEscape = createEscapeReader()
      ;[position, spans, diverged, beforeEscape] = [0, [], false, undefined]
    },
    feed: (text) => {
      for (let i = 0; i < text.length; i++, position++) {
        const code = text.charCodeAt(i)
        const part = inEscape(code)
        if (part === undefined && !diverged) readInto(shown, code)
        else readDiverged(code, part)
      }
    },
    takeSpans: () => {
      const taken = mergeSpans(spans)
      spans = []
      return taken
    },
    open: () => {
      const readings = [
        shown,
        ...(diverged ? [plain, best] : []),
        ...(beforeEscape === undefined ? [] : [beforeEscape]),
      ]
      const opens = readings.map((reading) => openPrefix(trie, reading))
      return {
        depth: Math.max(...opens.map(({ depth }) => depth)),
        from: Math.min(position, ...opens.map(({ from }) => from)),
      }
    },
  }
}

/** Merges overlapping spans. */
const mergeSpans = (spans: Span[]): Span[] => {
  const result: Span[] = []
  for (const { from, to } of spans.sort((a, b) => a.from - b.from || a.to - b.to)) {
    const last = result.at(-1)
    if (last === undefined || last.to <= from) result.push({ from, to })
    else result[result.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return result
}

/** ASCII only, like secrets and their encodings. */
const lowerCase = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code)
