import type { GateAnswer, GateName } from '../domain/gates.ts'
import { refusals } from '../domain/gates.ts'
import type { Refused } from '../isolation/provider.ts'
import { exitCodes, type FailureJson } from './failure.ts'
import { printable, type View } from './view.ts'

/** Why a removal was refused and the ways out that fit these reasons. */
export type Refusal = Refused & {
  /** It was asked with --force already. */
  readonly forced: boolean
  readonly restoreDays: number
}

export const refusedExit = exitCodes.refused

export const refusalText = (refusal: Refusal, view: View): string => {
  const ways = waysOut(refusal, view.say)
  const longest = Math.max(...ways.map(({ title }) => title.length))
  return [
    `Cannot remove worktree \`${refusal.environment.branch}\`: ${printable(detailsOf(refusal))}.`,
    ...ways.map(({ title, how }, i) => ` ${i + 1}. ${`${title}:`.padEnd(longest + 1)}  ${printable(how)}`),
  ].join('\n')
}

export const refusalJson = (refusal: Refusal, say: View['say']): FailureJson => ({
  error: {
    code: 'refused',
    message: `cannot remove worktree ${refusal.environment.branch}: ${detailsOf(refusal)}`,
    reasons: refusal.reasons.map(({ gate, answer, detail }) => ({ gate, answer, detail })),
    remedies: waysOut(refusal, say).map(({ title, how }) => `${title}: ${how}`),
  },
})

const detailsOf = ({ reasons }: Refusal): string => [...new Set(reasons.map(({ detail }) => detail))].join(', ')

type Way = { readonly title: string; readonly how: string }

const waysOut = (refusal: Refusal, say: View['say']): Way[] => {
  const { reasons, environment, forced, restoreDays } = refusal
  const { branch } = environment
  const has = (gate: GateName): boolean => reasons.some((reason) => reason.gate === gate)
  const dirty = reasons.filter(({ gate, answer }) => gate === 'nothing-uncommitted' && answer === 'no')
  const remove = say(`worktree remove ${branch}`)
  const ways: Way[] = []
  if (has('not-in-use')) ways.push(...wayOutOfUse(reasons, remove))
  if (dirty.some(({ detail }) => /changed|untracked/.test(detail))) {
    ways.push(
      { title: 'Commit and push', how: 'git add -A && git commit -m "WIP" && git push' },
      { title: 'Discard changes', how: 'git checkout . && git clean -fd' },
    )
  }
  if (dirty.some(({ detail }) => /half done/.test(detail))) {
    ways.push({ title: 'Finish or abort it', how: 'git status  (in the worktree; it says how)' })
  }
  if (has('nothing-unreachable')) ways.push({ title: 'Keep the commits', how: 'git branch <name>  (in the worktree)' })
  if (has('no-kept-files')) ways.push({ title: 'Save the files', how: 'copy them out of the worktree' })
  if (has('nobody-elses')) ways.push({ title: 'Wait', how: 'until the conversations that use it are closed or idle' })
  // Only what would help is offered: force never overrides a live process, what is not ours, or what nobody can tell.
  if (!forced && refusals(reasons, true).length === 0) {
    ways.push({
      title: 'Remove it anyway',
      how: `${remove} --force   (kept for ${restoreDays} days: ${say(`worktree restore ${branch}`)})`,
    })
  }
  if (ways.length === 0) ways.push({ title: 'See what is wrong', how: say('doctor') })
  return ways
}

const wayOutOfUse = (reasons: readonly GateAnswer[], remove: string): Way[] => {
  const details = reasons.filter(({ gate }) => gate === 'not-in-use').map(({ detail }) => detail)
  const pids = details.flatMap((detail) => /process (\d+) \(/.exec(detail)?.[1] ?? [])
  return [
    ...(details.some((detail) => detail.includes('you are inside')) || pids.length > 0
      ? [{ title: 'Step out of it', how: `cd to another directory in every shell that is inside, then ${remove}` }]
      : []),
    ...(pids.length > 0 ? [{ title: 'Stop what runs there', how: `look first: ps -fp ${pids.join(',')}` }] : []),
    ...(details.some((detail) => detail.startsWith('locked by'))
      ? [{ title: 'Unlock it', how: 'git worktree unlock <path>  (if the tool that locked it is done)' }]
      : []),
  ]
}
