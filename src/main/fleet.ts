import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAgents } from '../agents/registry.ts'
import { askServerToLook } from '../cli/wake-server.ts'
import type { Workplace } from '../commands/command.ts'
import { createFollowerNotifier } from '../conversations/fleet-notices.ts'
import type { FleetContext } from '../fleet/context.ts'
import { recordEvent } from '../fleet/events/record.ts'
import { sessionOnly } from '../fleet/sessions/variables.ts'
import { createSessions } from '../fleet/sessions/registry.ts'
import { writableCgroup } from '../process/cgroup.ts'
import { spawnUnmarked } from '../process/spawn-unmarked.ts'

/** The fleet, wired together: for its commands, and for the server. */
export const createFleet = (
  { context: isolation, environments, platforms }: Omit<Workplace, 'fleet'>,
  { program }: { readonly program: string },
): FleetContext => {
  const { settings, git, clock, ids, self, home, log, lock, secrets, ownEnvironment = {} } = isolation
  const contextDirectory = join(home, 'context')
  const installation = [process.execPath, installed(program)] as const
  const { redact } = secrets
  const notifyFollowers = createFollowerNotifier({ isolation, redact, platforms })
  return {
    isolation,
    environments,
    agents: createAgents({ settings, git, clock, ids, self, contextDirectory, ownEnvironment }),
    redact,
    cgroup: writableCgroup(),
    sessions: createSessions({ home, clock, log, lock, env: ownEnvironment }, settings.fleetSession),
    installation,
    executing: new Set(),
    wakeServer: () => askServerToLook(home),
    notify: async (store, event, except) => {
      await recordEvent({ isolation, redact }, store, event)
      await notifyFollowers(store, event, except)
    },
    inBackground: async (words) => {
      const args = [...installation.slice(1), '--home', home, 'internal', ...words]
      const env = Object.fromEntries(Object.entries(ownEnvironment).filter(([name]) => !sessionOnly.has(name)))
      const logFile = join(home, 'fleet', 'background.log')
      await spawnUnmarked({ command: installation[0], args, cwd: '/', env, logFile })
    },
  }
}

/** The published program starts faster through its own script. */
const installed = (program: string): string => {
  const script = fileURLToPath(new URL('../bin/coppice.js', new URL(program, 'file://')))
  return program.endsWith('.js') && existsSync(script) ? script : program
}
