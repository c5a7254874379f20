import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { counted } from '../../domain/text/words.ts'
import type { FleetContext } from '../../fleet/context.ts'
import { abandonedAmong } from '../../fleet/formulas/abandoned.ts'
import { type Look, takeLook } from '../../fleet/patrol/look.ts'
import type { AgentRow } from '../../fleet/patrol/row.ts'
import { findHookedByNobody } from '../../fleet/patrol/rows/hooked-by-nobody.ts'
import { findLeftoverFiles } from '../../fleet/patrol/rows/leftover-files.ts'
import { rows } from '../../fleet/patrol/rows/registry.ts'
import { findStraySessions } from '../../fleet/patrol/rows/stray-sessions.ts'
import type { Seen } from '../../fleet/patrol/seen.ts'
import { fleetHome } from '../../fleet/sessions/paths.ts'
import { fleetStatus, type NeedsYou } from '../../fleet/status.ts'
import type { ParkReason } from '../../domain/fleet/item.ts'
import { coppice, type Remedy, remedy } from '../../domain/remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import type { Workplace } from '../../commands/command.ts'
import { describeNeed, needRemedies } from '../../commands/views/agents.ts'
import { type Finding, look, note, ok, problem } from './finding.ts'

/** What the patrol would find now, by the patrol's own rules. Changes nothing. */
export const examineFleet = async (workplace: Workplace): Promise<Finding[]> => {
  const { store, home, host } = workplace.context
  const isUsed = existsSync(fleetHome(home)) || (await store.items.list({ states: ['hooked', 'parked'] })).length > 0
  if (!isUsed && (await store.fleetControl.get(host)).state === 'up') return []
  return look('fleet', async () => examine(await workplace.fleet()))
}

const examine = async (fleet: FleetContext): Promise<Finding[]> => {
  const first = await takeLook(fleet, { record: false })
  const found = agentFindings(first)
  const unconfirmed = found.filter(({ row }) => row.isConfirmed === true)
  if (unconfirmed.length > 0) await delay(CONFIRM_MS)
  const second = unconfirmed.length > 0 ? agentFindings(await takeLook(fleet, { record: false })) : found
  const lasting = found.filter((one) =>
    second.some(({ row, seen }) => row === one.row && seen.agent.spawn === one.seen.agent.spawn),
  )
  const findings = [
    ...lasting.flatMap(({ row, seen }) => agentWords[row.name]?.(seen) ?? []),
    ...(await fleetFindings(fleet, first)),
  ]
  const agents = first.agents.size
  return findings.some(({ state }) => state === 'problem')
    ? findings
    : [...findings, ok('fleet', agents === 0 ? 'no agents' : `${counted(agents, 'agent')}, as recorded`)]
}

/** As the patrol, which looks twice before it believes some things. */
const CONFIRM_MS = 500

type Found = { readonly row: AgentRow; readonly seen: Seen }

const agentFindings = ({ agents, round }: Look): readonly Found[] =>
  rows.flatMap((row) =>
    'applies' in row
      ? [...agents.values()].filter((seen) => row.applies(seen, round)).map((seen) => ({ row, seen }))
      : [],
  )

const patrolNow = remedy`the server repairs it in its next round; without one, run ${coppice('fleet patrol')}`

const start = ({ agent }: Seen): Remedy => remedy`start it again: ${coppice(`fleet up ${shellWord(agent.name)}`)}`

const broken =
  (what: (seen: Seen) => string, way: (seen: Seen) => Remedy = () => patrolNow) =>
  (seen: Seen): Finding =>
    problem('fleet', what(seen), way(seen))

const itemOf = ({ agent }: Seen): string => (agent.itemId === undefined ? 'its item' : `item ${agent.itemId}`)

