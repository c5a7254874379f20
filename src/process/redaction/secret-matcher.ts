/*
 * Finds many secrets in one pass over a text that may come in pieces (Aho and Corasick, 1975): the work per character
 * does not grow with the number of secrets, and at every point it is known how much of a secret may have begun.
 */
import { createEscapeReader, createNoiseFilter, LONGEST_ESCAPE, withoutNoise } from './text-noise.ts'

export type Span = { readonly from: number; readonly to: number }

/** Reads a text, piece by piece. Positions count from the first character it was ever given. */
export type Scanner = {
  readonly feed: (text: string) => void
  /** The secrets that were completed since the last call, in order and apart from each other. */
  readonly takeSpans: () => Span[]
  /** How many characters at the end may be the beginning of a secret, and where they begin. */
  readonly open: () => { readonly depth: number; readonly from: number }
}

export type Matcher = {
  readonly longest: number
  readonly scan: () => Scanner
  /** All secrets in a whole text. */
  readonly find: (text: string) => Span[]
}

/**
 * From this length on a secret is also recognised in another case and with line breaks in it: nothing else looks like
 * it. A short one ("foobar") would take ordinary text with it.
 */
const DISTINCTIVE = 16

/** Without secrets there is nothing to look for: undefined. */
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
  /** One node per character of a form. Nearly all have one child, so children are a list, not a table. */
  readonly firstChild: Int32Array
  /** The first characters by their code, as far as they are ASCII: most of a text goes from the root to the root. */
  readonly root: Int32Array
  readonly sibling: Int32Array
  readonly code: Uint16Array
  readonly depth: Int32Array
  /** Where to go on when no child fits: the longest suffix that is a beginning too. */
  readonly fail: Int32Array
  /** The nearest node, itself or by `fail`, that ends a form; 0 for none. */
  readonly ending: Int32Array
  /** The forms that end at a node, as they are written; several when they differ in case only. */
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
      const code = folded(form.charCodeAt(i))
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

/** Breadth first: what a node falls back to is shorter, and therefore linked already. */
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
 * One reading of the text. There are several when it has escape sequences: `ESC [ 0f1e…` is a token to whoever does not
 * know these sequences, and `0f ESC [ m 1e…` to whoever does.
 */
type Reading = {
  /**
   * Where each of the last characters stood, and which it was: a ring with room for the longest secret, and for a
   * sequence that is taken back.
   */
  readonly places: Float64Array
  readonly codes: Uint16Array
  skips: (code: number) => 'noise' | 'break' | undefined
  count: number
  lastBreak: number
  node: number
}

const createReading = (trie: Trie): Reading => {
  const ring = 2 ** Math.ceil(Math.log2(trie.longest + LONGEST_ESCAPE + 2))
  const [places, codes] = [new Float64Array(ring), new Uint16Array(ring)]
  return { places, codes, skips: createNoiseFilter(), count: 0, lastBreak: -1, node: 0 }
}

/** Of what came before, only what may be the beginning of a secret still matters. */
const follow = (trie: Trie, reading: Reading, other: Reading): void => {
  const ring = reading.places.length
  for (let i = other.count - (trie.depth[other.node] ?? 0); i < other.count; i++) {
    reading.places[i % ring] = other.places[i % ring] ?? 0
    reading.codes[i % ring] = other.codes[i % ring] ?? 0
  }
  reading.skips = createNoiseFilter()
  ;[reading.count, reading.lastBreak, reading.node] = [other.count, other.lastBreak, other.node]
}

const isWritten = ({ codes, count, lastBreak }: Reading, form: string): boolean => {
  if (form.length >= DISTINCTIVE) return true
  if (lastBreak > count - form.length) return false
  for (let i = 0; i < form.length; i++) {
    if (codes[(count - form.length + i) % codes.length] !== form.charCodeAt(i)) return false
  }
  return true
}

