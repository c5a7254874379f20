import { basename, dirname, join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { type AppError, isAppError, UnusableFileError } from '../../domain/errors.ts'
import { branchNameProblem } from '../../domain/names.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { mainHead } from '../../git/admin-dir.ts'
import { createLook } from '../../git/look.ts'
import { listRefs } from '../../git/refs.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { presenceOf } from '../../isolation/provider-of.ts'
import { repoOf } from '../../isolation/codebases/repo-of.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import { type Finding, problem } from './finding.ts'
import { coppice, type Remedy, remedy, shell } from '../../domain/remedy.ts'

/** Checks that git can use the repository and its worktrees: if not, every other command sends users here. */
export const examineRepository = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'providers' | 'host'>,
  codebase: Codebase,
): Promise<Finding[]> => {
  const unusable = await unusableFile(context, codebase)
  if (unusable !== undefined) {
    const file = unusable instanceof UnusableFileError ? unusable : undefined
    return [problem(codebase.name, unusable.message, remedyFor(codebase, unusable, file), file?.path)]
  }
  try {
    if ((await mainHead(codebase.repoPath)) === undefined) return [brokenHead(codebase)]
    await listRefs(context.git, repoOf(codebase), ['refs/heads'])
    return []
  } catch (error) {
    if (!isAppError(error)) throw error
    const way =
      error.remedy ?? remedy`run ${shell(`git -C ${shellWord(placeOf(codebase))} status`)} and fix what git reports`
    return [problem(codebase.name, `git cannot read ${placeOf(codebase)}: ${error.message}`, way)]
  }
}

/** The first file that git would block on, or read endlessly. */
const unusableFile = async (
  context: Pick<IsolationContext, 'store' | 'providers' | 'host'>,
  codebase: Codebase,
): Promise<AppError | undefined> => {
  const { before, whileSlow } = createLook([])
  const repo = repoOf(codebase)
  const live = (await context.store.environments.live(codebase.id)).filter(({ host }) => host === context.host)
  try {
    // Its worktrees' records are inside the repository.
    const found = await whileSlow({ operation: 'doctor', at: repo, args: [] }, () => false)
    if (found !== undefined) return found
    for (const environment of live) {
      const presence = await presenceOf(context, codebase, environment)
      if (presence.state === 'present') await before(presence.tree, { modules: true })
    }
    return undefined
  } catch (error) {
    if (isAppError(error, 'unusable-file')) return error
    throw error
  }
}

const remedyFor = (codebase: Codebase, fault: AppError, file: UnusableFileError | undefined): Remedy => {
  if (file?.holdsNothing !== true) return fault.remedy ?? 'restore the file from a backup'
  const next = nextStep(codebase, file.path)
  const path = shellWord(file.path)
  return next === undefined
    ? remedy`delete it, then run ${coppice('doctor')} again: ${shell(`rm ${path}`)}`
    : remedy`delete it and ${next.what}: ${shell(`rm ${path} && ${next.how}`)}`
}

const nextStep = (codebase: Codebase, file: string): { what: string; how: string } | undefined => {
  const isMain = dirname(file) === codebase.repoPath
  if (basename(file) === 'HEAD' && isMain) return { what: 'write it again', how: headCommand(codebase) }
  if (basename(file) === 'index') {
    const gitDir = dirname(file)
    const how = `git --git-dir=${shellWord(gitDir)} read-tree HEAD`
    return { what: 'rebuild it', how }
  }
  return undefined
}

const brokenHead = (codebase: Codebase): Finding =>
  problem(
    codebase.name,
    `${codebase.repoPath}/HEAD is missing or broken`,
    `write the branch that was checked out: ${headCommand(codebase)}`,
  )

const headCommand = ({ repoPath, baseBranch }: Codebase): string => {
  const known = lastCheckedOut(repoPath) ?? baseBranch
  const branch = known === undefined ? '<branch>' : shellWord(known)
  return `printf 'ref: refs/heads/%s\\n' ${branch} > ${shellWord(`${repoPath}/HEAD`)}`
}

/** From the reflog, which survives a broken HEAD. A branch that never changed has no such line. */
const lastCheckedOut = (repoPath: string): string | undefined => {
  const checkout = reflogOf(repoPath)
    .split('\n')
    .map((line) => line.slice(line.indexOf('\t') + 1))
    .findLast((message) => message.startsWith('checkout: moving from ') && message.includes(' to '))
  const name = checkout?.slice(checkout.lastIndexOf(' to ') + ' to '.length)
  return name !== undefined && branchNameProblem(name) === undefined && !/^[0-9a-f]{40}$/.test(name) ? name : undefined
}

const reflogOf = (repoPath: string): string => {
  try {
    return readUntrustedTextSync(join(repoPath, 'logs', 'HEAD')) ?? ''
  } catch {
    return ''
  }
}

const placeOf = ({ checkoutPath, repoPath }: Codebase): string => checkoutPath ?? repoPath
