import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { workLabel } from '../domain/work.ts'
import { presentCodebase } from '../isolation/codebases/recognise.ts'
import { restorablePoints } from '../isolation/find.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { leaseHolders } from '../isolation/lease.ts'
import { mergeStatuses } from '../isolation/merge-proof/merge-status.ts'
import { countRemovable, findRemovable } from '../isolation/removable.ts'
import type { Session } from '../store/store.ts'
import type { Spent } from '../runs/budget.ts'
import { spentText } from './budget.ts'
import { type CodebaseBinding, codebaseBinding, type GoneCodebase, goneBecause } from './codebase-binding.ts'
import { type CurrentAgent, currentAgent } from './agent.ts'
import { type Call, type ChatCall, command } from './command.ts'
import { findTargetCodebase, currentEnvironment } from './target.ts'
import { heldText } from './views/limit.ts'
import { codebaseJson, environmentJson } from './views/json.ts'
import { ago, code, facts, tilde, type View } from './views/view.ts'

type Counts = {
  readonly total: number
  readonly active: number
  readonly merged: number
  readonly stale: number
  /** Merged or stale, and kept by a gate. */
  readonly held: number
  readonly missing: number
}

export type StatusResult = {
  readonly codebase: Codebase | undefined
  readonly codebases: number
  readonly environment: IsolatedEnvironment | undefined
  readonly counts: Counts | undefined
  readonly restorePoints: number
  readonly limit: number
  readonly staleDays: number
  readonly home: string
  readonly worktrees: string
  readonly database: string
  readonly chat: ChatStatus | undefined
}

type ChatStatus = {
  readonly binding: CodebaseBinding
  /** What holds its environment now, usually a run. */
  readonly running: readonly string[]
  readonly session: Session | undefined
  readonly agent: CurrentAgent
  readonly spent: Spent
}

const run = async (call: Call): Promise<StatusResult> => {
  const workplace = await call.open()
  const { context } = workplace
  const bound = await findTargetCodebase(call, workplace)
  // Don't run git in a repository that may be gone.
  const codebase = bound && (await presentCodebase(context, bound))
  const environment = codebase && (await currentEnvironment(call, { context, codebase }))
  const live = codebase === undefined ? [] : await context.store.environments.live(codebase.id)
  return {
    codebase,
    codebases: (await context.store.codebases.list(context.host)).length,
    environment,
    counts: codebase && (await countsOf(call, context, codebase, live)),
    restorePoints: codebase === undefined ? 0 : (await restorablePoints(context, codebase)).length,
    limit: context.settings.worktreesPerCodebase,
    staleDays: context.settings.staleDays,
    home: context.home,
    worktrees: context.worktreesBase,
    database: workplace.databaseName,
    chat: call.chat && (await chatStatus(call.chat, codebase, environment)),
  }
}

const chatStatus = async (
  chat: ChatCall,
  codebase: Codebase | undefined,
  environment: IsolatedEnvironment | undefined,
): Promise<ChatStatus> => ({
  binding: await codebaseBinding(chat.context.isolation, chat.conversation),
  running: environment === undefined ? [] : await runningIn(chat.context.isolation, environment),
  session: await chat.context.isolation.store.sessions.live(chat.conversation.id),
  agent: await currentAgent(chat, codebase),
  spent: await chat.context.isolation.store.usage.spent({ conversation: chat.conversation.id }),
})

const runningIn = async (
  context: Pick<IsolationContext, 'store' | 'host' | 'self'>,
  { id }: IsolatedEnvironment,
): Promise<string[]> =>
  ((await leaseHolders(context, [id])).get(id) ?? [])
    .filter(({ liveness }) => liveness !== 'dead')
    .map(({ lease }) => lease.purpose)

/** `merged` and `stale`: what cleanup would remove now. */
const countsOf = async (
  { chat, signal }: Call,
  context: IsolationContext,
  codebase: Codebase,
  live: readonly IsolatedEnvironment[],
): Promise<Counts> => {
  const missing = live.filter(({ status }) => status === 'missing').length
  const askedBy = chat?.conversation.id
  const found = await findRemovable(context, codebase, await mergeStatuses(context, codebase), { askedBy, signal })
  const { merged, stale, held } = countRemovable(found.values())
  return { total: live.length, missing, merged, stale, held, active: live.length - missing - merged - stale - held }
}

