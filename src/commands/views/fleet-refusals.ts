import type { DoneRefusal } from '../../domain/fleet/done-refusal.ts'
import type { SlingRefusal } from '../../domain/fleet/sling-refusal.ts'
import { coppice, type Remedy, remedy, shell } from '../../domain/remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { notPublishedTexts } from '../pull-request/texts.ts'
import type { FailureJson } from './failure.ts'
import { describeRemedy, remedySentence } from './remedy.ts'
import { describeUncommitted } from './uncommitted.ts'
import { asProgram, type View } from './view.ts'

/** `what` prevents it, as a clause without a full stop; `todo` lists remedies. */
export type Explained = { readonly what: string; readonly todo: readonly Remedy[] }

export const explainSling = (why: SlingRefusal, itemId: number): Explained => {
  switch (why.kind) {
    case 'settled':
      return { what: `item ${itemId} is ${why.state}`, todo: [remedy`add a new one: ${coppice('item add <title>')}`] }
    case 'in-review':
      return {
        what: `item ${itemId} is finished and waiting to be merged`,
        todo: [remedy`close it once it is merged: ${coppice(`item close ${itemId}`)}`],
      }
    case 'hooked':
      return {
        what: `${why.agent} is working on item ${itemId}`,
        todo: [remedy`see what it is doing: ${coppice(`peek ${shellWord(why.agent)}`)}`],
      }
    case 'waits':
      return {
        what: `item ${itemId} waits for ${why.after.map((id) => `item ${id}`).join(', ')}`,
        todo: [remedy`start those first; ${coppice('item ready')} lists what can start`],
      }
    case 'other-codebase':
      return {
        what: `the pool ${why.pool} doesn't work for ${why.codebase}`,
        todo: [`add ${why.codebase} to its \`codebases\` in config.yaml, or choose another pool`],
      }
    case 'pool-full':
      return {
        what: `the pool ${why.pool} already has ${why.max} workers`,
        todo: ['wait for one to finish', `raise fleet.pools.${why.pool}.max in config.yaml`],
      }
    case 'other-host':
      return {
        what: `item ${itemId} belongs to a repository or an agent on another machine`,
        todo: ['run this command there'],
      }
    case 'fleet-full':
      return {
        what: `there are already ${why.max} workers on this machine`,
        todo: ['wait for one to finish', 'raise fleet.maxAgents in config.yaml'],
      }
    case 'fleet-down':
      return { what: 'the fleet is down', todo: [remedy`start it: ${coppice('fleet up')}`] }
    case 'fleet-paused':
      return { what: `the fleet is paused: ${why.why}`, todo: [remedy`continue: ${coppice('fleet up')}`] }
    case 'crew-busy':
      return { what: `${why.crew} has item ${why.item}`, todo: ['wait until it is done, or choose a pool'] }
    case 'crew-asleep':
      return {
        what: `${why.crew} is ${why.state}`,
        todo: [remedy`start it: ${coppice(`fleet up ${shellWord(why.crew)}`)}`],
      }
    case 'crew-elsewhere':
      return {
        what: `${why.crew} has no worktree in ${why.codebase}`,
        todo: [
          remedy`add one: ${coppice(`worktree create --crew ${shellWord(why.crew)} --codebase ${shellWord(why.codebase)}`)}`,
        ],
      }
  }
}

