import { leftNotice } from '../commands/stop.ts'
import { chatCommandText } from '../commands/chat-table.ts'
import { faultMessage } from '../commands/views/failure.ts'
import { describeRemovalReason } from '../commands/views/merged.ts'
import { describeNotice, describeNotices } from '../commands/views/notices.ts'
import { describeReasons } from '../commands/views/reasons.ts'
import { code, listed, placeholdersAsCode, plain } from '../commands/views/view.ts'
import type { ClosedOutcome } from '../cleanup/closed.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, isAppError, NotIsolatedError, toAppError } from '../domain/errors.ts'
import type { ReplyAction } from '../domain/message.ts'
import type { Notice } from '../domain/notice.ts'
import type { RemovalReason } from '../domain/removal/branch-note.ts'
import { type GateAnswer, refusals } from '../domain/removal/gates.ts'
import { counted, sentence, withFullStop } from '../domain/text/words.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { type GoneCodebase, goneBecause } from '../commands/codebase-binding.ts'
import type { RepoCommand } from '../commands/repo-commands.ts'
import { limitMessage } from '../commands/views/limit.ts'
import type { LimitReport } from '../isolation/resolve/resolution.ts'
import type { Resolution } from '../isolation/resolve/resolution.ts'
import type { EndedRunReport } from '../runs/ended-runs.ts'
import { coppice, remedy } from '../domain/remedy.ts'
import { remedySentence } from '../commands/views/remedy.ts'
import { describeChange } from '../commands/views/checkout-changes.ts'
import type { CheckoutChange } from '../domain/checkout-change.ts'

/*
 * All messages about isolation that a conversation sees. Platforms have none, so that the wording is the same
 * everywhere.
 */

/** Sent once, when a conversation gets its environment. */
export const placeNotices = (
  { environment, notices }: Extract<Resolution, { outcome: 'resolved' }>,
  codebase: Pick<Codebase, 'name'>,
): string[] => [
  `Working in isolated branch ${name(environment.branch)} of ${name(codebase.name)}`,
  ...describeNotices(notices, inChat),
]

/** Only an offer: nothing is linked until somebody answers. */
export const offerNotice = (offer: Notice): string => `${describeNotice(offer, inChat)}, or reply \`link\``

export const offerActions = (environmentId: string): readonly ReplyAction[] => [
  { label: 'Share worktree', command: linkCommand(environmentId), style: 'primary' },
]

/** The command that the reply `link` runs. */
export const linkCommand = (environmentId: string): string => `/worktree link ${shellWord(environmentId)}`

/** Only an offer: neither the command nor the message runs until somebody answers. */
export const commandOfferNotice = (command: Pick<RepoCommand, 'name' | 'description' | 'type'>): string => {
  const about = command.description === undefined ? '' : ` (${name(command.description)})`
  const risk = command.type === 'read' ? '' : ', which may change files'
  return `This sounds like \`/${command.name}\`${about}${risk}. Reply \`yes\` to run it, or \`no\` to send your message to the agent as it is.`
}

/** They send words, not commands: there is none for `no`, and the offer expires with the next message. */
export const commandOfferActions = (command: string): readonly ReplyAction[] => [
  { label: `Run /${command}`, command: 'yes', style: 'primary' },
  { label: 'Send as a message', command: 'no' },
]

export const routedNotice = (command: string): string => `Running \`/${command}\``

const name = (text: string): string => code(text, { chat: true, paint: plain })

/** How notices are rendered in a chat. */
export const inChat = { commandText: chatCommandText, chat: true } as const

export const limitNotice = (report: LimitReport, staleDays: number): string =>
  `${limitMessage(report, staleDays)}\n Nothing was run. Remove a worktree, then send your message again.`

/** What happened and what to do, a sentence each. Details go to the log. */
export const failureNotice = (error: unknown): string => {
  const told = toAppError(forChat(error instanceof NotIsolatedError ? error.cause : error))
  const fault = faultMessage(told, inChat)
  const what = error instanceof NotIsolatedError ? notIsolated(error, fault) : sentence(fault)
  return placeholdersAsCode(told.remedy === undefined ? what : `${what} ${remedySentence(told.remedy, inChat)}`)
}