const toText = (result: StatusResult, view: View): string => {
  const { codebase, environment, chat } = result
  if (chat !== undefined) return chatText(result, chat, view)
  return facts(
    [
      ...(codebase === undefined
        ? [['repository', `none in this directory (${result.codebases} registered)`] as const]
        : codebaseLines(result, codebase, view)),
      [
        'in worktree',
        environment === undefined
          ? 'none'
          : `${environment.branch} (${workLabel(environment.work)}), ${tilde(environment.path, view)}`,
      ],
      ['home', tilde(result.home, view)],
      ['worktree root', tilde(result.worktrees, view)],
      ['database', result.database],
    ],
    view,
  )
}

const chatText = (
  result: StatusResult,
  { binding, running, session, agent, spent }: ChatStatus,
  view: View,
): string => {
  const { codebase, environment, counts, limit, staleDays } = result
  return facts(
    [
      [
        'Repository',
        codebase === undefined
          ? `${binding.kind === 'gone' ? goneText(binding, view) : 'none'}; choose one with ${code(view.commandText('codebase <name>'), view)}`
          : code(codebase.name, view),
      ],
      [
        'Worktree',
        environment === undefined
          ? 'none yet; the first message creates one'
          : `${workLabel(environment.work)}, ${code(tilde(environment.path, view), view)}${environment.status === 'active' ? '' : ` (${environment.status})`}`,
      ],
      ...(environment === undefined ? [] : [['Branch', code(environment.branch, view)] as const]),
      ...(running.length === 0 ? [] : [['Running', running.join(', ')] as const]),
      ['Session', session === undefined ? 'none' : `${session.agent}, last used ${ago(session.lastUsedAt, view.now)}`],
      ...(counts === undefined
        ? []
        : [['Worktrees', `${counts.total} of ${limit}: ${chatBreakdown(counts, staleDays)}`] as const]),
      ['Agent', agent.name === undefined ? agent.problem : `${agent.name}, ${agent.reason}`],
      ...(spent.turns === 0 ? [] : [['Spent', spentText(spent)] as const]),
    ],
    view,
  )
}

const goneText = (gone: GoneCodebase, view: View): string =>
  `${gone.name === undefined ? 'unknown' : code(gone.name, view)}, ${goneBecause(gone)}`

/** Like the limit message: all three, even if zero. */
const chatBreakdown = ({ active, merged, stale, held, missing }: Counts, staleDays: number): string =>
  [
    `${merged} merged`,
    `${stale} stale (no activity in ${staleDays}+ days)`,
    ...heldText(held),
    `${active} active`,
    ...(missing > 0 ? [`${missing} missing`] : []),
  ].join(', ')

const codebaseLines = (
  { counts, limit, staleDays, restorePoints }: StatusResult,
  codebase: Codebase,
  view: View,
): (readonly [string, string])[] => [
  ['repository', `${codebase.name}, ${tilde(codebase.checkoutPath ?? codebase.repoPath, view)}`],
  ['remote', codebase.remoteUrl ?? 'none'],
  ...(counts === undefined
    ? []
    : [['worktrees', `${counts.total} of ${limit}${breakdown(counts, staleDays)}`] as const]),
  ['restorable', `${restorePoints}${restorePoints > 0 ? `: ${view.commandText('worktree restore --list')}` : ''}`],
]

const breakdown = ({ total, active, merged, stale, held, missing }: Counts, staleDays: number): string =>
  total === 0
    ? ''
    : `: ${[
        `${active} active`,
        ...(merged > 0 ? [`${merged} merged (can be removed)`] : []),
        ...(stale > 0 ? [`${stale} stale (no activity in ${staleDays}+ days)`] : []),
        ...heldText(held),
        ...(missing > 0 ? [`${missing} missing`] : []),
      ].join(', ')}`

export const status = command<StatusResult>({
  run,
  toText,
  toJson: ({ codebase, environment, counts, restorePoints, limit, home, worktrees, database }) => ({
    codebase: codebase === undefined ? null : codebaseJson(codebase),
    environment: environment === undefined ? null : environmentJson(environment, () => codebase?.name ?? ''),
    worktrees: counts ?? null,
    restorePoints,
    limit,
    home,
    worktreesBase: worktrees,
    database,
  }),
})
