/*
 * Finds many secrets in one pass over a text that may come in pieces (Aho and Corasick, 1975): the work per character
 * does not grow with the number of secrets, and at every point it is known how much of a secret may have begun.
 */

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
  const trie = buildTrie([...new Set([...forms].map(withoutNoise))].filter((form) => form !== ''))
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

const createScanner = (trie: Trie): Scanner & { readonly reset: () => void } => {
  // Where each of the last characters stood, and which it was: a ring, as long as the longest secret.
  const ring = 2 ** Math.ceil(Math.log2(trie.longest + 1))
  const places = new Float64Array(ring)
  const codes = new Uint16Array(ring)
  let skips = createNoiseFilter()
  let position = 0
  let count = 0
  let lastBreak = -1
  let node = 0
  let spans: Span[] = []

  const isWritten = (form: string): boolean => {
    if (form.length >= DISTINCTIVE) return true
    if (lastBreak > count - form.length) return false
    for (let i = 0; i < form.length; i++) {
      if (codes[(count - form.length + i) % ring] !== form.charCodeAt(i)) return false
    }
    return true
  }
  const found = (): void => {
    for (let end = trie.ending[node] ?? 0; end !== 0; end = trie.ending[trie.fail[end] ?? 0] ?? 0) {
      const form = trie.forms.get(end)?.find(isWritten)
      if (form === undefined) continue
      let from = places[(count - form.length) % ring] ?? 0
      // One that reaches back into another hides both as one.
      while ((spans.at(-1)?.to ?? -1) > from) from = Math.min(from, spans.pop()?.from ?? from)
      spans.push({ from, to: position + 1 })
      return
    }
  }

  return {
    reset: () => {
      skips = createNoiseFilter()
      ;[position, count, lastBreak, node, spans] = [0, 0, -1, 0, []]
    },
    feed: (text) => {
      for (let i = 0; i < text.length; i++, position++) {
        const code = text.charCodeAt(i)
        const skipped = skips(code)
        if (skipped === 'break') lastBreak = count
        if (skipped !== undefined) continue
        places[count % ring] = position
        codes[count % ring] = code
        count++
        node = next(trie, node, folded(code))
        if (trie.ending[node] !== 0) found()
      }
    },
    takeSpans: () => {
      const taken = spans
      spans = []
      return taken
    },
    open: () => {
      let last = node
      // A secret that is complete and begins no longer one is over: nothing has to be waited for.
      while (last !== 0 && trie.firstChild[last] === 0) last = trie.fail[last] ?? 0
      const depth = trie.depth[last] ?? 0
      return { depth, from: depth === 0 ? position : (places[(count - depth) % ring] ?? position) }
    },
  }
}

/** ASCII only: secrets and their encodings are. */
const folded = (code: number): number => (code >= 65 && code <= 90 ? code + 32 : code)

const withoutNoise = (text: string): string => {
  const skips = createNoiseFilter()
  let kept = ''
  for (let i = 0; i < text.length; i++) if (skips(text.charCodeAt(i)) === undefined) kept += text.charAt(i)
  return kept
}

/**
 * What may stand inside a secret without a reader noticing: colours of a terminal, characters without width, control
 * characters, and a line break with the indentation after it (base64 wraps at 76 characters). Tells what is skipped.
 */
const createNoiseFilter = (): ((code: number) => 'noise' | 'break' | undefined) => {
  let escape: 'none' | 'begun' | 'sequence' = 'none'
  let afterBreak = false
  return (code) => {
    if (escape === 'begun') {
      escape = code === 0x5b ? 'sequence' : 'none'
      if (code >= 0x30 && code <= 0x5b) return 'noise'
    }
    if (escape === 'sequence') {
      if (code >= 0x40 && code <= 0x7e) escape = 'none'
      if (code >= 0x20 && code <= 0x7e) return 'noise'
      escape = 'none'
    }
    if (code === 0x1b) {
      escape = 'begun'
      return 'noise'
    }
    if (code === 0x0a || code === 0x0d) {
      afterBreak = true
      return 'break'
    }
    if (afterBreak && (code === 0x20 || code === 0x09)) return 'break'
    afterBreak = false
    return isInvisible(code) ? 'noise' : undefined
  }
}

const isInvisible = (code: number): boolean =>
  (code < 0x20 && code !== 0x09) ||
  (code >= 0x7f && code <= 0x9f) ||
  code === 0xad ||
  code === 0x180e ||
  (code >= 0x200b && code <= 0x200f) ||
  (code >= 0x202a && code <= 0x202e) ||
  (code >= 0x2060 && code <= 0x2064) ||
  code === 0xfeff
