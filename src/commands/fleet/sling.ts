import { shellWord } from '../../domain/text/shell-word.ts'
import type { SlingOutcome } from '../../fleet/sling/outcome.ts'
import { sling as slingItem } from '../../fleet/sling/sling.ts'
import { type Call, command, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { agentJson } from '../views/agents.ts'
import { exitCodes } from '../views/failure.ts'
import { explainSling, refusalLines, refusalObject } from '../views/fleet-refusals.ts'
import { limitJson, limitText } from '../views/limit.ts'
import { block, code, printable, tilde, type View } from '../views/view.ts'
import { changerOf, itemOf } from './scope.ts'

type Result = SlingOutcome & {
  readonly item: { readonly id: number }
  readonly staleDays: number
  readonly canAttach: boolean
}

const run = async (call: Call): Promise<Result> => {
  const [pool, crew] = [textOf(call.values, 'pool'), textOf(call.values, 'crew')]
  if (pool !== undefined && crew !== undefined) throw usage("--pool and --crew can't be combined", 'pass one of them')
  const workplace = await call.open()
  const item = await itemOf(call, workplace)
  const fleet = await workplace.fleet()
  const slung = await slingItem(fleet, {
    item: item.id,
    pool,
    crew,
    by: changerOf(call, fleet),
    conversation: call.chat?.conversation.id,
    signal: call.signal,
  })
  if (slung.outcome === 'started') for (const notice of slung.notices) call.notice(notice)
  const kind = slung.outcome === 'started' ? slung.agent.session?.kind : undefined
  const canAttach = kind !== undefined && fleet.sessions.of(kind).can.attach
  return {
    ...slung,
    item: 'item' in slung ? slung.item : item,
    staleDays: workplace.context.settings.staleDays,
    canAttach,
  }
}

const toText = (result: Result, view: View): string => {
  switch (result.outcome) {
    case 'limit':
      return limitText(result.report, result.staleDays, view)
    case 'refused': {
      const { item, why } = result
      return refusalLines(`Can't start item ${item.id}`, [explainSling(why, item.id)], view)
    }
    case 'started': {
      const { agent, item, environment, canAttach } = result
      const headline = `${view.paint('green', agent.name)} is working on item ${item.id}: ${printable(item.title)}`
      const watch = view.commandText(`${canAttach && view.chat !== true ? 'attach' : 'peek'} ${shellWord(agent.name)}`)
      return view.chat === true
        ? `${headline}\nBranch: ${code(environment.branch, view)}. Watch it: \`${watch}\``
        : `${headline}\n${block(`  branch    ${environment.branch}\n  worktree  ${tilde(environment.path, view)}\n  watch     ${watch}`, view)}`
    }
  }
}

export const sling = command<Result>({
  run,
  toText,
  toJson: (result, view) => {
    switch (result.outcome) {
      case 'started':
        return agentJson({ agent: result.agent, codebase: result.codebase.name, environment: result.environment })
      case 'limit':
        return limitJson(result.report, result.staleDays, view)
      case 'refused': {
        const { kind } = result.why
        return refusalObject(`can't start item ${result.item.id}`, [
          { ...explainSling(result.why, result.item.id), kind },
        ])
      }
    }
  },
  exitCode: ({ outcome }) => (outcome === 'started' ? exitCodes.done : exitCodes.refused),
})
