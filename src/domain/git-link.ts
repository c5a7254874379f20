import { trimEndOf } from './text/trim-end.ts'

/** The directory that a `.git` file names. Like git, reads the whole file: a directory's name may contain a newline. */
export const linkedGitDirectory = (text: string | undefined): string | undefined =>
  /^gitdir: (.+)$/s.exec(trimEndOf(text ?? '', '\r\n'))?.[1]

/** Maximum size of a one-line file: a loose ref, HEAD, gitdir, commondir, a `.git` file. Git's own limit is 1 MB. */
export const maxLineBytes = 64 * 1024
