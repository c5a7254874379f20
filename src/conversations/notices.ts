import type { ClosedOutcome } from '../cleanup/closed.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, isAppError, toAppError } from '../domain/errors.ts'
import { type GateAnswer, refusals } from '../domain/gates.ts'
import { counted, sentence } from '../domain/words.ts'
import { type GoneCodebase, goneBecause } from './codebase-binding.ts'
import { type LimitReport, limitMessage } from '../isolation/room.ts'
import type { Resolution } from '../isolation/resolve.ts'
import type { LeftProcess } from '../process/marked-processes.ts'
import type { Leftovers } from './leftovers.ts'
import type { Stopped } from './stop-run.ts'

/*
 * Every sentence about isolation that a conversation hears. Platforms have none of their own, so that the same thing is
 * said in the same words everywhere.
 */

/** Said once, when a conversation gets its environment. */
export const placeNotices = ({ environment, notices }: Extract<Resolution, { outcome: 'resolved' }>): string[] => [
  `Working in isolated branch \`${environment.branch}\``,
  ...notices,
]

export const limitNotice = (report: LimitReport, staleDays: number): string => limitMessage(report, staleDays)

/** One sentence of what happened and one of what to do. Details are for the log. */
export const failureNotice = (error: unknown): string => {
  const { message, remedy } = toAppError(forChat(error))
  return remedy === undefined ? sentence(message) : `${sentence(message)} ${sentence(remedy)}`
}

/** A chat cannot register a path of the server, so it is told who can and what it can do itself. */
export const forChat = (error: unknown): unknown =>
  isAppError(error, 'repository-gone')
    ? new AppError(error.code, error.message, {
        cause: error,
        remedy:
          'put it back on the server, or run `coppice codebase add <new path>` there; to use another repository here: `/codebase <name>` or `/clone <url>`',
      })
    : error

/** No codebase bound: no isolation, and no agent run that can write. */
export const unboundNotice = (names: readonly string[]): string =>
  names.length === 0
    ? 'No codebase is bound to this conversation, and none is registered. Bind one with `/clone <url>`, or register a local repository with `coppice codebase add <path>`.'
    : `No codebase is bound to this conversation. Bind one with \`/codebase <name>\`: ${names.map((name) => `\`${name}\``).join(', ')}.`

/** It had a codebase, and no other is taken instead: work would land in a repository that nobody named. */
export const codebaseGoneNotice = (
  gone: GoneCodebase,
  names: readonly string[],
  { platform }: { readonly platform: string },
): string => {
  const { name, why } = gone
  const called = name === undefined ? "This conversation's codebase" : `This conversation is about \`${name}\`, which`
  const others = names.length === 0 ? '' : `: ${names.map((one) => `\`${one}\``).join(', ')}`
  return [
    `${called} is ${goneBecause(gone)}.`,
    ...(why === 'unregistered' ? ['Register it again with `coppice codebase add <path or URL>`, or move'] : ['Move']),
    `the conversation to another one with \`${moveWith(platform)}\`${others}.`,
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

const moveWith = (platform: string, name = '<name>'): string =>
  platform === 'cli' ? `--codebase ${name}` : `/codebase ${name}`

export const removedNotice = (environment: Pick<IsolatedEnvironment, 'branch'>, why: string): string =>
  `Worktree \`${environment.branch}\` was removed (${why}). Bring it back with \`/worktree restore ${environment.branch}\`.`

/** Of an adopted one nothing was removed, and there is nothing to bring back. */
export const releasedNotice = ({ branch }: Pick<IsolatedEnvironment, 'branch'>): string =>
  `Stopped tracking \`${branch}\`: it is not Coppice's, so its files stay as they are.`

