import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, isAppError } from '../domain/errors.ts'
import { presentCodebase } from '../isolation/codebases/recognise.ts'
import { resolveCodebase } from '../isolation/codebases/codebases.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { findEnvironment } from '../isolation/find.ts'
import { environmentAround, followed, type Moved, movedNotice } from '../isolation/moved.ts'
import { isInside } from '../isolation/paths.ts'
import { codebaseBinding, goneBecause } from './codebase-binding.ts'
import { type Call, type ChatCall, cwdOf, type Workplace } from './command.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type Target = Workplace & { readonly codebase: Codebase; readonly nameOf: (codebaseId: string) => string }

/** The workplace, and the command's codebase. */
export const resolveTarget = async (call: Call, cwd = cwdOf(call)): Promise<Target> => {
  const workplace = await call.open()
  const codebase =
    call.chat === undefined
      ? await resolveCodebase(workplace.context, { name: call.codebase, cwd, signal: call.signal })
      : await presentCodebase(workplace.context, await codebaseOf(workplace, call.chat))
  return { ...workplace, codebase, nameOf: () => codebase.name }
}

/** For commands that change something: first finishes or undoes interrupted operations. */
export const resolveTargetForWrite = async (call: Call, cwd?: string): Promise<Target> => {
  const found = await resolveTarget(call, cwd)
  const { recoverInterrupted: settleInterrupted } = await import('../isolation/reconcile.ts')
  const { settled, left } = await settleInterrupted(found.context, found.codebase)
  for (const notice of [...settled, ...left]) call.notice(notice)
  return found
}

/** For commands that also work without a codebase: being outside a repository isn't an error for a query. */
export const findTargetCodebase = async (call: Call, workplace: Workplace): Promise<Codebase | undefined> => {
  if (call.chat !== undefined) return boundCodebase(workplace, call.chat)
  const { context } = workplace
  try {
    return await resolveCodebase(context, { name: call.codebase, cwd: cwdOf(call), signal: call.signal })
  } catch (error) {
    const none = isAppError(error, 'not-a-repository') || isAppError(error, 'no-commits')
    if (call.codebase !== undefined || !none) throw error
    return undefined
  }
}

export const tellMoves = (call: Call, moved: readonly Moved[]): void => {
  for (const one of moved) call.notice(movedNotice(one))
}

/** The environment at its current path. If it was moved, records and reports that. */
export const followTarget = async (
  call: Call,
  { context, codebase }: Pick<Target, 'context' | 'codebase'>,
  environment: IsolatedEnvironment,
): Promise<IsolatedEnvironment> => {
  const found = await followed(context, codebase, environment)
  tellMoves(call, found.moved)
  return found.environment
}

/** The default environment: the conversation's own, or the one containing the current directory. */
export const currentEnvironment = async (
  call: Call,
  { context, codebase }: Pick<Target, 'context' | 'codebase'>,
): Promise<IsolatedEnvironment | undefined> => {
  const live = await context.store.environments.live(codebase.id)
  const { chat } = call
  if (chat !== undefined) return live.find(({ id }) => id === chat.conversation.environmentId)
  const recorded = live.find(({ host, path }) => host === context.host && isInside(path, cwdOf(call)))
  if (recorded !== undefined || live.length === 0) return recorded
  const around = await environmentAround(context, codebase, cwdOf(call))
  return around && followTarget(call, { context, codebase }, around)
}

/** The environment that the command's first word names (default: the current one). */
export const namedOrCurrent = async (call: Call, place: Target, commandName: string): Promise<IsolatedEnvironment> => {
  const [ref] = call.words
  if (ref !== undefined) return findEnvironment(place.context, place.codebase, ref, cwdOf(call))
  const own = await currentEnvironment(call, place)
  if (own !== undefined) return own
  throw new AppError(
    'not-found',
    call.chat === undefined ? 'not inside a Coppice worktree' : 'this conversation has no worktree yet',
    { remedy: remedy`specify one: ${coppice(`${commandName} <name>`)}. Run ${coppice('worktree list')} for a list` },
  )
}

/** The conversation's codebase, if bound and present. */
export const boundCodebase = async (
  { context }: Pick<Workplace, 'context'>,
  { conversation }: Pick<ChatCall, 'conversation'>,
): Promise<Codebase | undefined> => {
  const binding = await codebaseBinding(context, conversation)
  return binding.kind === 'known' ? binding.codebase : undefined
}

/** All codebases; in a repository's thread, only that one. */
export const visibleCodebases = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  chat: Pick<ChatCall, 'conversation' | 'reach'> | undefined,
): Promise<Codebase[]> => {
  if (chat === undefined || chat.reach === 'server') return store.codebases.list(host)
  const binding = await codebaseBinding({ store, host }, chat.conversation)
  return binding.kind === 'known' ? [binding.codebase] : []
}

/** A repository's thread must not reveal other repositories on this server. */
export const assertWholeServer = ({ reach }: Pick<ChatCall, 'reach'>, command: string): void => {
  if (reach === 'server') return
  throw new AppError('usage', `${command} isn't available here: this conversation belongs to one repository`, {
    remedy: 'use another chat or a terminal for other repositories',
  })
}

const codebaseOf = async (workplace: Workplace, chat: ChatCall): Promise<Codebase> => {
  const binding = await codebaseBinding(workplace.context, chat.conversation)
  if (binding.kind === 'known') return binding.codebase
  const names = (await visibleCodebases(workplace.context, chat)).map(({ name }) => name)
  const message =
    binding.kind === 'none'
      ? 'this conversation has no repository yet'
      : `this conversation's repository is ${goneBecause(binding)}`
  throw new AppError('not-found', message, {
    remedy:
      names.length === 0
        ? remedy`clone one with ${coppice('clone <url>')}`
        : remedy`choose one with ${coppice('codebase <name>')} (registered: ${names.join(', ')}), or clone one with ${coppice('clone <url>')}`,
  })
}
