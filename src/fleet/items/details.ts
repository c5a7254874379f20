import type { IsolatedEnvironment } from '../../domain/environment.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { Item } from '../../domain/fleet/item.ts'
import type { Store } from '../../store/store.ts'

/** An item with its codebase, agent and environment. */
export type ItemDetails = {
  readonly item: Item
  readonly codebase: string
  /** It is open, and all its dependencies are settled. */
  readonly ready: boolean
  readonly agent: FleetAgent | undefined
  readonly environment: IsolatedEnvironment | undefined
}

type Context = { readonly isolation: { readonly store: Store; readonly host: string } }

export const itemDetails = async (
  { isolation: { store, host } }: Context,
  items: readonly Item[],
): Promise<readonly ItemDetails[]> => {
  if (items.length === 0) return []
  const names = new Map((await store.codebases.list(host)).map(({ id, name }) => [id, name]))
  const isOpen = items.some(({ state }) => state === 'open')
  const ready = new Set(isOpen ? (await store.items.ready({})).map(({ id }) => id) : [])
  const agents = await store.fleetAgents.ofItems(items.map(({ id }) => id))
  const byItem = new Map(agents.map((agent) => [agent.itemId, agent]))
  const seen: ItemDetails[] = []
  for (const item of items) {
    seen.push({
      item,
      codebase: names.get(item.codebaseId) ?? '',
      ready: ready.has(item.id),
      agent: byItem.get(item.id),
      environment: item.environmentId === undefined ? undefined : await store.environments.get(item.environmentId),
    })
  }
  return seen
}
