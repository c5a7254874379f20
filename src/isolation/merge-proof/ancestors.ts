import { toAppError } from '../../domain/errors.ts'
import type { MergeDoubt, Merged } from '../../domain/merge-proof.ts'
import type { Sha } from '../../domain/names.ts'
import { branchReflog } from '../../git/reflog.ts'
import { firstParentsDownTo, notReachableFrom } from '../../git/reachable.ts'
import type { BranchQuestion, Inquiry } from './merge-question.ts'
import { type OwnWork, ownWork } from './own-commits.ts'

export type Answered = { readonly question: BranchQuestion; readonly answer: Merged }

/**
 * Branches whose tip is in base's history: landed, or empty? Only a branch with its own commits can have landed. The
 * commits are safe either way, but merged branches get removed, and one made a minute ago must not be. At most three
 * processes for all of them.
 */
export const landedOrEmpty = async (inquiry: Inquiry, questions: readonly BranchQuestion[]): Promise<Answered[]> => {
  const found = questions.filter(neverMoved).map((question): Answered => ({ question, answer: { value: 'empty' } }))
  const moved = questions.filter((question) => !neverMoved(question))
  if (moved.length === 0) return found
  const { git, repo, base, signal } = inquiry
  const tips = moved.map(({ tip }) => tip)
  const line = await firstParentsDownTo(git, repo, base.sha, tips, { signal })
  // What base got through a merge was made on a branch; base itself moves only along its first parents.
  const beside = moved.filter(({ tip }) => !line.has(tip))
  found.push(...beside.map((question) => ({ question, answer: landed(inquiry) })))
  return [
    ...found,
    ...(await byReflog(
      inquiry,
      moved.filter(({ tip }) => line.has(tip)),
    )),
  ]
}

const neverMoved = ({ tip, start, borrowed }: BranchQuestion): boolean => tip === start && borrowed !== true

const landed = ({ base }: Inquiry): Merged => ({ value: 'yes', proof: 'ancestor', base: base.name })

const byReflog = async (inquiry: Inquiry, questions: readonly BranchQuestion[]): Promise<Answered[]> => {
  const { git, repo, base, signal } = inquiry
  const works = await Promise.all(
    questions.map(async (question) => ({ question, work: await workOf(inquiry, question) })),
  )
  const made = works.flatMap(({ work }) => ('failed' in work ? [] : work.made))
  const elsewhere = await notReachableFrom(git, repo, base.sha, made, { signal })
  return works.map(({ question, work }) => ({ question, answer: judge(inquiry, question, work, elsewhere) }))
}

const workOf = async (
  { repo }: Inquiry,
  { branch, start, tip, log }: BranchQuestion,
): Promise<OwnWork | { readonly failed: string }> => {
  try {
    return ownWork(await branchReflog(log ?? repo, branch), start, tip)
  } catch (error) {
    return { failed: toAppError(error).message }
  }
}

const judge = (
  inquiry: Inquiry,
  { branch, borrowed }: BranchQuestion,
  work: OwnWork | { readonly failed: string },
  elsewhere: ReadonlySet<Sha>,
): Merged => {
  if ('failed' in work) return cannotTell({ kind: 'reflog-unreadable', branch, message: work.failed })
  if (work.made.some((sha) => !elsewhere.has(sha))) return landed(inquiry)
  if (borrowed === true) return cannotTell({ kind: 'commits-of-others', branch })
  if (work.complete) return { value: 'empty' }
  return cannotTell({ kind: 'reflog-silent', branch })
}

const cannotTell = (why: MergeDoubt): Merged => ({ value: 'cannot-tell', why })
