import { tilde, type View } from './view.ts'

/** One word of a command line that can be pasted: a branch may be called `$(reboot)`, a path may hold blanks. */
export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** A path to paste, short when it can be: quoted, a shell would take `~` as it stands. */
export const shellPath = (path: string, view: Pick<View, 'userHome'>): string => {
  const word = shellWord(path)
  return word === path ? tilde(path, view) : word
}
