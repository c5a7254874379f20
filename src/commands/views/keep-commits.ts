import type { Fact } from '../../domain/removal/reason.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import type {
  SubmoduleWorktree,
  UnpushedCommits,
  UnpushedSubmodule,
  UnpushedTip,
} from '../../domain/removal/unreachable.ts'
import { shellPath } from './shell.ts'
import type { View } from './view.ts'

/** One way out of a refusal. The command works as pasted, once `<name>` is filled in. */
export type Way = { readonly title: string; readonly how: string; /** Not a command. */ readonly isSentence?: true }

/** How to keep what a removal would lose. `git` builds a command for the worktree. */
export const waysToKeep = (facts: readonly Fact[], git: (command: string) => string, view: View): Way[] =>
  facts.flatMap((one): Way[] => {
    switch (one.kind) {
      case 'detached-head':
        return [{ title: 'Keep the commits', how: git('branch <name>') }]
      case 'own-ref':
        return [{ title: `Keep ${one.ref}`, how: git(`tag <name> ${shellWord(one.ref)}`) }]
      case 'clone-ref': {
        const from = `${shellPath(one.path, view)} ${shellWord(one.source)}:${placeFor(one.ref)}`
        return [{ title: `Keep ${one.ref}`, how: `git --git-dir ${shellPath(one.repository, view)} fetch ${from}` }]
      }
      case 'more-clone-refs': {
        const from = `${shellPath(one.path, view)} ${shellWord('refs/*:refs/kept/')}<name>${shellWord('/*')}`
        return [{ title: 'Keep all refs', how: `git --git-dir ${shellPath(one.repository, view)} fetch ${from}` }]
      }
      case 'submodule-commits':
        return [pushCommits(one)]
      case 'submodule-refs':
        return [pushRefs(one.submodule, one.refs)]
      case 'submodule-worktrees': {
        const inSubmodule = gitOf(one.submodule)
        const title = "Remove the submodule's worktree"
        return one.worktrees.map((worktree) => removeWorktree(title, inSubmodule, worktree, view))
      }
      case 'clone-worktrees':
        return one.worktrees.map((worktree) => removeWorktree('Remove the worktree', git, worktree, view))
      default:
        return []
    }
  })

/** A tag or a custom ref may point to a file; a branch can't. */
const placeFor = (ref: string): string =>
  ref.startsWith('refs/tags/')
    ? 'refs/tags/<name>'
    : /^(?:refs\/(?:heads|remotes|notes|stash)|stash@)/.test(ref)
      ? 'refs/heads/<name>'
      : 'refs/kept/<name>'

/**
 * A commit counts as pushed once a remote-tracking ref has it. So push each to a branch; a tag is enough only if the
 * remote can list its tags.
 */
const pushCommits = ({ submodule, tips, hasMoreTips }: UnpushedCommits): Way => {
  const git = gitOf(submodule)
  const to = shellWord(submodule.remote ?? 'origin')
  const named = tips.map((tip, i) => ({ tip, name: placeholder(i, tips.length) }))
  const branches = named.filter(({ tip }) => !(tip.at === 'tag' && tip.isFree))
  const fetched = branches.map(({ name }) => `+refs/heads/${name}:refs/remotes/${to}/${name}`)
  return {
    title: `Push the submodule's commits${hasMoreTips ? ` (the first ${tips.length} branches)` : ''}`,
    how: [
      ...addRemote(submodule, git),
      ...named.flatMap(({ tip, name }) =>
        tip.at === 'stash' || tip.at === 'reflog' ? [git(`branch ${name} ${tip.sha}`)] : [],
      ),
      git(`push ${to} ${named.map(({ tip, name }) => refspec(tip, name)).join(' ')}`),
      ...(submodule.tracksPushes || fetched.length === 0 ? [] : [git(`fetch --no-tags ${to} ${fetched.join(' ')}`)]),
    ].join(' && '),
  }
}

const refspec = (tip: UnpushedTip, name: string): string => {
  switch (tip.at) {
    case 'head':
      return `HEAD:refs/heads/${name}`
    case 'ref':
      return `${shellWord(tip.ref)}:refs/heads/${name}`
    case 'tag':
      return tip.isFree ? shellWord(tip.ref) : `${shellWord(`${tip.ref}^{commit}`)}:refs/heads/${name}`
    case 'stash':
    case 'reflog':
      return `refs/heads/${name}`
  }
}

/** Remote-tracking refs can only prove that commits were pushed. Delete anything else here once pushed. */
const pushRefs = (submodule: UnpushedSubmodule, all: readonly string[]): Way => {
  const git = gitOf(submodule)
  const refs = all.slice(0, mostRefs)
  const pushed = refs.map((ref, i) => `${shellWord(ref)}:refs/tags/${placeholder(i, refs.length)}`)
  const few = refs.length < all.length ? ` (the first ${refs.length})` : ''
  return {
    title: refs.length === 1 ? `Push ${refs.join()} and delete it here` : `Push the refs and delete them here${few}`,
    how: [
      ...addRemote(submodule, git),
      git(`push ${shellWord(submodule.remote ?? 'origin')} ${pushed.join(' ')}`),
      ...refs.map((ref) => git(`update-ref -d ${shellWord(ref)}`)),
    ].join(' && '),
  }
}

const mostRefs = 10

/** Moving it wouldn't help: it needs the submodule's git directory, wherever its files are. */
const removeWorktree = (
  title: string,
  git: (command: string) => string,
  { path, isLocked }: SubmoduleWorktree,
  view: View,
): Way => {
  if (path === undefined) return { title, how: git('worktree prune') }
  const at = shellPath(path, view)
  const unlock = isLocked ? [git(`worktree unlock ${at}`)] : []
  return { title, how: `${ignoredFirst}: ${[...unlock, git(`worktree remove ${at}`)].join(' && ')}` }
}

/** `git worktree remove` stops at changed and untracked files, but silently deletes ignored ones. */
export const ignoredFirst = 'first copy out the ignored files you need (git deletes them too), then'

/** Not `~`: shells don't expand it inside a word. */
const gitOf = ({ gitDir, filesAreGone }: UnpushedSubmodule) => {
  const dir = shellWord(gitDir)
  const git = `git --git-dir=${dir}${filesAreGone ? ` --work-tree=${dir}` : ''}`
  return (command: string): string => `${git} ${command}`
}

const addRemote = ({ remote }: UnpushedSubmodule, git: (command: string) => string): string[] =>
  remote === undefined ? [git('remote add origin <url>')] : []

/** Several in one command need different names. */
const placeholder = (index: number, count: number): string => (count === 1 ? '<name>' : `<name>-${index + 1}`)
