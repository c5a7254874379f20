import type { Item } from '../../../domain/fleet/item.ts'
import { parkItem, unhookItem } from '../../items/change.ts'
import { BY } from '../park.ts'
import type { Look } from '../look.ts'
import type { Finding, FleetRow, RowContext } from '../row.ts'

const name = 'hooked-by-nobody'

/**
 * An item is hooked, but no agent has it. If its worktree is provably gone, too, it is open again; otherwise somebody has
 * worked there, and it is parked.
 */
export const hookedByNobody: FleetRow = {
  name,
  actOnFleet: async (context, look) => {
    const findings: Finding[] = []
    for (const item of await findHookedByNobody(context, look)) {
      const finding = await settle(context, item.id)
      if (finding !== undefined) findings.push(finding)
    }
    return findings
  },
}

/** Changes nothing. An agent of another host may have one of them. */
export const findHookedByNobody = async (
  { isolation: { store, host } }: Pick<RowContext, 'isolation'>,
  { agents }: Pick<Look, 'agents'>,
): Promise<readonly Item[]> => {
  const here = new Set([...agents.values()].flatMap(({ agent }) => agent.itemId ?? []))
  const others = (await store.items.list({ states: ['hooked'] })).filter(({ id }) => !here.has(id))
  if (others.length === 0) return []
  const codebases = new Set((await store.codebases.list(host)).map(({ id }) => id))
  return others.filter(({ codebaseId }) => codebases.has(codebaseId))
}

/** Read again: an agent may have taken it, or finished it, since the list was read. */
const settle = (context: RowContext, id: number): Promise<Finding | undefined> =>
  context.isolation.store.transaction(async (inside) => {
    const item: Item | undefined = await inside.items.get(id)
    if (item?.state !== 'hooked' || (await inside.fleetAgents.ofItems([id])).length > 0) return undefined
    const found = item.environmentId === undefined ? undefined : await inside.environments.get(item.environmentId)
    if (found !== undefined && found.status !== 'removed' && found.status !== 'released') {
      const reason = { kind: 'crashed', restarts: 0 } as const
      return (await parkItem(context, inside, item, { reason, by: BY }))
        ? { row: name, did: 'parked', item: id, reason }
        : undefined
    }
    const gone = { to: 'open', agent: '', why: 'gone', by: BY, withoutEnvironment: true } as const
    return (await unhookItem(context, inside, item, gone)) ? { row: name, did: 'unhooked', item: id } : undefined
  })
