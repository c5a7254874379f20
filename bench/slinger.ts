/** A child process of `sling`: slings all items when asked, checks the hooks, and ends the agents. */
import { toAppError } from '../src/domain/errors.ts'
import { toRepoPath } from '../src/domain/names.ts'
import { sling } from '../src/fleet/sling/sling.ts'
import { liveness } from '../src/process/identity.ts'
import { makeSandbox } from '../test/helpers/repo.ts'
import { addItems, endAgents, fleetOf, fleetSettings } from './fleet-world.ts'
import { openWorld } from './stage.ts'

const [root = '', items = '0'] = process.argv.slice(2)
const box = makeSandbox()
const world = await openWorld(box, root, { ...fleetSettings, spares: 0 })
const { store } = world.context
const fleet = fleetOf(world, box.env)
await addItems(fleet, world.codebase, Number(items))
// The first query of a repository reads its configuration; a server has long done that.
await world.context.git.config({ commonDir: toRepoPath(world.codebase.repoPath) })

const slingAll = async (): Promise<string[]> => {
  const ready = await store.items.ready({})
  const outcomes = await Promise.allSettled(ready.map(({ id }) => sling(fleet, { item: id, by: 'bench' })))
  return outcomes.flatMap((one) => {
    if (one.status === 'rejected') return toAppError(one.reason).code === 'busy' ? [] : [toAppError(one.reason).message]
    const { value } = one
    return value.outcome === 'started' || (value.outcome === 'refused' && value.why.kind === 'hooked')
      ? []
      : [`not slung: ${JSON.stringify(value)}`]
  })
}

const check = async (): Promise<string[]> => {
  const agents = await store.fleetAgents.live()
  const all = await store.items.list({})
  const roots = new Set(agents.map(({ session }) => session?.root.pid))
  return [
    ...(roots.size === agents.length ? [] : ['two agents share a session']),
    ...agents.flatMap(({ name, session, state }) =>
      state === 'working' && session !== undefined && liveness(session.root) === 'alive'
        ? []
        : [`${name} doesn't work`],
    ),
    ...all.flatMap(({ id, state }) => {
      const count = agents.filter(({ itemId }) => itemId === id).length
      return state === 'hooked' && count === 1 ? [] : [`item ${id} is ${state}, with ${count} agents`]
    }),
  ]
}

process.on('message', (message) => {
  if (message === 'begin') void slingAll().then((failures) => process.send?.(failures))
  if (message === 'check') void check().then((problems) => process.send?.(problems))
  if (message === 'end') {
    void endAgents(fleet).then(async () => {
      await store.close()
      box[Symbol.dispose]()
      process.exit()
    })
  }
})
process.send?.('ready')