/** By the name of its row. Undefined: nothing is wrong. */
export const agentWords: Readonly<Record<string, ((seen: Seen) => Finding) | undefined>> = {
  'interrupted-start': broken(({ agent }) => `${agent.name} was being started when that process died`),
  'interrupted-stop': broken(({ agent }) => `${agent.name} was being stopped when that process died`),
  'interrupted-down': broken(({ agent }) => `fleet down was interrupted after it had ended ${agent.name}`),
  'orphaned-hook': broken((seen) =>
    seen.agent.itemId === undefined
      ? `${seen.agent.name} and its worktree are gone`
      : `${seen.agent.name} and its worktree are gone, but ${itemOf(seen)} is still hooked to it`,
  ),
  'stray-session': broken(({ agent }) => `${agent.name} is running, but its worktree was removed`),
  'outlived-session': broken(
    ({ agent }) => `the session of ${agent.name} has ended, but some of its processes are running`,
  ),
  zombie: broken(({ agent }) => `the session of ${agent.name} is alive, but its program has ended`),
  crashed: broken(
    (seen) => `${seen.agent.name} has died${seen.agent.itemId === undefined ? '' : ` at work on ${itemOf(seen)}`}`,
  ),
  'formula-failed': broken(
    (seen) => `${seen.agent.name} died while it was finishing ${itemOf(seen)}, and that can't be completed`,
    ({ agent }) =>
      remedy`see why with ${coppice(`item show ${agent.itemId ?? 0}`)}, fix that, then run ${coppice('fleet patrol')}`,
  ),
  'worktree-missing': broken(
    (seen) =>
      `the worktree of ${seen.agent.name} (${itemOf(seen)}) is missing: ${seen.environment?.path ?? 'unknown path'}`,
    () => remedy`mount its disk if it isn't mounted; ${coppice('fleet patrol')} parks the item until then`,
  ),
  respawn: (seen) => note('fleet', `${seen.agent.name} has crashed and is due to restart`, patrolNow),
  'no-restarts-left': broken(
    (seen) => `${seen.agent.name} has crashed ${counted(seen.agent.restarts + 1, 'time')} at work on ${itemOf(seen)}`,
    start,
  ),
  'free-worktree': (seen) => note('fleet', `${seen.agent.name} has no item and no session, only a worktree`, patrolNow),
  stuck: broken(
    ({ agent }) => `no sign of life from ${agent.name} for a while`,
    ({ agent }) => remedy`see what it does: ${coppice(`peek ${shellWord(agent.name)}`)}`,
  ),
}

/** What concerns no single agent, and what only a person can change. */
const fleetFindings = async (fleet: FleetContext, seen: Look): Promise<Finding[]> => {
  const abandoned = await abandonedAmong(fleet, seen.formulas)
  const { stray } = await findStraySessions(fleet, seen)
  const files = await findLeftoverFiles(fleet, seen)
  const nobodys = await findHookedByNobody(fleet, seen)
  const nameOf = (id: string): string => seen.agents.get(id)?.agent.name ?? 'its agent'
  return [
    ...abandoned.map(({ agentId, itemId, formula }) =>
      problem('fleet', `${nameOf(agentId)} died while it was finishing item ${itemId ?? '?'} (${formula})`, patrolNow),
    ),
    ...stray.map((name) => problem('fleet', `a session of ${name} is running, but that agent is gone`, patrolNow)),
    ...files.map((name) => problem('fleet', `files of ${name} are left from a start that was interrupted`, patrolNow)),
    ...nobodys.map(({ id }) => problem('fleet', `item ${id} is hooked, but no agent has it`, patrolNow)),
    ...[...seen.listed].flatMap(([kind, listed]) =>
      listed === undefined
        ? [problem('fleet', `the sessions of kind ${kind} can't be listed`, 'see coppice.log in the data directory')]
        : [],
    ),
    ...(await look('fleet', () => needs(fleet))),
  ]
}

const needs = async (fleet: FleetContext): Promise<Finding[]> =>
  (await fleetStatus(fleet)).needsYou
    .filter(isOfPatrol)
    .map((need) => problem('fleet', describeNeed(need), needRemedies(need)[0] ?? patrolNow))

/** Not what agents ask, or what a merge waits for: that is work, and `fleet status` lists it. */
const isOfPatrol = (need: NeedsYou): boolean =>
  need.kind === 'paused' ||
  need.kind === 'stuck' ||
  (need.kind === 'parked' && need.reason !== undefined && partialWork.has(need.reason.kind))

const partialWork: ReadonlySet<ParkReason['kind']> = new Set([
  'crashed',
  'worktree-missing',
  'other-branch',
  'formula-failed',
])