/** Also for a worktree that exists, but can't be used. Setup is the repository's own, so it is no longer "nothing". */
const notIsolated = ({ code: why, codebase }: NotIsolatedError, fault: string): string =>
  `Couldn't set up an isolated worktree of ${name(codebase)}: ${withFullStop(fault)} ${why === 'setup-failed' ? 'The agent was not run.' : 'Nothing was run.'}`

/** A pull request that a run was to open by itself. */
export const notPublishedNotice = ({ branch }: Pick<IsolatedEnvironment, 'branch'>, error: AppError): string =>
  `Couldn't open a pull request for ${name(branch)}: ${withFullStop(faultMessage(error, inChat))} Try again with \`/pr\`.`

/** A chat can't register server paths, so say who can and what the chat can do. */
export const forChat = (error: unknown): unknown =>
  isAppError(error, 'repository-gone')
    ? new AppError(error.code, error.message, {
        cause: error,
        remedy: remedy`put it back on the server, or run ${coppice('codebase add <new path>')} there; to use another repository here: ${coppice('codebase <name>')} or ${coppice('clone <url>')}`,
      })
    : error

/** No codebase: no isolation, and no agent run that can write. */
export const unboundNotice = (names: readonly string[]): string =>
  names.length === 0
    ? 'This conversation has no repository, and none is registered. Clone one with `/clone <url>`, or register a local one on the server with `coppice codebase add <path>`.'
    : `This conversation has no repository. Choose one with \`/codebase <name>\`: ${names.map((name) => `\`${name}\``).join(', ')}.`

/** For an answer that doesn't name it anyway. */
export const onlyCodebaseNotice = ({ name: only }: Pick<Codebase, 'name'>): string =>
  `Using ${name(only)}, the only registered repository.`

/** Its codebase is gone and not replaced: work would land in a repository nobody named. */
export const codebaseGoneNotice = (
  gone: GoneCodebase,
  names: readonly string[],
  { platform }: { readonly platform: string },
): string => {
  const { name, why } = gone
  const called = name === undefined ? "This conversation's repository" : `This conversation's repository, \`${name}\`,`
  const others = names.length === 0 ? '' : `: ${names.map((one) => `\`${one}\``).join(', ')}`
  return [
    `${called} is ${goneBecause(gone)}.`,
    ...(why === 'unregistered'
      ? ['Register it again on the server with `coppice codebase add <path or URL>`, or move']
      : ['Move']),
    `the conversation to another with \`${moveWith(platform)}\`${others}.`,
  ].join(' ')
}

export const staysNotice = (
  own: Pick<Codebase, 'name'>,
  named: Pick<Codebase, 'name'>,
  { platform }: { readonly platform: string },
): string =>
  `This conversation stays in \`${own.name}\`. To move it to \`${named.name}\`, use \`${moveWith(platform, named.name)}\`.`

export const movedCodebaseNotice = ({ name }: Pick<Codebase, 'name'>): string =>
  `Moved this conversation to \`${name}\` and started a new session. Its previous worktree is unchanged.`

const moveWith = (platform: string, name?: string): string => {
  const word = name === undefined ? '<name>' : shellWord(name)
  return platform === 'cli' ? `--codebase ${word}` : `/codebase ${word}`
}

export const removedNotice = (environment: Pick<IsolatedEnvironment, 'branch'>, why: RemovalReason | string): string =>
  `Worktree \`${environment.branch}\` was removed (${describeRemovalReason(why)}). Restore it with \`${restoreCommand(environment.branch)}\`.`

export const removedActions = ({ branch }: Pick<IsolatedEnvironment, 'branch'>): readonly ReplyAction[] => [
  { label: 'Restore', command: restoreCommand(branch) },
]

const restoreCommand = (branch: string): string => `/worktree restore ${shellWord(branch)}`

/** An adopted one isn't removed, so there is nothing to restore. */
export const releasedNotice = ({ branch }: Pick<IsolatedEnvironment, 'branch'>): string =>
  `Stopped tracking \`${branch}\`. Coppice didn't create it, so its files stay in place.`

/** Why the environment is kept after its conversation closed; the removal reports itself. */
export const closedNotice = (outcome: ClosedOutcome): string | undefined => {
  switch (outcome.outcome) {
    case 'nothing':
      return undefined
    case 'kept': {
      const others = outcome.others.map(({ platform, conversationId }) => `${platform}:${conversationId}`)
      return `Worktree \`${outcome.environment.branch}\` was kept: ${others.join(', ')} still ${others.length === 1 ? 'uses' : 'use'} it.`
    }
    case 'asked': {
      const { removal } = outcome
      return removal.outcome === 'refused' ? keptNotice(removal.environment.branch, removal.reasons) : undefined
    }
  }
}

