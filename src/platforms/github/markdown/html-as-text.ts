import { type Segment, segmentsOf } from './segments.ts'

/**
 * Shows HTML that hides something as it was written: a comment that never ends would hide whatever follows it. What it
 * hid may be Markdown, which changes how the rest is read, so the result is read again.
 */
export const htmlAsText = (text: string): string => {
  let shown = text
  for (let times = 0; times < MOST_TIMES; times++) {
    const segments = segmentsOf(shown)
    if (!segments.some(isHtml)) return shown
    shown = segments.map((one) => (isHtml(one) ? escaped(one.text) : one.text)).join('')
  }
  return escaped(shown)
}

const MOST_TIMES = 3

const isHtml = ({ kind, text }: Segment): boolean => kind === 'hidden' && text.includes('<')

const escaped = (text: string): string => text.replaceAll('<', '&lt;')
