import { shellWord } from '../../domain/text/shell-word.ts'
import { tilde, type View } from './view.ts'

/** A path to paste, shortened if possible: a shell doesn't expand a quoted `~`. */
export const shellPath = (path: string, view: Pick<View, 'userHome'>): string => {
  const word = shellWord(path)
  return word === path ? tilde(path, view) : word
}
