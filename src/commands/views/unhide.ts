import { shellWord } from '../../domain/text/shell-word.ts'
import { shellPath } from './shell.ts'
import type { View } from './view.ts'

/** A command that makes `git status` show changes hidden by an index bit or by unchanged file times. */
export const unhide = (paths: readonly string[], root: string, view: View): string =>
  paths.length <= MOST_NAMED && paths.every(canBePasted) ? unhideNamed(paths, root, view) : unhideAll(root, view)

const MOST_NAMED = 20

/** U+FFFD marks bytes that aren't UTF-8. The form without names also works in shells without `$'…'`. */
const canBePasted = (path: string): boolean => !/[\p{Cc}\ufffd]/u.test(path)

/** Two calls: given both options, git clears only one of the bits. */
const unhideNamed = (paths: readonly string[], root: string, view: View): string => {
  const named = paths.map(shellWord).join(' ')
  const unset = (bit: 'assume-unchanged' | 'skip-worktree'): string =>
    `git -C ${shellPath(root, view)} update-index --no-${bit} -- ${named}`
  // A new time makes git read the file again; -c: don't create missing files.
  const touch = `touch -ch ${paths.map((path) => shellWord(`${root}/${path}`)).join(' ')}`
  return `${unset('assume-unchanged')} && ${unset('skip-worktree')} && ${touch}`
}

/**
 * All files with a bit set, as listed by git: for too many files, or names that can't be pasted. Files outside a sparse
 * checkout keep theirs, or git would call them deleted. An index older than the files makes git read them all again.
 */
const unhideAll = (root: string, view: View): string => {
  const flagged = `git ls-files -v -z | xargs -0 sh -c '${FLAGGED}' sh`
  const clear = `${flagged} | git update-index -z --no-$bit --stdin`
  const touch = 'touch -t 197101010000 "$(git rev-parse --git-path index)"'
  const bits = 'assume-unchanged skip-worktree'
  return `(cd ${shellPath(root, view)} && for bit in ${bits}; do ${clear} || exit; done && ${touch})`
}

/** The names without their tags, NUL-terminated: lower case is assume-unchanged, `S` or `s` skip-worktree. */
const FLAGGED = [
  'LC_ALL=C; for f do p=${f#? }; case $f in',
  '[sS]*) [ -e "$p" ] || [ -L "$p" ] || continue;;',
  '[abcdefghijklmnopqrtuvwxyz]*) ;;',
  '*) continue;; esac; printf "%s\\0" "$p"; done',
].join(' ')
