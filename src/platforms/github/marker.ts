import { withoutMentions } from './mentions.ts'

/*
 * Every comment of ours ends with a line that the page does not show: it says which reply it is, so that none is sent
 * twice, and that it is ours, so that we never answer ourselves.
 */

/** GitHub takes 65,536 characters; the marker and what shows that a reply goes on need some of them. */
export const COMMENT_LIMIT = 65_000

export const withMarker = (text: string, id: string): string =>
  `${withoutMentions(withoutForgery(text))}\n\n${markerOf(id)}`

/** Still being written: to be replaced by the reply itself. */
export const asPreview = (text: string): string => {
  // Its end is what is new.
  const shown = text.length > COMMENT_LIMIT ? `…${text.slice(-COMMENT_LIMIT).toWellFormed()}` : text
  return withMarker(`${shown}\n\n…`, PREVIEW)
}

export const hasMarker = (body: string, id: string): boolean => body.trimEnd().endsWith(markerOf(id))
export const isPreview = (body: string): boolean => hasMarker(body, PREVIEW)
export const isOurs = (body: string): boolean => /<!-- coppice:[\w.:-]+ -->\s*$/.test(body.slice(-500))

const PREVIEW = 'preview'
const markerOf = (id: string): string => `<!-- coppice:${id} -->`

/** An agent that was talked into writing a marker must not make a reply look like another one. */
const withoutForgery = (text: string): string => text.replaceAll(/<!--(\s*)coppice:/gi, '<!--$1coppice :')
