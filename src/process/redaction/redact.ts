/*
 * Redaction. In: text, and the secrets known so far. Out: the same text with the secrets replaced, however they are
 * encoded or split.
 */
import { credentialSpans } from './credential-shapes.ts'
import { hide } from './hide.ts'
import { createRedactedStream, type RedactedStream } from './redact-stream.ts'
import { writtenForms } from './secret-forms.ts'
import { createMatcher, type Matcher } from './secret-matcher.ts'

export type Redact = (text: string) => string

/** All secrets known to this process. One instance, created at startup; it grows. */
export type Secrets = {
  /** For text from anyone: hides known secrets and anything that looks like a credential. */
  readonly redact: Redact
  /** For our own replies, where a branch may be named `sk-…`: hides known secrets only. */
  readonly redactKnown: Redact
  /** For text in pieces: a secret may be split between two. */
  readonly stream: (write: (text: string) => void) => RedactedStream
  readonly add: (...secrets: readonly (string | undefined)[]) => void
  /** For a secret that is no longer valid, so the set doesn't grow with every run. */
  readonly forget: (secret: string) => void
}

const NONE: readonly string[] = []

/**
 * `more` is called before each use, for secrets that another process may create. It must return the same array while
 * nothing has changed.
 */
export const createSecrets = (
  initial: readonly (string | undefined)[] = [],
  more: () => readonly string[] = () => NONE,
): Secrets => {
  const own = new Set<string>()
  let others = NONE
  let matcher: Matcher | undefined
  let stale = true
  const add: Secrets['add'] = (...secrets) => {
    for (const secret of secrets) {
      if (secret === undefined || own.has(secret)) continue
      own.add(secret)
      stale = true
    }
  }
  /** Built lazily: most short commands have nothing to hide. */
  const current = (): Matcher | undefined => {
    const found = more()
    stale ||= found !== others
    others = found
    if (stale) matcher = createMatcher([...own, ...others].flatMap((secret) => [...writtenForms(secret)]))
    stale = false
    return matcher
  }
  add(...initial)
  return {
    redact: (text) => (text === '' ? '' : hide(text, [...(current()?.find(text) ?? []), ...credentialSpans(text)])),
    redactKnown: (text) => hide(text, current()?.find(text) ?? []),
    stream: (write) => createRedactedStream({ matcher: current, write }),
    add,
    forget: (secret) => {
      if (own.delete(secret)) stale = true
    },
  }
}
