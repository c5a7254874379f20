/** The directory that a `.git` file names. All of the file counts, as for git: a directory's name may hold a newline. */
export const linkedGitDirectory = (text: string | undefined): string | undefined =>
  /^gitdir: (.+)$/s.exec(text?.replace(/[\r\n]+$/, '') ?? '')?.[1]
