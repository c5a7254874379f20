import type { IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { IsolationHints } from '../domain/hints.ts'
import { type BranchName, isSha, toBranchName } from '../domain/names.ts'
import { isTrusted } from '../domain/trust.ts'
import { taskWork, toWork, type Work, workLabel } from '../domain/work.ts'
import { resolveIsolation } from '../isolation/resolve/resolve.ts'
import type { LimitReport, Resolution } from '../isolation/resolve/resolution.ts'
import { type Call, command, isSet, listOf, textOf, type Values } from './command.ts'
import { exitCodes } from './views/failure.ts'
import { resolveTargetForWrite } from './target.ts'
import { environmentJson } from './views/json.ts'
import { limitJson, limitText } from './views/limit.ts'
import { usage } from './grammar/usage.ts'
import { askerOf } from './asker.ts'
import { moveTo } from './move-conversation.ts'
import { shellPath } from './views/shell.ts'
import { code, tilde, type View } from './views/view.ts'
import { coppice, remedy, shell } from '../domain/remedy.ts'

export type CreateResult =
  | {
      readonly outcome: 'resolved'
      readonly how: 'conversation' | 'same-work' | 'linked' | 'adopted' | 'created'
      readonly environment: IsolatedEnvironment
      readonly codebase: string
    }
  | { readonly outcome: 'limit'; readonly report: LimitReport; readonly staleDays: number }

const run = async (call: Call): Promise<CreateResult> => {
  // Before opening anything: an invalid name must change nothing, not even register the repository.
  const wanted = wantedOf(call)
  if (wanted.kind === 'crew') return forCrew(call, wanted.name)
  const { context, environments, codebase, keepSpares } = await resolveTargetForWrite(call)
  const request = {
    ...wanted,
    codebase,
    linkedByHand: true,
    createdBy: call.chat === undefined ? 'cli' : askerOf(call),
    persistent: call.chat?.conversation.persistent === true,
    signal: call.signal,
  }
  const own = await environments()
  const earlier = await context.store.environments.liveByWork(codebase.id, wanted.work)
  const resolution = await resolveIsolation(context, own, request)
  if (resolution.outcome === 'limit') {
    return { outcome: 'limit', report: resolution.report, staleDays: context.settings.staleDays }
  }
  const { environment, how, notices } = resolution
  for (const notice of [...notices, ...ignoredOptions(wanted, resolution)]) call.notice(notice)
  if (how === 'created' && earlier !== undefined) {
    const now = await context.store.environments.get(earlier.id)
    if (now?.status === 'removed') call.notice(detachedConversations(earlier))
  }
  if (how === 'created' && context.settings.spares > 0) keepSpares(codebase.id)
  if (call.chat !== undefined) await moveTo(context, call.chat, environment, 'keep')
  return { outcome: 'resolved', environment, how, codebase: codebase.name }
}

/** Adds a worktree for an existing crew member, with the member's name in its git configuration. */
const forCrew = async (call: Call, name: string): Promise<CreateResult> => {
  const { fleet, codebase, context, keepSpares } = await resolveTargetForWrite(call)
  const { addCrewTree } = await import('../fleet/crew.ts')
  const earlier = await context.store.environments.liveByWork(codebase.id, toWork('agent', name))
  const made = await addCrewTree(await fleet(), name, codebase, { by: 'cli', signal: call.signal })
  if ('report' in made) return { outcome: 'limit', report: made.report, staleDays: context.settings.staleDays }
  for (const notice of made.notices) call.notice(notice)
  if (context.settings.spares > 0) keepSpares(codebase.id)
  const { environment } = made
  const how = earlier?.id === environment.id ? 'same-work' : 'created'
  return { outcome: 'resolved', environment, how, codebase: codebase.name }
}

/** Options without effect, because the environment already existed. */
const ignoredOptions = (
  { base, hints }: Wanted,
  { environment, how, prShaUsed }: Extract<Resolution, { outcome: 'resolved' }>,
): string[] => {
  if (how === 'created') return []
  const { isForkPR, prBranch, prSha } = hints
  const ignored = [
    ...(base !== undefined && base !== environment.baseBranch ? [`--base ${base}`] : []),
    ...(isForkPR === true && isTrusted(environment.trust) ? ['--fork'] : []),
    ...(prBranch !== undefined && prBranch !== environment.prBranch && prBranch !== environment.branch
      ? [`--pr-branch ${prBranch}`]
      : []),
    ...(prSha !== undefined && !prShaUsed ? [`--pr-sha ${prSha}`] : []),
  ]
  return ignored.length === 0
    ? []
    : [`${environment.branch} already exists and was left as is: ${ignored.join(', ')} had no effect`]
}

const detachedConversations = ({ branch, path }: IsolatedEnvironment): string =>
  `stopped tracking the earlier ${branch}, because ${path} was missing. If that directory comes back, copy what you need: git no longer knows it`

type Wanted = { kind: 'work'; work: Work; hints: IsolationHints; branch?: BranchName; base?: string }

const wantedOf = ({ words: [branch], values, chat }: Call): Wanted | { kind: 'crew'; name: string } => {
  const given = [
    ...(branch === undefined ? [] : ['a branch']),
    ...kinds.filter((kind) => values[kind] !== undefined).map((kind) => `--${kind}`),
  ]
  if (given.length === 0) {
    throw usage(
      `specify a branch, --issue, --pr, --review, --thread${chat === undefined ? ', --task or --crew' : ' or --task'}`,
      remedy`run ${coppice('worktree create --help')} for usage`,
    )
  }
  if (given.length > 1) throw usage(`${given.join(' and ')} can't be combined`, 'use one of them')
  onlyWithPr(values)
  const crew = textOf(values, 'crew')
  if (crew !== undefined) {
    if (chat !== undefined) throw usage('--crew works on the command line only', 'run it in a terminal')
    if (values['base'] !== undefined) throw usage("--base and --crew can't be combined", 'leave out --base')
    return { kind: 'crew', name: crew }
  }
  const base = textOf(values, 'base')
  if (base?.startsWith('-') === true || base === '') {
    throw new AppError('name-invalid', `invalid --base ${JSON.stringify(base)}`, {
      remedy: 'use a branch, tag or commit',
    })
  }
  const hints = hintsOf(values)
  return {
    kind: 'work',
    work: branch === undefined ? workOf(values) : toWork('task', branch),
    hints,
    ...(branch !== undefined && { branch: toBranchName(branch) }),
    ...(base !== undefined && { base }),
  }
}

const workKinds = ['issue', 'pr', 'review', 'thread', 'task'] as const
const kinds = [...workKinds, 'crew'] as const

const workOf = (values: Values): Work => {
  const kind = workKinds.find((name) => values[name] !== undefined) ?? 'task'
  const id = textOf(values, kind) ?? ''
  if (id.trim() === '')
    throw usage(
      `--${kind} needs a value`,
      `usage: --${kind} <${kind === 'task' ? 'text' : kind === 'thread' ? 'id' : 'number'}>`,
    )
  // People write `#42`.
  return kind === 'task' ? taskWork(id) : toWork(kind, kind === 'thread' ? id : id.replace(/^#/, ''))
}

const onlyWithPr = (values: Values): void => {
  const stray = ['pr-branch', 'pr-sha', 'fork', 'fixes'].find((name) => values[name] !== undefined)
  if (stray !== undefined && values['pr'] === undefined) {
    throw usage(`--${stray} requires --pr`, 'usage: --pr <number>')
  }
}

const hintsOf = (values: Values): IsolationHints => {
  const prBranch = textOf(values, 'pr-branch')
  const prSha = textOf(values, 'pr-sha')
  if (prSha !== undefined && !isSha(prSha)) {
    throw new AppError('name-invalid', `${JSON.stringify(prSha.slice(0, 80))} is not a full commit id`, {
      remedy: remedy`use all 40 digits: ${shell('git rev-parse <commit>')}`,
    })
  }
  const fixes = listOf(values, 'fixes').map((text) => Number(toWork('issue', text.replace(/^#/, '')).id))
  return {
    ...(prBranch !== undefined && { prBranch: toBranchName(prBranch) }),
    ...(prSha !== undefined && { prSha }),
    ...(isSet(values, 'fork') && { isForkPR: true }),
    ...(fixes.length > 0 && { linkedIssues: fixes }),
  }
}

const toText = (result: CreateResult, view: View): string => {
  if (result.outcome === 'limit') return limitText(result.report, result.staleDays, view)
  const { environment, how } = result
  const { branch, work, path } = environment
  return [
    `${view.paint(how === 'created' ? 'green' : 'cyan', said[how])} ${code(branch, view)} for ${workLabel(work)}`,
    view.chat === true
      ? `This conversation now works there, in ${code(result.codebase, view)}: ${code(tilde(path, view), view)}`
      : `  cd ${shellPath(path, view)}`,
  ].join('\n')
}

const said = {
  created: 'Created',
  adopted: 'Adopted',
  linked: 'Shared',
  'same-work': 'Using existing worktree',
  conversation: 'Using existing worktree',
} as const

export const worktreeCreate = command<CreateResult>({
  run,
  toText,
  toJson: (result, view) =>
    result.outcome === 'limit'
      ? limitJson(result.report, result.staleDays, view)
      : environmentJson(result.environment, () => result.codebase),
  exitCode: ({ outcome }) => (outcome === 'limit' ? exitCodes.refused : exitCodes.done),
})
