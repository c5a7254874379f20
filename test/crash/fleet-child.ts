import { flushCompileCache } from 'node:module'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import type { ProviderName } from '../../src/domain/provider-name.ts'
import { createGithubForge } from '../../src/platforms/github/forge/forge.ts'
import { createLogger } from '../../src/process/log.ts'
import { createSecrets } from '../../src/process/redaction/redact.ts'
import { fleetIn, testPools } from '../helpers/fleet.ts'
import { reopen } from '../helpers/reopen.ts'
import { makeContext } from '../helpers/world.ts'
import {
  type FleetOperationName,
  fleetOperations,
  crashPools,
  CREW,
  lost,
  scripted,
  scriptedTurns,
} from './fleet-operations.ts'

export type FleetChildOrder = {
  readonly root: string
  readonly operation: FleetOperationName
  readonly killAt: string
  readonly kind: SessionKind
  readonly isolationProvider: ProviderName
  readonly script: string
  /** Where a double of GitHub listens. */
  readonly forge: string | undefined
}

/** A second process with the same fleet, which kills itself where it is told to. */
const main = async (order: FleetChildOrder): Promise<void> => {
  const box = reopen(order.root)
  const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })
  const secrets = createSecrets()
  const forge =
    order.forge === undefined
      ? {}
      : {
          forge: createGithubForge(
            { token: 'ghp_x', apiUrl: order.forge },
            { log, clock: Date.now, secrets },
            { timeoutMs: 10_000 },
          ),
        }
  const context = await makeContext(
    box,
    {
      ...forge,
      approve: async () => true,
      failpoint: async (name) => {
        if (name !== order.killAt) return
        flushCompileCache()
        process.kill(process.pid, 'SIGKILL')
        // Death takes a moment; nothing may happen in it.
        await new Promise(() => undefined)
      },
    },
    {
      settings: {
        isolationProvider: order.isolationProvider,
        fleetSession: order.kind,
        pools: testPools(crashPools),
        supervisor: CREW,
      },
    },
  )
  await fleetOperations[order.operation](
    fleetIn(context, box.env, [scripted(order.script), lost], scriptedTurns(order.script)),
  )
  await context.store.close()
}

await main(JSON.parse(process.argv[2] ?? '') as FleetChildOrder)
