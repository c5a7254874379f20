/*
 * Is a branch merged? In: branches and a base. Out: for each a proof, no, or "cannot tell".
 */
import type { Codebase } from '../../domain/environment.ts'
import { AppError, toAppError } from '../../domain/errors.ts'
import type { Merged, Proven } from '../../domain/merge-proof.ts'
import { type BranchName, type Sha, toRepoPath } from '../../domain/names.ts'
import type { AheadBehind } from '../../git/ahead-behind.ts'
import type { CallOptions } from '../../git/door.ts'
import { countAheadBehind } from '../../git/history.ts'
import { treesOf } from '../../git/trees.ts'
import { landedOrEmpty } from './ancestors.ts'
import type { Base } from '../codebases/base-branch.ts'
import { doubtsAbout } from './base-proof.ts'
import type { IsolationContext } from '../context.ts'
import { mapInPairs } from '../map-concurrent.ts'
import { provenByForge } from './merged-on-forge.ts'
import { type BranchQuestion, type Inquiry, isItsOwnBase } from './merge-question.ts'

export type MergedOptions = CallOptions & {
  /** How far the tips are from base, if already known. */
  readonly positions?: ReadonlyMap<Sha, AheadBehind>
}

/**
 * Has each branch landed on base, and by which proof? Questions that git can answer for all branches at once are asked
 * once; only branches still open after that cost processes each, and their answers are cached, being facts about
 * commits. Not cached: whether a branch within base's history is empty, which depends on its reflog and can change
 * without the commits (a constant few processes); and *cannot tell*. What the forge said before counts; nothing is asked
 * here.
 */
export const mergedMany = async (
  context: IsolationContext,
  codebase: Codebase,
  questions: readonly BranchQuestion[],
  base: Base,
  options: MergedOptions = {},
): Promise<Map<BranchName, Merged>> => {
  const { signal, positions } = options
  const repo = { commonDir: toRepoPath(codebase.repoPath) }
  const inquiry: Inquiry = { git: context.git, repo, base, signal, positions }
  const known = await knownAnswers(context, codebase, base)
  const others = questions.filter((question) => !isItsOwnBase(question, base))
  const found = await askAll(
    inquiry,
    others.filter((question) => !known.has(keyOf(question))),
  )
  if (signal?.aborted === true) throw new AppError('cancelled', 'cancelled while looking for what has been merged')
  await keep(context, codebase, base, found)
  const answers = new Map(found.map(({ question, answer }) => [question.branch, answer]))
  for (const question of questions) {
    const answer = isItsOwnBase(question, base) ? ownBase(base) : known.get(keyOf(question))
    if (answer !== undefined) answers.set(question.branch, answer)
  }
  const landed = questions.filter(({ branch }) => answers.get(branch)?.value === 'yes')
  const doubts = await doubtsAbout(context, codebase, base, landed, { signal })
  for (const [branch, why] of doubts) answers.set(branch, { value: 'cannot-tell', why })
  const open = others.filter(({ branch }) => isOpen(answers.get(branch)))
  const proven = await provenByForge(context, inquiry, codebase, open)
  for (const [branch, answer] of proven) answers.set(branch, answer)
  const lasting = open.flatMap((question): Found[] => {
    const answer = proven.get(question.branch)
    return answer === undefined ? [] : [{ question, answer, lasting: true }]
  })
  await keep(context, codebase, base, lasting)
  return answers
}

type Found = {
  readonly question: BranchQuestion
  readonly answer: Merged
  /** It depends only on the commits. */
  readonly lasting: boolean
}

const askAll = async (inquiry: Inquiry, questions: readonly BranchQuestion[]): Promise<Found[]> => {
  if (questions.length === 0) return []
  try {
    return await askTogether(inquiry, questions)
  } catch (error) {
    const [only] = questions
    // One branch that git fails on must not cost the others their answers.
    if (questions.length > 1) return (await mapInPairs(questions, (question) => askAll(inquiry, [question]))).flat()
    return only === undefined ? [] : [{ question: only, answer: cannotTell(error), lasting: false }]
  }
}

