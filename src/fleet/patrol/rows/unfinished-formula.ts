import { toAppError } from '../../../domain/errors.ts'
import { abandonedAmong } from '../../formulas/abandoned.ts'
import type { Finding, FleetRow } from '../row.ts'

const name = 'unfinished-formula'

/**
 * A `coppice done` whose process has died is completed from its last checkpoint. Whoever sees it first claims it, so
 * that it is done once. If its intent wasn't recorded, it had no effect, and the agent goes on.
 */
export const unfinishedFormula: FleetRow = {
  name,
  actOnFleet: async (context, look) => {
    const { finish, isolation } = context
    const findings: Finding[] = []
    const abandoned = await abandonedAmong(context, look.formulas)
    for (const run of abandoned) {
      try {
        const agent = look.agents.get(run.agentId)?.agent.name
        const outcome = (await finish(run))?.outcome
        if (outcome === undefined || outcome === 'busy' || outcome === 'waited-for') continue
        const { formula, itemId: item } = run
        findings.push({ row: name, did: 'finished', formula, outcome, item, ...(agent !== undefined && { agent }) })
      } catch (error) {
        isolation.log.warn('a formula could not be finished', {
          formula: run.formula,
          error: toAppError(error).message,
        })
      }
    }
    if (abandoned.length > 0) await look.refresh(abandoned.map(({ agentId }) => agentId))
    return findings
  },
}
