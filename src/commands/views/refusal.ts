import { join } from 'node:path'
import { refusals } from '../../domain/removal/gates.ts'
import type { Fact, Uncommitted } from '../../domain/removal/reason.ts'
import { describeLeftOut } from './left-out.ts'
import type { Refused } from '../../isolation/remove-outcome.ts'
import type { FailureJson } from './failure.ts'
import { shellPath } from './shell.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { counted } from '../../domain/text/words.ts'
import { ignoredFirst, type Way, waysToKeep } from './keep-commits.ts'
import { describeReasons, reasonJson } from './reasons.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { type RefusalInChat, waysInChat } from './refusal-in-chat.ts'
import { describeRemedy } from './remedy.ts'
import { unhide } from './unhide.ts'
import { code, printable, type View } from './view.ts'

/** Why a removal was refused, and the ways out that apply. */
export type Refusal = Refused &
  RefusalInChat & {
    readonly restoreDays: number
    /** Where to `cd` to; undefined if the codebase has no checkout. */
    readonly checkoutPath: string | undefined
    readonly repoPath: string
    /** How long a conversation holds an environment after its last message. */
    readonly hold: { readonly days: number; readonly mergedHours: number }
  }

export const refusalText = (refusal: Refusal, view: View): string => {
  const ways = waysOut(refusal, view).map((way) => ({ ...way, title: onOneLine(way.title) }))
  const longest = Math.max(...ways.map(({ title }) => title.length))
  return [
    `Cannot remove worktree \`${refusal.environment.branch}\`: ${onOneLine(describeReasons(refusal.reasons))}.`,
    ...ways.map((way, i) => ` ${i + 1}. ${`${way.title}:`.padEnd(longest + 1)}  ${asTyped(way, view)}`),
  ].join('\n')
}

/**
 * A file may be called `\n 1. Remove it anyway:  rm -rf ~`. For sentences only: in a command, `lib x` isn't `lib\tx`,
 * and a quoted word has no line breaks anyway.
 */
const onOneLine = (text: string): string => printable(text).replaceAll(/\s/g, ' ')

/** In a chat `__lib__` would become a bold `lib`. */
const asTyped = ({ how, isSentence }: Way, view: View): string =>
  view.chat === true && isSentence !== true ? code(how, view) : how

export const refusalJson = (refusal: Refusal, view: View): FailureJson => ({
  error: {
    code: 'refused',
    message: `cannot remove worktree ${refusal.environment.branch}: ${describeReasons(refusal.reasons)}`,
    reasons: refusal.reasons.map(reasonJson),
    remedies: waysOut(refusal, view).map(({ title, how }) => `${title}: ${how}`),
  },
})

const waysOut = (refusal: Refusal, view: View): Way[] => {
  const { reasons, environment, forced, restoreDays } = refusal
  const branch = shellWord(environment.branch)
  const facts = reasons.flatMap(({ fact }) => fact ?? [])
  const ways = view.chat === true ? waysInChat(refusal, facts) : waysInShell(refusal, facts, view)
  for (const fact of facts) {
    if (fact.kind !== 'item') continue
    const { id: itemId } = fact
    ways.push({ title: 'Close the item', how: view.commandText(`item close ${itemId}`) })
  }
  // What the fleet holds isn't waited for: a person ends that.
  const isHeld = reasons.some(
    ({ gate, fact }) => gate === 'nobody-elses' && fact?.kind !== 'item' && fact?.kind !== 'crew',
  )
  if (isHeld) {
    ways.push({ title: 'Wait', how: untilIdle(refusal), isSentence: true })
  }
  // Offer --force only if it helps: it never overrides a live process, others' files, or an unknown.
  if (!forced && refusals(reasons, true).length === 0) {
    const remove = view.commandText(`worktree remove ${branch} --force`)
    const restore = view.commandText(`worktree restore ${branch}`)
    const lost = describeLeftOut(refusal.notKept ?? [])
    const without = lost.length === 0 ? '' : `; not kept: ${onOneLine(lost.join(', '))}`
    const shown = (command: string): string => (view.chat === true ? code(command, view) : command)
    ways.push({
      title: 'Remove it anyway',
      how: `${shown(remove)}   (kept for ${restoreDays} days: ${shown(restore)}${without})`,
      isSentence: true,
    })
  }
  const isUnknown = reasons.some(({ answer }) => answer === 'cannot-tell')
  if (ways.length === 0 || isUnknown) {
    ways.push({ title: 'Find out more', how: describeRemedy(remedy`${coppice('doctor')}`, view), isSentence: true })
  }
  return ways
}

const waysInShell = (refusal: Refusal, facts: readonly Fact[], view: View): Way[] => {
  const { environment, reasons } = refusal
  const git = gitThere(refusal, view)
  const ways = [
    ...wayOutOfUse(refusal, facts, view),
    ...waysOutOfOthers(facts, view),
    ...waysOutOfFiles(refusal, facts, git),
  ]
  for (const one of facts) {
    if (one.kind === 'hidden')
      ways.push({ title: 'Show the changes to git', how: unhide(one.paths, environment.path, view) })
    if (one.kind === 'operation') ways.push({ title: `Abort the ${one.operation}`, how: git(abort(one.operation)) })
    if (one.kind === 'submodule') ways.push(...waysOutOfSubmodule(one, join(environment.path, one.path), view))
  }
  ways.push(...waysToKeep(facts, git, view))
  if (reasons.some(({ gate }) => gate === 'no-kept-files')) {
    ways.push({ title: 'Save the files', how: `copy them out of ${shellPath(environment.path, view)}` })
  }
  return ways
}

