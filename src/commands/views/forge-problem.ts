import type { ForgeProblem } from '../../domain/forge/issues.ts'
import { coppice, type Remedy, remedy } from '../../domain/remedy.ts'

/** Why a code host gave no answer, and what to do about it. */
export const forgeProblem = (problem: ForgeProblem, now: number): { readonly what: string; readonly todo: Remedy } => {
  switch (problem.outcome) {
    case 'no-forge':
      return {
        what: "the repository isn't on a GitHub that Coppice knows",
        todo: remedy`name it with ${coppice('codebase add <path> --github <owner/name>')}. For a GitHub Enterprise Server, set GITHUB_API_URL`,
      }
    case 'unreachable':
      return { what: `couldn't reach ${problem.forge}: ${problem.said}`, todo: 'check the network and try again' }
    case 'limited':
      return {
        what: `${problem.forge}'s rate limit was reached; it resets ${inMinutes(problem.until, now)}`,
        todo: problem.anonymous
          ? 'without a token, GitHub allows 60 requests an hour; set GITHUB_TOKEN for 5,000'
          : 'try again then',
      }
    case 'refused':
      return { what: `${problem.forge} refused: ${problem.said}`, todo: refusedTodo(problem) }
  }
}

const refusedTodo = ({ why, anonymous }: Extract<ForgeProblem, { outcome: 'refused' }>): string => {
  if (why === 'other') return "check the repository's settings there"
  return anonymous
    ? 'if the repository is private, set GITHUB_TOKEN, or configure a GitHub App'
    : 'check that the repository exists, and that the token or app has "Issues: read" there'
}

const inMinutes = (until: number, now: number): string => {
  const minutes = Math.ceil((until - now) / 60_000)
  return minutes <= 1 ? 'in a minute' : `in ${minutes} minutes`
}
