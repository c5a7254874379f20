import type { Codebase } from '../domain/environment.ts'
import type { IsolationHints } from '../domain/hints.ts'
import { branchNameProblem } from '../domain/names.ts'
import { numbersIn } from '../domain/related.ts'

/**
 * What the first message of a thread plainly says about its work: one pull request of this repository by its address,
 * or one branch that is called a branch. Everything less plain is at most an offer.
 */
export const hintsInText = (
  text: string,
  codebase: Pick<Codebase, 'github' | 'baseBranch'>,
): Pick<IsolationHints, 'linkedPRs' | 'suggestedBranch'> => {
  const pull = only(pullRequestsIn(text, codebase.github))
  const branch = only(branchesIn(text, codebase))
  return {
    ...(pull !== undefined && { linkedPRs: [pull] }),
    ...(branch !== undefined && { suggestedBranch: branch }),
  }
}

/** Whoever names two means neither in particular. */
const only = <T>(found: readonly T[]): T | undefined => {
  const different = new Set(found)
  return different.size === 1 ? found[0] : undefined
}

const pullRequestsIn = (text: string, github: string | undefined): number[] =>
  numbersIn(text, github).flatMap(({ number, type, addressed }) => (addressed && type === 'pr' ? [Number(number)] : []))

const branchesIn = (text: string, { github, baseBranch }: Pick<Codebase, 'github' | 'baseBranch'>): string[] => {
  const named = [...text.matchAll(NAMED_BRANCH)].flatMap(([, before, quote, after = '']) => {
    if (before !== undefined) return [before]
    return quote === '`' || /[\d_/-]|\../.test(after) ? [after] : []
  })
  const addressed = [...text.matchAll(BRANCH_ADDRESS)].flatMap(([, repository = '', branch = '']) =>
    repository.toLowerCase() === github?.toLowerCase() ? [branch] : [],
  )
  return [...named, ...addressed]
    .map((name) => (name.endsWith('.') ? name.slice(0, -1) : name))
    .filter((name) => branchNameProblem(name) === undefined && name !== baseBranch && !bases.has(name))
}

/** Work that starts from these still gets a branch of its own. */
const bases: ReadonlySet<string> = new Set(['main', 'master', 'trunk', 'develop'])

/** In backticks, or after the word and with a character that words don't have: `branch off main` names none. */
const NAMED_BRANCH = /`([\w./-]{2,200})` branch\b|\bbranch:?[ \t]{1,3}(`?)([\w./-]{2,200})/gi

const BRANCH_ADDRESS = /https?:\/\/[\w.:-]{1,253}\/([\w.-]{1,100}\/[\w.-]{1,100})\/tree\/([\w./-]{1,200})/gi
