import type { Plan } from './plan.ts'
import type { PlannedEnvironment } from './plan-environments.ts'
import { type ImportCount, type ImportedEnvironment, type ImportKind, type ImportReport, shown } from './report.ts'

/** What the plan does, in numbers and names. */
export const reportOf = (plan: Plan, dryRun: boolean): ImportReport => {
  const { codebases, environments, conversations, overLimit, advice } = plan
  const leftOut = plan.leftOut.map(({ kind, name, reason }) => ({ kind, name: shown(name), reason: shown(reason) }))
  const count = (kind: ImportKind, taken: number, known: number): ImportCount => ({
    taken,
    known,
    leftOut: leftOut.filter((one) => one.kind === kind).length,
  })
  const registered = codebases.filter(({ register }) => register !== undefined)
  const added = environments.filter(({ existing }) => existing === undefined)
  const moved = conversations.filter(({ action }) => action !== 'keep')
  const sessions = conversations.filter(({ session }) => session !== undefined)
  return {
    dryRun,
    counts: {
      codebase: count('codebase', registered.length, plan.knownCodebases),
      environment: count('environment', added.length, environments.length - added.length),
      conversation: count('conversation', moved.length, conversations.length - moved.length),
      session: count('session', sessions.length, conversations.filter(({ hasSession }) => hasSession).length),
    },
    codebases: registered.map(({ codebase }) => codebase.name),
    settings: codebases.flatMap(({ codebase, settings }) =>
      Object.keys(settings).length === 0 ? [] : [{ codebase: codebase.name, ...settings }],
    ),
    environments: added.map(imported),
    handedOver: environments
      .filter(({ existing, own }) => existing?.owned === false && own !== undefined)
      .map(imported),
    overLimit,
    advice,
    leftOut,
  }
}

const imported = (environment: PlannedEnvironment): ImportedEnvironment => {
  const { codebase, work, aliases, branch, path, own, age, relink } = environment
  return {
    codebase: codebase.codebase.name,
    work: { type: work.type, id: shown(work.id) },
    aliases: aliases.map(({ type, id }) => ({ type, id: shown(id) })),
    branch,
    path,
    owned: own !== undefined,
    lastActivityAt: age.lastActivityAt,
    relinked: relink !== undefined,
  }
}
