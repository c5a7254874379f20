import { withoutInvisible } from '../../../domain/text/visible.ts'
import { segmentsOf } from './segments.ts'

/** What a person sees on GitHub, where instructions have also been hidden in HTML comments. */
export const visible = (text: string): string =>
  segmentsOf(withoutInvisible(text))
    .filter(({ kind }) => kind !== 'hidden')
    .map((segment) => segment.text)
    .join('')
    .trim()
