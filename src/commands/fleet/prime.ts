import { callerIn, type NotTheAgent } from '../../fleet/caller.ts'
import { type Primer, primeAgent } from '../../fleet/prime.ts'
import { type Call, command } from '../command.ts'
import { exitCodes } from '../views/failure.ts'
import { explainPrime, refusalLines, refusalObject } from '../views/fleet-refusals.ts'
import { primerJson, primerText } from '../views/primer.ts'

type Result = Primer | NotTheAgent

const run = async (call: Call): Promise<Result> => {
  const fleet = await (await call.open()).fleet()
  return primeAgent(fleet, callerIn(fleet.isolation.ownEnvironment))
}

export const prime = command<Result>({
  run,
  toText: (result, view) =>
    'why' in result
      ? refusalLines("Can't show the item", [explainPrime(result.why, view)], view)
      : primerText(result, view),
  toJson: (result, view) =>
    'why' in result
      ? refusalObject("can't show the item", [{ ...explainPrime(result.why, view), kind: result.why.kind }])
      : primerJson(result),
  exitCode: (result) => ('why' in result ? exitCodes.refused : exitCodes.done),
})