export const explainDone = (why: DoneRefusal, view: Omit<View, 'now'>): Explained => {
  switch (why.kind) {
    case 'no-agent':
      return {
        what: "not inside an agent's session",
        todo: [remedy`only agents run this; to finish an item yourself: ${coppice('item close <item>')}`],
      }
    case 'other-life':
      return {
        what: `this isn't ${why.agent}'s current session`,
        todo: ['exit: the item continues in another session'],
      }
    case 'no-item':
      return { what: `${why.agent} has no item`, todo: ['wait for one'] }
    case 'item-state':
      return {
        what: `item ${why.itemId} is ${why.state.replace('_', ' ')}`,
        todo:
          why.state === 'parked'
            ? [remedy`wait until a person decides and runs ${coppice(`sling ${why.itemId}`)}`]
            : [],
      }
    case 'worktree':
      return { what: `the worktree at ${why.path} can't be used: ${why.why}`, todo: [remedy`${coppice('doctor')}`] }
    case 'uncommitted':
      return {
        what: `${describeUncommitted(why.work)} in ${why.path}`,
        todo: [
          remedy`commit: ${shell(`git -C ${shellWord(why.path)} add -A && git -C ${shellWord(why.path)} commit -m "…"`)}`,
          "or delete what you don't need, and list generated files in .gitignore",
        ],
      }
    case 'other-branch':
      // After the switch, commits on no branch are where HEAD was before.
      return {
        what: `${why.path} is on ${why.head === undefined ? 'no branch' : `the branch ${why.head}`} instead of ${why.branch}`,
        todo: [
          remedy`switch back and take your commits along: ${shell(`git -C ${shellWord(why.path)} switch ${shellWord(why.branch)} && git -C ${shellWord(why.path)} merge ${shellWord(why.head ?? 'HEAD@{1}')}`)}`,
        ],
      }
    case 'no-commits':
      return {
        what: `${why.branch} has no commits of its own`,
        todo: ['commit your work', remedy`if there is nothing to do: ${coppice('done --mode discard --close')}`],
      }
    case 'not-published': {
      const { what, todo } = notPublishedTexts(
        { outcome: 'not-published', environment: why.environment, why: why.why },
        view,
      )
      return { what: what.replace(/\.$/, ''), todo: todo === undefined ? [] : [todo] }
    }
    case 'no-pull-request':
      return {
        what: `the branch is pushed, but no pull request could be opened: ${why.said}`,
        todo: [
          remedy`try again: ${coppice('done')}`,
          remedy`or finish with the push only: ${coppice('done --mode push')}`,
        ],
      }
    case 'no-forge':
      return {
        what: "the branch is pushed, but Coppice can't open pull requests for this repository",
        todo: [remedy`finish with the push only: ${coppice('done --mode push')}`],
      }
    case 'command-failed':
      return {
        what: `\`${why.command}\` ${why.exitCode === null ? 'took too long' : `failed with exit code ${why.exitCode}`}`,
        todo: [`read its output in ${why.log}, fix the cause, commit, and run it again`],
      }
    case 'not-approved':
      return {
        what: `the commands in ${why.codebase}'s formulas aren't approved: ${why.commands.map((one) => `\`${one}\``).join(', ')}`,
        todo: [remedy`ask a person to run ${coppice(`codebase trust ${shellWord(why.codebase)}`)}`],
      }
  }
}

export const explainPrime = (why: DoneRefusal, view: View): Explained =>
  why.kind === 'no-agent'
    ? {
        what: "not inside an agent's session",
        todo: [remedy`only agents run this; to see an item yourself: ${coppice('item show <item>')}`],
      }
    : explainDone(why, view)

/** `Can't …: reasons.`, then one line per remedy. */
export const refusalLines = (headline: string, explained: readonly Explained[], view: View): string =>
  [
    `${headline}: ${explained.map(({ what }) => what).join('; ')}.`,
    ...explained.flatMap(({ todo }) => todo).map((one) => `  ${remedySentence(one, view)}`),
  ].join('\n')

export type FleetRefusalJson = {
  readonly error: Omit<FailureJson['error'], 'reasons'> & {
    readonly reasons: readonly { readonly gate: string; readonly answer: 'no'; readonly detail: string }[]
  }
}

export const refusalObject = (
  message: string,
  explained: readonly (Explained & { readonly kind: string })[],
): FleetRefusalJson => ({
  error: {
    code: 'refused',
    message: `${message}: ${explained.map(({ what }) => what).join('; ')}`,
    reasons: explained.map(({ kind, what }) => ({ gate: kind, answer: 'no', detail: what })),
    remedies: explained.flatMap(({ todo }) => todo.map((one) => describeRemedy(one, asProgram))),
  },
})
