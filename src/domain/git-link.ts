import { trimEndOf } from './trim-end.ts'

/** The directory that a `.git` file names. All of the file counts, as for git: a directory's name may hold a newline. */
export const linkedGitDirectory = (text: string | undefined): string | undefined =>
  /^gitdir: (.+)$/s.exec(trimEndOf(text ?? '', '\r\n'))?.[1]

/** How large a file of one line may be: a loose ref, HEAD, gitdir, commondir, a `.git` file. Git's own limit is 1 MB. */
export const maxLineBytes = 64 * 1024