/** Foreign things inside it: a mount, another worktree, a repository. */
const waysOutOfOthers = (facts: readonly Fact[], view: View): Way[] => {
  const mounts = facts.flatMap((fact) => (fact.kind === 'mount' ? [shellPath(fact.path, view)] : []))
  const repository = facts.find((fact) => fact.kind === 'repository-inside')
  return [
    ...(mounts.length === 0 ? [] : [{ title: 'Unmount it', how: `umount ${mounts.join(' ')}` }]),
    ...facts.flatMap((fact) => {
      if (fact.kind !== 'worktree-inside') return []
      const git = `git -C ${shellPath(fact.repository, view)} worktree`
      const path = shellPath(fact.path, view)
      return [
        { title: 'Remove that worktree', how: `${ignoredFirst}: ${git} remove ${path}` },
        { title: 'Move it out', how: `${git} move ${path} <path>` },
      ]
    }),
    ...(repository === undefined
      ? []
      : [
          {
            title: 'Keep the repository',
            how: `push its commits, or move it out: mv ${shellPath(repository.path, view)} <path>`,
          },
        ]),
  ]
}

/** With `-C`: pasted elsewhere, a plain `git clean` would clean the shared checkout. */
const gitThere =
  ({ environment }: Refusal, view: View) =>
  (command: string): string =>
    `git -C ${shellPath(environment.path, view)} ${command}`

const untilIdle = ({ hold: { days, mergedHours } }: Refusal): string => {
  const merged = mergedHours < days * 24 ? ` (${counted(mergedHours, 'hour')} if its work is merged)` : ''
  const idle = `${counted(days, 'day')}${merged}`
  return `until its conversations are closed or have been idle for ${idle}; \`/stop\` there ends a run`
}

const abort = (operation: string): string => (operation === 'bisect' ? 'bisect reset' : `${operation} --abort`)

const waysOutOfFiles = ({ push }: Refusal, facts: readonly Fact[], git: (command: string) => string): Way[] => {
  const hasMoved = facts.some((one) => one.kind === 'submodule' && one.problem === 'is at another commit')
  if (!hasMoved && facts.every(({ kind }) => kind !== 'changed' && kind !== 'untracked')) return []
  return [
    {
      title: push === undefined ? 'Commit' : 'Commit and push',
      how: [git('add -A'), git('commit -m "WIP"'), ...(push === undefined ? [] : [git(push)])].join(' && '),
    },
    {
      title: 'Discard changes',
      how: [
        // Also clears staged, conflicted and `add --intent-to-add` files, which `git checkout .` keeps.
        git('reset --hard'),
        git('clean -fd'),
        ...(hasMoved ? [git('submodule update --recursive --checkout')] : []),
      ].join(' && '),
    },
  ]
}

/** Submodule changes must be committed in the submodule: `git add` in the worktree skips them. */
const waysOutOfSubmodule = (
  { problem }: Extract<Uncommitted, { kind: 'submodule' }>,
  path: string,
  view: View,
): Way[] => {
  const at = shellPath(path, view)
  switch (problem) {
    case 'is at another commit':
      return []
    case 'has changes':
      return [
        { title: 'Commit in the submodule', how: `git -C ${at} add -A && git -C ${at} commit -m "WIP"` },
        { title: "Discard the submodule's changes", how: `git -C ${at} reset --hard && git -C ${at} clean -fd` },
      ]
    case 'has files but no .git':
      return [{ title: "Move the submodule's files out", how: `mv ${at} <path>` }]
  }
}

const wayOutOfUse = (refusal: Refusal, facts: readonly Fact[], view: View): Way[] => {
  const isUsed = (kind: 'you' | 'lock'): boolean => facts.some((fact) => fact.kind === kind)
  const agents = facts.flatMap((fact) => (fact.kind === 'agent' ? [shellWord(fact.name)] : []))
  const crew = facts.flatMap((fact) => (fact.kind === 'crew' ? [shellWord(fact.name)] : []))
  // Those of an agent end with it; any other is named by the next attempt.
  const pids = agents.length > 0 ? [] : facts.flatMap((fact) => (fact.kind === 'process' ? [fact.pid] : []))
  return [
    ...(isUsed('you') ? [{ title: 'Leave it', how: stepOut(refusal, view) }] : []),
    ...(agents.length > 0
      ? [{ title: 'Stop the agent', how: view.commandText(`fleet down ${agents.join(' ')}`) }]
      : []),
    ...(crew.length > 0
      ? [{ title: 'Remove the crew member', how: view.commandText(`crew remove ${crew.join(' ')}`) }]
      : []),
    ...(pids.length > 0 ? [{ title: 'Stop the process', how: `check first: ps -fp ${pids.join(',')}` }] : []),
    ...(isUsed('lock')
      ? [
          {
            title: 'Unlock it',
            how: `${unlock(refusal, view)}  (if the tool that locked it is done)`,
          },
        ]
      : []),
  ]
}

/** Run in the repository: the worktree may be missing. */
const unlock = ({ environment, checkoutPath, repoPath }: Refusal, view: View): string =>
  `git -C ${shellPath(checkoutPath ?? repoPath, view)} worktree unlock ${shellPath(environment.path, view)}`

const stepOut = ({ environment, forced, checkoutPath, codebase }: Refusal, view: View): string => {
  // Without a checkout, no directory implies the codebase.
  const flags = `${forced ? ' --force' : ''}${checkoutPath === undefined ? ` --codebase ${shellWord(codebase)}` : ''}`
  const remove = view.commandText(`worktree remove ${shellWord(environment.branch)}${flags}`)
  return `cd ${checkoutPath === undefined ? '~' : shellPath(checkoutPath, view)} && ${remove}`
}
