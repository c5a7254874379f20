import { withoutInvisible } from '../visible.ts'
import { segmentsOf } from './segments.ts'

/** What a person sees of a text on GitHub, where instructions have been hidden in HTML comments too. */
export const visible = (text: string): string =>
  segmentsOf(withoutInvisible(text))
    .filter(({ kind }) => kind !== 'hidden')
    .map((segment) => segment.text)
    .join('')
    .trim()
