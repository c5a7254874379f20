import type { Span } from './secret-matcher.ts'

export const HIDDEN = '[hidden]'

/** Overlapping spans are hidden as one, so nothing of a nested secret remains. */
export const hide = (text: string, spans: readonly Span[]): string => {
  if (spans.length === 0) return text
  let shown = ''
  let at = 0
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from || b.to - a.to)) {
    if (from >= to) continue
    if (from >= at) shown += text.slice(at, from) + HIDDEN
    at = Math.max(at, to)
  }
  return shown + text.slice(at)
}
