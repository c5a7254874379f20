import type { Codebase } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import type { EnvironmentId } from '../../domain/names.ts'
import { addCodebase } from '../../isolation/codebases/codebases.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { Environments } from '../../isolation/environments.ts'
import type { Plan } from './plan.ts'
import type { PlannedCodebase } from './plan-codebases.ts'
import type { PlannedConversation } from './plan-conversations.ts'
import { createdBy, type PlannedEnvironment } from './plan-environments.ts'
import { eachRow } from './planning.ts'
import type { ImportLeftOut } from './report.ts'

type Run = {
  readonly context: IsolationContext
  readonly environments: Environments
  readonly signal: AbortSignal
  readonly leftOut: ImportLeftOut[]
}

/** Does what the plan says. Returns what was done: the plan, less what failed after all. */
export const carryOut = async (parts: Omit<Run, 'leftOut'>, plan: Plan): Promise<Plan> => {
  const run: Run = { ...parts, leftOut: [...plan.leftOut] }
  const { progress } = run.context
  progress('importing repositories')
  const codebases = new Map<PlannedCodebase, Codebase>()
  const nameOf = ({ codebase }: PlannedCodebase): string => codebase.name
  await eachRow(run, 'codebase', plan.codebases, nameOf, async (planned) => {
    codebases.set(planned, await registered(run, planned))
  })
  progress('importing worktrees')
  const environments = new Map<PlannedEnvironment, EnvironmentId>()
  const branchOf = ({ branch }: PlannedEnvironment): string => branch
  await eachRow(run, 'environment', plan.environments, branchOf, async (planned) => {
    environments.set(planned, await adopted(run, planned, codebases.get(planned.codebase)))
  })
  progress('importing conversations')
  const conversations: PlannedConversation[] = []
  const idOf = ({ wanted }: PlannedConversation): string => `${wanted.platform}:${wanted.conversationId}`
  await eachRow(run, 'conversation', plan.conversations, idOf, async (planned) => {
    const { codebase, environment } = planned
    const place = environment && environments.get(environment)
    const done = environment !== undefined && place === undefined ? withoutWorktree(run, planned) : planned
    await attached(run, done, codebases.get(codebase), place)
    conversations.push(done)
  })
  return {
    ...plan,
    codebases: plan.codebases.filter((planned) => codebases.has(planned)),
    environments: plan.environments.filter((planned) => environments.has(planned)),
    conversations,
    leftOut: run.leftOut,
  }
}

const registered = async (
  { context, signal }: Run,
  { codebase: planned, register, movedTo, settings }: PlannedCodebase,
): Promise<Codebase> => {
  const { base, agent, github } = settings
  const place = register?.place ?? movedTo
  const called = register === undefined ? {} : { called: register.called }
  const codebase =
    place === undefined ? planned : (await addCodebase(context, place, '/', { signal, ...called })).codebase
  const patch = {
    ...(base !== undefined && { base }),
    ...(agent !== undefined && { defaultAgent: agent }),
    ...(github !== undefined && { github }),
  }
  await context.store.codebases.update(codebase.id, patch)
  return { ...codebase, ...patch }
}

const adopted = async (
  { environments, context }: Run,
  planned: PlannedEnvironment,
  codebase: Codebase | undefined,
): Promise<EnvironmentId> => {
  if (codebase === undefined) throw new AppError('not-adoptable', "its repository wasn't imported")
  const { path, work, aliases, age, own, relink, existing } = planned
  const request = { work, createdBy, aliases, age, relink, ...(own !== undefined && { own }) }
  const { id } =
    existing !== undefined && own === undefined ? existing : await environments.adopt(codebase, path, request)
  if (existing !== undefined) {
    for (const alias of aliases) await context.store.environments.addAlias(id, codebase.id, alias, context.clock())
  }
  return id
}

/** Its worktree couldn't be adopted after all, and a session belongs to its directory. */
const withoutWorktree = ({ leftOut }: Run, planned: PlannedConversation): PlannedConversation => {
  const { platform, conversationId } = planned.wanted
  if (planned.session !== undefined) {
    const reason = "its conversation's worktree wasn't imported"
    leftOut.push({ kind: 'session', name: `of ${platform}:${conversationId}`, reason })
  }
  const action = planned.action === 'attach' ? 'keep' : planned.action
  return { ...planned, environment: undefined, session: undefined, action }
}

/** In one transaction: the next import finds conversation and session, or neither. */
const attached = async (
  { context }: Run,
  { wanted, action, existing, session }: PlannedConversation,
  codebase: Codebase | undefined,
  environmentId: EnvironmentId | undefined,
): Promise<void> => {
  if (codebase === undefined) throw new AppError('not-found', "its repository wasn't imported")
  if (action === 'keep') return
  const { store, ids } = context
  await store.transaction(async (inner) => {
    const conversation = { ...wanted, id: ids(), codebaseId: codebase.id, environmentId }
    const { id } = existing ?? (await inner.conversations.ensure(conversation))
    if (action === 'attach') {
      const agent = session?.agent ?? existing?.agent
      await inner.conversations.update(id, { environmentId, agent })
    }
    if (session !== undefined) await inner.sessions.start(session.toSession(ids(), id))
  })
}