/** Answers where the secret began that ends with this character. */
const read = (trie: Trie, reading: Reading, code: number, position: number): number | undefined => {
  const { places, codes } = reading
  const skipped = reading.skips(code)
  if (skipped === 'break') reading.lastBreak = reading.count
  if (skipped !== undefined) return undefined
  places[reading.count % places.length] = position
  codes[reading.count % codes.length] = code
  reading.count++
  reading.node = next(trie, reading.node, folded(code))
  for (let end = trie.ending[reading.node] ?? 0; end !== 0; end = trie.ending[trie.fail[end] ?? 0] ?? 0) {
    const form = trie.forms.get(end)?.find((one) => isWritten(reading, one))
    if (form !== undefined) return places[(reading.count - form.length) % places.length] ?? 0
  }
  return undefined
}

const openIn = (trie: Trie, { places, count, node }: Reading): { depth: number; from: number } => {
  let last = node
  // A secret that is complete and begins no longer one is over: nothing has to be waited for.
  while (last !== 0 && trie.firstChild[last] === 0) last = trie.fail[last] ?? 0
  const depth = trie.depth[last] ?? 0
  return { depth, from: depth === 0 ? Infinity : (places[(count - depth) % places.length] ?? 0) }
}

const createScanner = (trie: Trie): Scanner & { readonly reset: () => void } => {
  const depthOf = ({ node }: Reading): number => trie.depth[node] ?? 0
  /** As a terminal shows it: without the sequences. */
  const shown = createReading(trie)
  /** As if there were no sequences: all of them are text. */
  const plain = createReading(trie)
  /** Whichever of the two leads further into a secret, at each sequence anew. */
  const best = createReading(trie)
  /** `best` as it was before the sequence that goes on now, to go back to. */
  let without: Reading | undefined
  let inEscape = createEscapeReader()
  let position = 0
  let spans: Span[] = []
  /** Whether the other readings differ from `shown`. */
  let divided = false

  const take = (reading: Reading, code: number): void => {
    const from = read(trie, reading, code, position)
    if (from !== undefined) spans.push({ from, to: position + 1 })
  }
  const decide = (): void => {
    if (without !== undefined && depthOf(without) > depthOf(best)) Object.assign(best, without)
    without = undefined
  }
  const takeDivided = (code: number, part: 'begin' | 'inside' | undefined): void => {
    if (!divided) for (const reading of [plain, best]) follow(trie, reading, shown)
    divided = true
    if (part !== 'inside') decide()
    if (part === 'begin') without = { ...best }
    if (part === undefined) take(shown, code)
    take(plain, code)
    take(best, code)
    // From here on they would find nothing that `shown` does not find.
    divided = part !== undefined || plain.node !== 0 || best.node !== 0
  }

  return {
    reset: () => {
      for (const reading of [shown, plain, best]) {
        reading.skips = createNoiseFilter()
        ;[reading.count, reading.lastBreak, reading.node] = [0, -1, 0]
      }
      inEscape = createEscapeReader()
      ;[position, spans, divided, without] = [0, [], false, undefined]
    },
    feed: (text) => {
      for (let i = 0; i < text.length; i++, position++) {
        const code = text.charCodeAt(i)
        const part = inEscape(code)
        if (part === undefined && !divided) take(shown, code)
        else takeDivided(code, part)
      }
    },
    takeSpans: () => {
      const taken = apart(spans)
      spans = []
      return taken
    },
    open: () => {
      const readings = [shown, ...(divided ? [plain, best] : []), ...(without === undefined ? [] : [without])]
      const opens = readings.map((reading) => openIn(trie, reading))
      return {
        depth: Math.max(...opens.map(({ depth }) => depth)),
        from: Math.min(position, ...opens.map(({ from }) => from)),
      }
    },
  }
}

/** One that reaches back into another hides both as one. */
const apart = (spans: Span[]): Span[] => {
  const result: Span[] = []
  for (const { from, to } of spans.sort((a, b) => a.from - b.from || a.to - b.to)) {
    const last = result.at(-1)
    if (last === undefined || last.to <= from) result.push({ from, to })
    else result[result.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return result
}

/** ASCII only: secrets and their encodings are. */
const folded = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code)
