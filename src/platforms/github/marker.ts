import { withoutMentions } from './markdown/mentions.ts'

/*
 * Each of our comments ends with a hidden line that identifies the reply, so that it isn't sent twice, and marks it as
 * ours, so that we never answer ourselves.
 */

/** GitHub's limit is 65,536 characters; the marker and the continuation note need some of them. */
export const COMMENT_LIMIT = 65_000

export const withMarker = (text: string, id: string): string =>
  `${withoutMentions(withoutForgedMarkers(text))}\n\n${markerOf(id)}`

/** An unfinished reply, to be replaced by the final one. */
export const asPreview = (text: string): string => {
  // The newest part is at the end.
  const shown = text.length > COMMENT_LIMIT ? `…${text.slice(-COMMENT_LIMIT).toWellFormed()}` : text
  return withMarker(`${shown}\n\n…`, PREVIEW)
}

export const hasMarker = (body: string, id: string): boolean => lastLine(body) === markerOf(id)
export const isPreview = (body: string): boolean => hasMarker(body, PREVIEW)
export const isOurs = (body: string): boolean => /^<!-- coppice:[\w.:-]+ -->$/.test(lastLine(body))

/** A marker that somebody quotes is in the last line, but isn't all of it. */
const lastLine = (body: string): string => {
  const end = body.slice(-500).trimEnd()
  return end.slice(end.lastIndexOf('\n') + 1)
}

const PREVIEW = 'preview'
const markerOf = (id: string): string => `<!-- coppice:${id} -->`

/** An agent tricked into writing a marker must not make one reply look like another. */
const withoutForgedMarkers = (text: string): string => text.replaceAll(/<!--(\s*)coppice:/gi, '<!--$1coppice :')
