import { counted } from '../../../domain/text/words.ts'
import type { PatrolNote } from '../../../store/fleet/store.ts'
import { DEATH, type Death } from '../death.ts'
import type { FleetRow } from '../row.ts'

const name = 'mass-death'

/**
 * Several agents have died at once: whatever kills them would kill their successors, too, and each start costs money. So
 * the fleet pauses until `fleet up`, with one alert. The end of the tmux server or of the machine explains all deaths
 * that it caused, and counts as one.
 */
export const massDeath: FleetRow = {
  name,
  actOnFleet: async (context, look) => {
    const { store, host, clock, settings, failpoint } = context.isolation
    const { control } = look.round
    const since = Math.max(control.since, clock() - settings.massDeathSeconds * 1000)
    const deaths = (await store.patrolNotes.ofHost(host)).filter(
      ({ what, lastSeen }) => what === DEATH && lastSeen > since,
    )
    if (control.state !== 'up' || causesOf(deaths) < settings.massDeathAgents) return []
    const agents = deaths.map((note) => deathIn(note).name).toSorted()
    const isOurs = await store.transaction(async (inside) => {
      if ((await inside.fleetControl.lock(host)).state !== 'up') return false
      const why = `${counted(agents.length, 'agent')} died within ${counted(settings.massDeathSeconds, 'second')}: ${agents.join(', ')}`
      await inside.fleetControl.set(host, { state: 'paused', why, since: clock() })
      await context.notify(inside, { kind: 'mass-death', agents })
      return true
    })
    await failpoint('mass-death.paused')
    await look.refreshControl()
    return isOurs ? [{ row: name, did: 'paused', agents }] : []
  },
}

const deathIn = ({ data }: PatrolNote): Death => data as Death

const causesOf = (deaths: readonly PatrolNote[]): number => {
  const causes = deaths.map((note) => deathIn(note).cause)
  return causes.filter((cause) => cause === 'own').length + new Set(causes.filter((cause) => cause !== 'own')).size
}