/** Why the environment stays when its conversation closed; that it went is said by the removal itself. */
export const closedNotice = (outcome: ClosedOutcome): string | undefined => {
  switch (outcome.outcome) {
    case 'nothing':
      return undefined
    case 'kept': {
      const others = outcome.others.map(({ platform, conversationId }) => `${platform}:${conversationId}`)
      return `Worktree \`${outcome.environment.branch}\` stays: ${others.join(', ')} still ${others.length === 1 ? 'uses' : 'use'} it.`
    }
    case 'asked': {
      const { removal } = outcome
      return removal.outcome === 'refused' ? keptNotice(removal.environment.branch, removal.reasons) : undefined
    }
  }
}

const keptNotice = (branch: string, reasons: readonly GateAnswer[]): string => {
  const kept = `Worktree \`${branch}\` was not removed: ${reasons.map(({ detail }) => detail).join(', ')}.`
  return refusals(reasons, true).length > 0
    ? `${kept} \`/worktree remove ${branch}\` says what to do first.`
    : `${kept} Commit and push what is in it, or remove it anyway with \`/worktree remove ${branch} --force\` (it can be restored).`
}

export const trippedNotice = ({ checkoutPath }: Pick<Codebase, 'checkoutPath'>, lines: readonly string[]): string =>
  [
    `The shared checkout at \`${checkoutPath ?? ''}\` changed during the run (by the agent or someone else):`,
    ...listed(lines, MOST_LINES),
  ].join('\n')

/** The tripwire of a run that is over and left something running, or that was interrupted. */
export const lateChangesNotice = ({ checkoutPath }: Pick<Codebase, 'checkoutPath'>, lines: readonly string[]): string =>
  [
    `The shared checkout at \`${checkoutPath ?? ''}\` changed while processes of an earlier run may still have been running. The change may be yours:`,
    ...listed(lines, MOST_LINES),
  ].join('\n')

/** What a person's own git would obey from now on, and Coppice's does not. */
export const plantedNotice = (codebase: Pick<Codebase, 'repoPath'>, lines: readonly string[]): string =>
  gitFilesNotice("Git's own files changed during the run (by the agent or someone else):", codebase, lines)

export const betweenRunsNotice = (codebase: Pick<Codebase, 'repoPath'>, lines: readonly string[]): string =>
  gitFilesNotice("Git's own files changed between runs. The change may be yours:", codebase, lines)

const gitFilesNotice = (first: string, { repoPath }: Pick<Codebase, 'repoPath'>, lines: readonly string[]): string =>
  [
    first,
    ...listed(lines, MOST_PLANTED),
    `Coppice runs nothing that is named there, but your own git would: look at \`${repoPath}\` before you use it.`,
  ].join('\n')

const listed = (lines: readonly string[], most: number): readonly string[] => [
  ...lines.slice(0, most).map((line) => `- ${line}`),
  ...(lines.length > most ? [`- and ${lines.length - most} more`] : []),
]

/** Processes that outlived a run: which, and how to end them. */
export const leftNotice = ({ own, unknown, unnamed, problem }: Leftovers): string =>
  [
    ...(unnamed === true
      ? [`The agent has ended, but something it started is still running: ${NO_PID}. Run \`/stop\` to end it.`]
      : []),
    ...(own.length === 0
      ? []
      : [
          `The agent has ended, but it left ${counted(own.length, 'process', 'processes')} running:`,
          ...pids(own),
          'Run `/stop` to end them.',
        ]),
    ...(unknown.length === 0
      ? []
      : [
          `${counted(unknown.length, 'process', 'processes')} in the worktree started after the agent did and may be yours:`,
          ...pids(unknown),
          `If not: \`kill ${unknown.map(({ pid }) => pid).join(' ')}\``,
        ]),
    ...(problem === undefined ? [] : [`Coppice could not check which processes the agent left running: ${problem}`]),
  ].join('\n')

