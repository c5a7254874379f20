import type { EnvironmentStatus } from '../domain/environment.ts'
import { isTrusted } from '../domain/trust.ts'
import { workLabel } from '../domain/work.ts'
import { type EnvironmentFacts, listWithFacts } from '../isolation/facts.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { countRemovable } from '../isolation/removable.ts'
import { counted } from '../domain/text/words.ts'
import { type Call, command } from './command.ts'
import { currentEnvironment, resolveTarget, tellMoves } from './target.ts'
import { factsJson } from './views/json.ts'
import { heldText } from './views/limit.ts'
import { describeProof } from './views/merged.ts'
import { describeUncommitted } from './views/uncommitted.ts'
import { lastCommand, ago, type Cell, fittedTable, tilde, type View } from './views/view.ts'

export type ListResult = {
  readonly codebase: string
  readonly limit: number
  readonly environments: readonly EnvironmentFacts[]
}

const run = async (call: Call): Promise<ListResult> => {
  const place = await resolveTarget(call)
  const { context, codebase } = place
  const cwd = call.cwd ?? (await currentEnvironment(call, place))?.path
  const environments = await listWithFacts(context, codebase, {
    ...(cwd !== undefined && { cwd }),
    askedBy: call.chat?.conversation.id,
    signal: call.signal,
    onMoved: (moved) => tellMoves(call, moved),
  })
  return {
    codebase: codebase.name,
    limit: context.settings.worktreesPerCodebase,
    environments: await Promise.all(environments.map((one) => recorded(context, one))),
  }
}

/** Records what was found: a vanished directory makes it missing, a returned one active again. */
const recorded = async (
  context: Pick<IsolationContext, 'store'>,
  facts: EnvironmentFacts,
): Promise<EnvironmentFacts> => {
  const { environment, health } = facts
  const become = async (from: EnvironmentStatus, to: EnvironmentStatus): Promise<EnvironmentFacts> => {
    const done = await context.store.environments.transition(environment.id, from, to)
    return done ? { ...facts, environment: { ...environment, status: to } } : facts
  }
  if (environment.status === 'active' && health === 'missing') return become('active', 'missing')
  if (environment.status === 'missing' && health === 'healthy') return become('missing', 'active')
  return facts
}

const toText = ({ codebase, environments, limit }: ListResult, view: View): string => {
  if (environments.length === 0) {
    return `${codebase} has no worktrees yet.\nCreate one: ${lastCommand(view.commandText('worktree create --issue 42'), view)}`
  }
  const headings = ['', 'BRANCH', 'FOR', 'FILES', 'COMMITS', 'MERGED', 'ACTIVE', 'USED BY', 'PATH']
  const rows = environments.map((one) => rowOf(one, view))
  const { text, dropped } = fittedTable(headings, rows, view, fit)
  const paths = dropped.includes('PATH') ? `; ${elsewhere(view)}` : ''
  return [
    text,
    view.paint('dim', `${counted(environments.length, 'worktree')} of ${codebase} (limit ${limit})${paths}`),
    ...summary(environments).map((line) => view.paint('dim', line)),
  ].join('\n')
}

/** Only if cleanup has something to do, or is kept from doing it. */
const summary = (environments: readonly EnvironmentFacts[]): string[] => {
  const { merged, stale, held } = countRemovable(environments.map(({ removable }) => removable))
  const parts = [
    ...(merged > 0 ? [`${merged} merged`] : []),
    ...(stale > 0 ? [`${stale} stale`] : []),
    ...heldText(held),
  ]
  return parts.length === 0 ? [] : [`cleanup: ${parts.join(', ')}`]
}

/** A chat has no `--json`, and most of its users can't access these directories anyway. */
const elsewhere = ({ chat, commandText }: View): string =>
  chat === true ? `this conversation's path: ${commandText('status')}` : `paths: ${commandText('worktree list --json')}`

/** 80 columns fit what users need to decide, but not the paths. */
const fit = { drop: ['PATH', 'ACTIVE'], cut: ['BRANCH', 'FOR', 'FILES', 'COMMITS', 'MERGED', 'USED BY'] }

const rowOf = (facts: EnvironmentFacts, view: View): Cell[] => {
  const { environment, current, lastActivityAt, conversations, inUse } = facts
  return [
    { text: current ? '*' : '', style: 'green' },
    { text: environment.branch, style: 'bold' },
    { text: `${workLabel(environment.work)}${isTrusted(environment.trust) ? '' : ' (untrusted)'}` },
    files(facts),
    { text: position(facts) },
    merged(facts),
    { text: ago(lastActivityAt, view.now) },
    { text: [...conversations, ...inUse.by].join(', ') },
    { text: `${tilde(environment.path, view)}${environment.owned ? '' : ' (adopted)'}`, style: 'dim' },
  ]
}

const files = ({ environment, health, dirty }: EnvironmentFacts): Cell => {
  if (environment.status !== 'active') return { text: environment.status, style: 'red' }
  if (health === 'not-ours') return { text: 'replaced', style: 'red' }
  if (dirty === undefined) return { text: 'unknown', style: 'yellow' }
  const text = describeUncommitted(dirty)
  return text === '' ? { text: 'clean', style: 'green' } : { text, style: 'yellow' }
}

const position = ({ ahead, behind, detached = 0 }: EnvironmentFacts): string => {
  if (detached > 0) return `${detached} on detached HEAD`
  if (ahead === undefined || behind === undefined) return '?'
  return (
    [...(ahead > 0 ? [`${ahead} ahead`] : []), ...(behind > 0 ? [`${behind} behind`] : [])].join(', ') || 'up to date'
  )
}

const merged = ({ merged: answer, removable }: EnvironmentFacts): Cell => {
  const held = removable.kind === 'held' ? ', held' : ''
  switch (answer.value) {
    case 'yes':
      return { text: `yes${held}: ${describeProof(answer)}`, style: held === '' ? 'green' : 'yellow' }
    case 'no':
      return { text: 'no' }
    case 'empty':
      return { text: '–', style: 'dim' }
    case 'cannot-tell':
      return { text: 'unknown', style: 'yellow' }
  }
}

export const worktreeList = command<ListResult>({
  run,
  toText,
  toJson: ({ environments, codebase }) => environments.map((one) => factsJson(one, () => codebase)),
})
