import { stepName } from '../../domain/fleet/formula.ts'
import { callerIn } from '../../fleet/caller.ts'
import { type Done, done as finish } from '../../fleet/formulas/done.ts'
import { type Call, command, isSet, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { exitCodes } from '../views/failure.ts'
import { explainDone, refusalLines, refusalObject } from '../views/fleet-refusals.ts'
import type { View } from '../views/view.ts'

const run = async (call: Call): Promise<Done> => {
  const [mode, close] = [textOf(call.values, 'mode'), isSet(call.values, 'close')]
  if (close && mode !== 'discard')
    throw usage('--close requires --mode discard', 'without it, a finished item is closed or in review anyway')
  const fleet = await (await call.open()).fleet()
  return finish(fleet, {
    ...callerIn(fleet.isolation.ownEnvironment),
    mode,
    close,
    signal: call.signal,
  })
}

const whyOf = (result: Done) =>
  result.outcome === 'not-started' ? [result.why] : result.outcome === 'refused' ? result.why : []

const toText = (result: Done, view: View): string => {
  switch (result.outcome) {
    case 'not-started':
    case 'refused':
      return refusalLines(
        "Can't finish",
        whyOf(result).map((why) => explainDone(why, view)),
        view,
      )
    case 'busy':
    case 'intended':
    case 'waited-for':
      return 'Another `coppice done` of this agent is running.'
    case 'done':
    case 'handed-over': {
      const { formula, branch, sha, pullRequest, steps } = result.run
      const skipped = steps.flatMap(({ step, state, detail }) =>
        state === 'skipped' ? [`  skipped ${stepName(step)}: ${detail ?? ''}`] : [],
      )
      return [
        `${view.paint('green', 'Done')} (${formula}): ${branch}${sha === undefined ? '' : ` at ${sha.slice(0, 7)}`}`,
        ...(pullRequest === undefined ? [] : [`  ${pullRequest}`]),
        ...skipped,
        ...(result.outcome === 'handed-over' ? ['This session ends now.'] : []),
      ].join('\n')
    }
  }
}

const toJson = (result: Done, view: View): unknown => {
  if (result.outcome === 'not-started' || result.outcome === 'refused') {
    return refusalObject(
      "can't finish",
      whyOf(result).map((why) => ({ ...explainDone(why, view), kind: why.kind })),
    )
  }
  const { run: formula } = result
  return {
    item: formula.itemId ?? null,
    formula: formula.formula,
    branch: formula.branch,
    sha: formula.sha ?? null,
    pr: formula.pullRequest ?? null,
    steps: formula.steps.map(({ step, state, detail }) => ({
      name: stepName(step),
      state,
      ...(detail !== undefined && { detail }),
    })),
  }
}

const exitCode = ({ outcome }: Done): number => {
  if (outcome === 'done' || outcome === 'handed-over') return exitCodes.done
  return outcome === 'busy' ? exitCodes.failed : exitCodes.refused
}

export const done = command<Done>({ run, toText, toJson, exitCode })