/** What `/stop` answers. */
export const stopNotice = ({ outcome, left, scripts }: Stopped): string => {
  if (outcome === 'nothing-running') {
    return [
      fromScripts(scripts).length === 0 ? 'Nothing is running here.' : 'No agent is running here.',
      ...fromScripts(scripts),
    ].join('\n')
  }
  const { own, unknown, unnamed, problem } = left
  return [
    ...(own.length === 0
      ? [
          unnamed === true
            ? `Stopped the agent, but something it started could not be ended: ${NO_PID}. Run \`/stop\` again; if that does not help, restart the machine.`
            : problem === undefined
              ? everythingEnded()
              : 'Stopped the agent.',
        ]
      : [
          `Stopped the agent, but ${counted(own.length, 'process', 'processes')} it started could not be ended:`,
          ...pids(own),
          `Try: \`kill -9 ${own.map(({ pid }) => pid).join(' ')}\``,
        ]),
    ...(unknown.length === 0 && problem === undefined
      ? []
      : [leftNotice({ own: [], unknown, ...(problem === undefined ? {} : { problem }) })]),
    ...fromScripts(scripts),
  ].join('\n')
}

/** Why there is nothing to give to `kill`. */
const NO_PID = 'no pid names it, because it keeps forking or is in another pid namespace'

const fromScripts = ({ ended, running, unnamed }: Stopped['scripts']): readonly string[] => [
  ...(unnamed === true
    ? [
        `Something that the repository's setup or teardown started for this worktree is still running: ${NO_PID}. Run \`/stop\` when no agent is running here.`,
      ]
    : []),
  ...(ended === 0
    ? []
    : [`Ended ${counted(ended, 'process', 'processes')} that the repository's setup or teardown had left running.`]),
  ...(running.length === 0
    ? []
    : [
        `${counted(running.length, 'process', 'processes')} that the repository's setup or teardown started for this worktree ${running.length === 1 ? 'is' : 'are'} still running:`,
        ...pids(running),
        `To end ${running.length === 1 ? 'it' : 'them'} now: \`kill -9 ${running.map(({ pid }) => pid).join(' ')}\``,
      ]),
]

/** Only Linux marks every process of a run; elsewhere one that went into the background cannot be told from others. */
const everythingEnded = (): string =>
  process.platform === 'linux'
    ? 'Stopped: the agent and all processes it started have ended.'
    : 'Stopped: the agent and its child processes have ended. On this system Coppice cannot find processes that it moved to the background outside of the worktree.'

const pids = (left: readonly LeftProcess[]): readonly string[] =>
  listed(
    left.map(({ pid, command }) => `${pid} \`${command.replaceAll(/[`\p{Cc}]/gu, ' ')}\``),
    MOST_LINES,
  )

const MOST_LINES = 20
/** Each of them is something that may run. */
const MOST_PLANTED = 60

export const waitingNotice = (running: number): string =>
  `Your message is waiting: ${running} conversations are being worked on, which is the limit. It will be taken up in its turn.`

export const busyNotice = (environment: Pick<IsolatedEnvironment, 'branch'>): string =>
  `Another conversation is working in \`${environment.branch}\` at the moment. This message is next.`

/** For the agent: what it may find half done. */
export const rerunContext = (attempt: number): string =>
  `This request was being worked on when Coppice was interrupted; this is attempt ${attempt}. Parts of the work may already be done in this directory: look at git status and git log before you go on, and do not do them twice.`

export const givenUpNotice = (attempts: number): string =>
  `This message was begun ${attempts} times, and each time Coppice ended before the agent did. It is not tried again: send it once more if you want that, perhaps with another agent (\`/agent\`).`

/** The answer was given, and every place is taken. */
export const resumingNotice =
  'The concurrency limit is reached. The agent continues with your answer when a slot frees up.'

export const timeLimitNotice = (minutes: number): string =>
  `Stopped: the run reached its limit of ${counted(minutes, 'minute')}. Its work so far is in the worktree. Send a message to continue, or raise \`limits.runMinutes\` in config.yaml.`

/** It was told to end and did not. */
export const notEndedNotice =
  'It has not ended yet. Its worktree stays reserved until it does; restart the server if that takes too long.'

export const stoppedNotice = 'Stopped. What was done until then is in the worktree.'

export const silentNotice = 'The agent ended without saying anything.'
