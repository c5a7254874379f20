import { credentialSpans } from './credential-shapes.ts'
import { hide } from './hide.ts'
import { createRedactedStream, type RedactedStream } from './redact-stream.ts'
import { writtenForms } from './secret-forms.ts'
import { createMatcher, type Matcher } from './secret-matcher.ts'

export type Redact = (text: string) => string

/** Every secret that this process knows. There is one, made where the process is put together, and it grows. */
export type Secrets = {
  /** For text that anybody may have written: hides the known secrets and what looks like a credential. */
  readonly redact: Redact
  /** For our own answers, where a branch may well be called `sk-…`: hides the known secrets only. */
  readonly redactKnown: Redact
  /** For text that comes in pieces: a secret may be split between two of them. */
  readonly stream: (write: (text: string) => void) => RedactedStream
  readonly add: (...secrets: readonly (string | undefined)[]) => void
  /** For a secret that has become worthless, so that the set does not grow with every run. */
  readonly forget: (secret: string) => void
}

const NONE: readonly string[] = []

/**
 * `more` is asked before each use, for a secret that another process may make at any time. It answers with the same list
 * as long as nothing has changed.
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
  /** Built when it is first needed: most short commands have nothing to hide. */
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
    redact: (text) => hide(text, [...(current()?.find(text) ?? []), ...credentialSpans(text)]),
    redactKnown: (text) => hide(text, current()?.find(text) ?? []),
    stream: (write) => createRedactedStream({ matcher: current, write }),
    add,
    forget: (secret) => {
      if (own.delete(secret)) stale = true
    },
  }
}
