import type { ItemChange } from '../../domain/fleet/item.ts'
import type { Landing, LandingBlock, LandingProblem, LandingRefusal } from '../../domain/fleet/landing.ts'
import { coppice, remedy, shell } from '../../domain/remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import type { LandRefusal } from '../../fleet/landing/land.ts'
import type { Explained } from './fleet-refusals.ts'
import { code, printable, type View } from './view.ts'

/** As documented for programs. */
export const landingJson = (
  { id, itemId, branch, sha, state, landedSha, attempts, gate, why }: Landing,
  codebase: string,
) => ({
  id,
  codebase,
  item: itemId ?? null,
  branch,
  sha,
  state,
  landedSha: landedSha ?? null,
  attempts,
  gate: gate ?? null,
  reason: why === undefined ? null : describeRefusal(why),
})

const MOST_PATHS = 20

/** A clause without a full stop. */
export const describeLandingProblem = (why: LandingProblem): string => {
  if (why.kind === 'gate-failed') return `\`${why.command}\` failed (log: ${why.log})`
  const shown = why.paths.slice(0, MOST_PATHS).map((path) => `\`${path}\``)
  const more = why.paths.length > MOST_PATHS ? ` and ${why.paths.length - MOST_PATHS} more` : ''
  return `it conflicts with its base in ${shown.join(', ')}${more}`
}

/** For the history, and for the agent that has to work on it again. */
export const describeSentBack = ({ landing, why }: Extract<ItemChange, { kind: 'sent-back' }>): string =>
  `landing ${landing} failed: ${describeLandingProblem(why)}. ${
    why.kind === 'conflict' ? 'Merge the base branch and resolve the conflict' : 'Merge the base branch and fix it'
  }`

export const describeRefusal = (why: LandingRefusal): string => {
  switch (why.kind) {
    case 'conflict':
    case 'gate-failed':
      return describeLandingProblem(why)
    case 'commit-gone':
      return 'its commit is no longer in the repository'
    case 'merge-undone':
      return 'its pull request was merged, but that commit is no longer on the base branch'
    case 'failed':
      return why.message
  }
}

/** Why a queue can't go on, and what to do. */
export const explainBlock = (why: LandingBlock, codebase: string): Explained => {
  switch (why.kind) {
    case 'offline':
      return { what: `the remote can't be reached: ${why.detail}`, todo: [] }
    case 'base-red':
      return {
        what: `\`${why.command}\` fails on ${why.base} itself, so nothing can land (log: ${why.log})`,
        todo: [`fix ${why.base}; the queue then continues`],
      }
    case 'not-approved':
      return {
        what: `its gates need your approval: ${why.commands.join('; ')}`,
        todo: [remedy`${coppice(`codebase trust ${shellWord(codebase)}`)}`],
      }
    case 'base-checked-out':
      return {
        what: `the repository has no remote, and ${why.base} is checked out in ${why.path}; Coppice doesn't change those files`,
        todo: ['add a remote and register it, or merge the branch yourself'],
      }
    case 'no-base':
      return { what: `${why.base} isn't a branch that work can land on`, todo: [] }
    case 'remote-changed':
      return {
        what: `the address of the remote was changed from ${why.from} to ${why.to}`,
        todo: [remedy`if that is right, confirm it: ${coppice('codebase add <path>')}`],
      }
    case 'remote-unconfirmed':
      return {
        what: `the remote ${why.remote} (${why.url}) was added since`,
        todo: [remedy`if that is right, confirm it: ${coppice(`codebase add ${shellWord(why.repository)}`)}`],
      }
    case 'remote-ambiguous':
      return {
        what: `the repository has several remotes: ${why.remotes.join(', ')}`,
        todo: ['name one of them origin'],
      }
    case 'rejected':
      return { what: `the remote rejected the push: ${why.said}`, todo: ['allow it there, or use pull requests'] }
    case 'base-moves':
      return { what: `${why.base} moved ${why.attempts} times while the branches were tested`, todo: [] }
    case 'failed':
      return { what: why.message, todo: [] }
  }
}

/** Why nothing was queued, and what to do. */
export const explainLand = (why: LandRefusal, itemId: number | undefined, codebase: string): Explained => {
  const named = itemId === undefined ? 'it' : `item ${itemId}`
  switch (why.kind) {
    case 'settled':
      return { what: `${named} is ${why.state} already`, todo: [] }
    case 'at-work':
      return {
        what: `${why.agent} is working on it`,
        todo: [remedy`see what it is doing: ${coppice(`peek ${shellWord(why.agent)}`)}`],
      }
    case 'nothing-done':
      return {
        what: "its work isn't finished",
        todo: itemId === undefined ? [] : [remedy`give it to an agent: ${coppice(`sling ${itemId}`)}`],
      }
    case 'pull-request':
      return { what: `it has a pull request: ${why.url}`, todo: ['merge that; Coppice then finishes the item'] }
    case 'no-branch':
      return { what: `branch ${why.branch} doesn't exist`, todo: [remedy`run ${shell('git branch --all')} for a list`] }
    case 'is-base':
      return { what: `${why.branch} is the base branch itself`, todo: [] }
    case 'no-commits':
      return { what: `it has no commits that ${why.base} doesn't have`, todo: [] }
    case 'untrusted':
      return {
        what: "its commits aren't proven to come from this repository",
        todo: [remedy`after reviewing it, trust its worktree: ${coppice('worktree trust <name>')}`],
      }
    case 'blocked':
      return explainBlock(why.why, codebase)
  }
}

/** `agent/alder-1 (item 3)` */
export const landingName = ({ branch, itemId }: Landing, view: View): string =>
  `${code(branch, view)}${itemId === undefined ? '' : printable(` (item ${itemId})`)}`

/** What became of it, in a line. */
export const landingLine = (landing: Landing, view: View): string => {
  const { id, state, landedSha, why } = landing
  const name = landingName(landing, view)
  switch (state) {
    case 'landed':
      return `${view.paint('green', 'Landed')}: ${name} as ${landedSha?.slice(0, 7) ?? 'unknown'}`
    case 'refused':
      return printable(
        `${view.paint('red', 'Refused')}: ${name}: ${why === undefined ? 'unknown' : describeRefusal(why)}`,
      )
    case 'superseded':
      return `Superseded: ${name} was queued again or closed`
    case 'queued':
    case 'testing':
      return `${state === 'queued' ? 'Queued' : 'Testing'}: ${name} (landing ${id})`
  }
}
