import { join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { isAppError, UnusableFileError } from '../../domain/errors.ts'
import { coppice, remedy, shell } from '../../domain/remedy.ts'
import { shellWord, writeLine } from '../../domain/text/shell-word.ts'
import type { Tree } from '../../domain/tree.ts'
import { type Head, readHead } from '../../git/admin-dir.ts'
import { borrowsFrom } from '../../git/borrowing-clone.ts'
import { listRefs, readRef } from '../../git/refs.ts'
import { repoOf } from '../../isolation/codebases/repo-of.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { providerOf } from '../../isolation/provider-of.ts'
import { type Finding, problem } from './finding.ts'

/** Whether git can read a clone: an agent can write anything in its git directory. */
export const examineClone = async (
  context: Pick<IsolationContext, 'git' | 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
): Promise<Finding[]> => {
  const head = await headOf(tree)
  if (head === 'odd' || head === undefined) return [brokenHead(codebase, environment, tree, head)]
  try {
    if (!borrowsFrom(tree, repoOf(codebase))) return [otherLender(codebase, environment, tree)]
    const refs = await listRefs(context.git, tree, ['refs/'])
    const isThere = refs.some(({ name }) => name === `refs/heads/${environment.branch}`)
    const isOnBranch = 'branch' in head && head.branch === environment.branch
    return isOnBranch && !isThere ? await goneBranch(context, codebase, environment, tree) : []
  } catch (error) {
    // A file that would block git is reported with the repository.
    if (!isAppError(error) || error instanceof UnusableFileError) return []
    return unreadableRefs(context, codebase, environment, tree, error.message)
  }
}

const headOf = async ({ gitDir }: Tree): Promise<Head | 'odd' | undefined> => {
  try {
    return await readHead(gitDir)
  } catch {
    return 'odd'
  }
}

const brokenHead = (
  { name }: Codebase,
  { branch, path }: IsolatedEnvironment,
  { gitDir }: Tree,
  head: 'odd' | undefined,
): Finding => {
  const file = join(gitDir, 'HEAD')
  const write = writeLine(file, `ref: refs/heads/${branch}`)
  // Move it out of the git directory: git must not start with a FIFO in there, under any name.
  return head === 'odd'
    ? problem(
        name,
        `${branch}: ${file} is not a file`,
        remedy`move it aside and write it again: ${shell(`mv ${shellWord(file)} ${shellWord(`${path}.HEAD.away`)} && ${write}`)}`,
        file,
      )
    : problem(name, `${branch}: ${file} is missing or broken`, remedy`write it again: ${shell(write)}`, file)
}

const otherLender = (codebase: Codebase, { branch }: IsolatedEnvironment, { gitDir }: Tree): Finding => {
  const file = join(gitDir, 'objects/info/alternates')
  const write = writeLine(file, join(repoOf(codebase).commonDir, 'objects'))
  return problem(codebase.name, `${branch}: ${file} was changed`, remedy`write it again: ${shell(write)}`, file)
}

const unreadableRefs = async (
  context: Pick<IsolationContext, 'git' | 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  tree: Tree,
  why: string,
): Promise<Finding[]> => {
  const { branch, path } = environment
  const broken = /missing object \S+ for (refs\/\S+)/.exec(why)?.[1]
  if (broken === `refs/heads/${branch}`) return goneBranch(context, codebase, environment, tree)
  const packed = join(tree.gitDir, 'packed-refs')
  const at = `git -C ${shellWord(path)}`
  const way =
    broken !== undefined
      ? remedy`it leads to nothing, so delete it: ${shell(`${at} update-ref -d ${shellWord(broken)}`)}`
      : why.includes('packed-refs')
        ? remedy`move it aside, then run ${coppice('doctor')} again: ${shell(`mv ${shellWord(packed)} ${shellWord(`${path}.packed-refs.away`)}`)}`
        : remedy`run ${shell(`${at} for-each-ref`)} and fix what git reports`
  return [problem(codebase.name, `${branch}: git can't read its refs: ${why}`, way)]
}

/** The repository has the last seen tip. */
const goneBranch = async (
  context: Pick<IsolationContext, 'git' | 'providers'>,
  codebase: Codebase,
  environment: IsolatedEnvironment,
  { gitDir }: Tree,
): Promise<Finding[]> => {
  const { branch, path } = environment
  const seen = (await providerOf(context, environment)).tipRef(environment)
  const tip = await readRef(context.git, repoOf(codebase), seen)
  if (tip === undefined) return []
  const log = join(gitDir, 'logs/refs/heads', branch)
  return [
    problem(
      codebase.name,
      `${branch}: its branch is missing or broken`,
      remedy`make it again where it was seen last (${log} may know a later commit): ${shell(`git -C ${shellWord(path)} update-ref ${shellWord(`refs/heads/${branch}`)} ${tip.sha}`)}`,
    ),
  ]
}
