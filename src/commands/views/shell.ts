import { shellWord } from '../../domain/shell-word.ts'
import { tilde, type View } from './view.ts'

/** A path to paste, short when it can be: quoted, a shell would take `~` as it stands. */
export const shellPath = (path: string, view: Pick<View, 'userHome'>): string => {
  const word = shellWord(path)
  return word === path ? tilde(path, view) : word
}
