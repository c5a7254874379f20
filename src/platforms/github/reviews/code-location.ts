import { z } from 'zod'
import { cutStart, oneLine, quoted } from '../quoted-text.ts'
import { withoutInvisible } from '../../../domain/text/visible.ts'

/** What a review comment is about. */
export type CodeLocation = {
  readonly path: string | undefined
  /** Undefined for a comment on the whole file. */
  readonly line: number | undefined
  readonly startLine: number | undefined
  /** `old`: a line that the pull request deletes or moves. */
  readonly file: 'old' | 'new' | undefined
  /** The code has changed since; the lines are those of the time. */
  readonly isOutdated: boolean
  readonly hunk: string | undefined
}

/** In deliveries and in the API's answers. */
export const codeLocationFields = {
  path: z.string().optional(),
  line: z.number().nullish(),
  start_line: z.number().nullish(),
  original_line: z.number().nullish(),
  original_start_line: z.number().nullish(),
  side: z.string().nullish(),
  subject_type: z.string().nullish(),
  diff_hunk: z.string().optional(),
}

type Fields = { readonly [Key in keyof typeof codeLocationFields]?: z.infer<(typeof codeLocationFields)[Key]> }

export const locationOf = (comment: Fields): CodeLocation => {
  const isOnFile = comment.subject_type === 'file'
  const isOutdated = !isOnFile && typeof comment.line !== 'number' && typeof comment.original_line === 'number'
  const [line, startLine] = isOutdated
    ? [comment.original_line, comment.original_start_line]
    : [comment.line, comment.start_line]
  return {
    path: comment.path,
    line: isOnFile ? undefined : (line ?? undefined),
    startLine: isOnFile ? undefined : (startLine ?? undefined),
    file: comment.side === 'LEFT' ? 'old' : comment.side === 'RIGHT' ? 'new' : undefined,
    isOutdated,
    hunk: comment.diff_hunk,
  }
}

/** `src/login.ts, lines 10 to 12 of the old file (outdated)`. */
export const describeLines = ({ path, line, startLine, file, isOutdated }: CodeLocation): string => {
  const lines =
    line === undefined
      ? ''
      : `, ${startLine === undefined || startLine === line ? `line ${line}` : `lines ${startLine} to ${line}`}${
          file === undefined ? '' : ` of the ${file} file`
        }`
  return `${oneLine(path ?? 'an unknown file')}${lines}${isOutdated ? ' (outdated)' : ''}`
}

/** The part of the diff that the comment is under: its line is the last one. */
export const quotedHunk = ({ hunk }: CodeLocation, most: number): string[] =>
  hunk === undefined || hunk === '' ? [] : [quoted(cutStart(withoutInvisible(hunk), most))]