const keptNotice = (branch: string, reasons: readonly GateAnswer[]): string => {
  const kept = `Worktree \`${branch}\` was not removed: ${describeReasons(reasons)}.`
  return refusals(reasons, true).length > 0
    ? `${kept} Run \`/worktree remove ${shellWord(branch)}\` to see what to do first.`
    : `${kept} Commit and push its changes, or remove it anyway with \`/worktree remove ${shellWord(branch)} --force\` (it can be restored).`
}

export const trippedNotice = (
  { checkoutPath }: Pick<Codebase, 'checkoutPath'>,
  changes: readonly CheckoutChange[],
): string =>
  [
    `The shared checkout at \`${checkoutPath ?? ''}\` changed during the run (by the agent or someone else):`,
    ...listed(changes.map(describeChange), MOST_LINES),
  ].join('\n')

/** Tripwire report for a run that was interrupted or left something running. */
const lateChangesNotice = (
  { checkoutPath }: Pick<Codebase, 'checkoutPath'>,
  changes: readonly CheckoutChange[],
): string =>
  [
    `The shared checkout at \`${checkoutPath ?? ''}\` changed while processes of an earlier run may still have been running. The change may be yours:`,
    ...listed(changes.map(describeChange), MOST_LINES),
  ].join('\n')

/** Changes made after a run ended. */
export const endedRunNotices = (codebase: Codebase, ended: readonly EndedRunReport[]): readonly string[] =>
  ended.flatMap(({ changed, left }) => [
    ...(changed.length === 0 ? [] : [lateChangesNotice(codebase, changed)]),
    ...(left === undefined ? [] : [leftNotice(left)]),
  ])

/** Settings that a person's own git would obey, and Coppice's doesn't. */
export const plantedNotice = (codebase: Pick<Codebase, 'repoPath'>, lines: readonly string[]): string =>
  gitFilesNotice("Git's own files changed during the run (by the agent or someone else):", codebase, lines)

export const betweenRunsNotice = (codebase: Pick<Codebase, 'repoPath'>, lines: readonly string[]): string =>
  gitFilesNotice("Git's own files changed between runs. The change may be yours:", codebase, lines)

const gitFilesNotice = (first: string, { repoPath }: Pick<Codebase, 'repoPath'>, lines: readonly string[]): string =>
  [
    first,
    ...listed(lines, MOST_PLANTED),
    `Coppice doesn't run anything set there, but your own git would. Check \`${repoPath}\` before you use it.`,
  ].join('\n')

const MOST_LINES = 20
/** Higher, as each may run a program. */
const MOST_PLANTED = 60

export const waitingNotice = (running: number): string =>
  `Your message is queued: ${running} conversations are running, which is the limit.`

export const busyNotice = (environment: Pick<IsolatedEnvironment, 'branch'>): string =>
  `Another conversation is using \`${environment.branch}\`. Your message runs next.`

export const givenUpNotice = (attempts: number): string =>
  `Coppice stopped ${attempts} times while running this message, so it won't be retried. To try again, send it once more, perhaps with another agent (\`/agent\`).`

export const timeLimitNotice = (minutes: number, begun = true): string =>
  `Stopped: the run reached its limit of ${counted(minutes, 'minute')}. ${begun ? 'Its work so far is in the worktree.' : 'Nothing was run.'} Send a message to continue, or raise \`limits.runMinutes\` in config.yaml.`

/** Cancelled, but still running. */
export const notEndedNotice =
  "It hasn't ended yet. Its worktree stays reserved until it does; restart the server if that takes too long."

export const stoppedNotice = 'Stopped. The work so far is in the worktree.'

/** While its worktree was being set up. */
export const stoppedEarlyNotice = 'Stopped. Nothing was run.'

export const writableNotice =
  'This command is read-only, but the agent has no read-only mode, so only what it asked Coppice for was denied. It could have written files by itself; check `/diff`.'

/** Its files may be gone, or it can't resume in another directory. */
export const sessionLostNotice =
  "The agent couldn't resume its session and started a new one: it doesn't remember what was said here before."

export const silentNotice = 'The agent finished without a reply.'