const askTogether = async (inquiry: Inquiry, questions: readonly BranchQuestion[]): Promise<Found[]> => {
  const { git, repo, base, signal } = inquiry
  const tips = questions.map((question) => question.tip)
  const positions = inquiry.positions ?? (await countAheadBehind(git, repo, base.sha, tips, { signal }))
  const aheadOf = (question: BranchQuestion): number => positionOf(positions, question).ahead
  const inside = questions.filter((question) => aheadOf(question) === 0)
  const outside = questions.filter((question) => aheadOf(question) > 0)
  const landed = (await landedOrEmpty(inquiry, inside)).map((answered) => ({ ...answered, lasting: false }))
  if (outside.length === 0) return landed
  const trees = await treesOf(git, repo, [base.sha, ...outside.map((question) => question.tip)], { signal })
  const baseTree = trees.get(base.sha)
  const open: BranchQuestion[] = []
  const settled: Found[] = []
  for (const question of outside) {
    const same = trees.get(question.tip) === baseTree
    if (same) settled.push(yes(question, { proof: 'same-tree', base: base.name }))
    // Base has nothing that the branch lacks: merging would fast-forward to another tree, so there is no squash.
    else if (positionOf(positions, question).behind === 0) settled.push(no(question, aheadOf(question)))
    else open.push(question)
  }
  if (open.length === 0) return [...landed, ...settled]
  const { contentLanded } = await import('./landed-content.ts')
  const tried = await contentLanded({ ...inquiry, positions }, open, baseTree)
  const proven = tried.map(({ question, tried }): Found => {
    if ('failed' in tried) return { question, answer: cannotTell(tried.failed), lasting: false }
    return tried.proof === undefined ? no(question, aheadOf(question)) : yes(question, tried.proof)
  })
  return [...landed, ...settled, ...proven]
}

const positionOf = <P>(positions: ReadonlyMap<Sha, P>, { branch, tip }: BranchQuestion): P => {
  const position = positions.get(tip)
  if (position === undefined) throw new AppError('git-failed', `git did not say how ${branch} stands to its base`)
  return position
}

const yes = (question: BranchQuestion, proof: Proven): Found => ({
  question,
  answer: { value: 'yes', ...proof },
  lasting: true,
})

const no = (question: BranchQuestion, own: number): Found => ({ question, answer: { value: 'no', own }, lasting: true })

const ownBase = ({ name }: Base): Merged => ({ value: 'cannot-tell', why: { kind: 'own-base', base: name } })

const cannotTell = (error: unknown): Merged => ({
  value: 'cannot-tell',
  why: { kind: 'failed', message: toAppError(error).message },
})

const keyOf = ({ tip, start }: { readonly tip: Sha; readonly start: Sha | undefined }): string =>
  `${tip} ${start ?? ''}`

const knownAnswers = async (
  { store }: Pick<IsolationContext, 'store'>,
  codebase: Codebase,
  base: Base,
): Promise<ReadonlyMap<string, Merged>> => {
  const kept = await store.mergeAnswers.find(codebase.id, base.sha)
  return new Map(kept.map(({ question, answer }) => [keyOf(question), answer]))
}

const keep = async (
  { store, clock }: Pick<IsolationContext, 'store' | 'clock'>,
  codebase: Codebase,
  base: Base,
  found: readonly Found[],
): Promise<void> => {
  const lasting = found.filter((one) => one.lasting)
  if (lasting.length === 0) return
  const rows = lasting.map(({ question: { tip, start }, answer }) => ({
    question: { tip, start, base: base.sha },
    answer,
  }))
  await store.mergeAnswers.save(codebase.id, rows, clock())
  await store.mergeAnswers.keepOnly(codebase.id, base.sha)
}

const isOpen = (answer: Merged | undefined): boolean => answer?.value === 'no' || answer?.value === 'cannot-tell'
