import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError } from '../domain/errors.ts'
import type { Notice } from '../domain/notice.ts'
import type { RestorePoint } from '../domain/removal/restore-point.ts'
import { workLabel } from '../domain/work.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { findRestorePoint, restorablePoints } from '../isolation/find.ts'
import { workForRestore } from '../isolation/work-for-restore.ts'
import { type Call, command, isSet, cwdOf } from './command.ts'
import { recogniseFullDisk } from '../isolation/disk-full.ts'
import { currentEnvironment, resolveTarget, type Target, resolveTargetForWrite } from './target.ts'
import { environmentJson } from './views/json.ts'
import { moveTo } from './move-conversation.ts'
import { usage } from './grammar/usage.ts'
import { shellPath } from './views/shell.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { lastCommand, ago, code, fittedTable, type View } from './views/view.ts'
import { counted } from '../domain/text/words.ts'
import { coppice, remedy } from '../domain/remedy.ts'

export type RestoreResult =
  | {
      readonly kind: 'restored'
      readonly environment: IsolatedEnvironment
      readonly codebase: string
      /** The calling conversation now works there. */
      readonly moved: boolean
    }
  | { readonly kind: 'list'; readonly points: readonly RestorePoint[]; readonly codebase: string }

const run = async (call: Call): Promise<RestoreResult> => {
  if (isSet(call.values, 'list')) return list(call)
  const place = await resolveTargetForWrite(call)
  const { context, codebase } = place
  const { environment, notices } = await restoreWorktree(place, call.words[0], cwdOf(call))
  for (const notice of notices) call.notice(notice)
  const moved = call.chat !== undefined && (await currentEnvironment(call, place)) === undefined
  if (call.chat !== undefined && moved) await moveTo(context, call.chat, environment, 'end')
  return { kind: 'restored', environment, codebase: codebase.name, moved }
}

/** For chat, command line and API alike. `ref`: an ID, branch, path or work (default: the latest). */
export const restoreWorktree = async (
  { context, environments, codebase }: Pick<Target, 'context' | 'environments' | 'codebase'>,
  ref: string | undefined,
  cwd: string,
): Promise<{ readonly environment: IsolatedEnvironment; readonly notices: readonly Notice[] }> => {
  const point = await findRestorePoint(context, codebase, ref, cwd)
  await assertNotBack(context, codebase, point)
  const own = await environments()
  const lookAgain = () => findRestorePoint(context, codebase, ref ?? point.contents.environment.branch, cwd)
  return recogniseFullDisk(context.worktreesBase, () => own.restore(point, lookAgain))
}

const list = async (call: Call): Promise<RestoreResult> => {
  if (call.words.length > 0) throw usage("--list can't be combined with a <ref>", 'pass one or the other')
  const { context, codebase } = await resolveTarget(call)
  return { kind: 'list', points: await restorablePoints(context, codebase), codebase: codebase.name }
}

const assertNotBack = async (
  context: Pick<IsolationContext, 'store'>,
  codebase: Codebase,
  point: RestorePoint,
): Promise<void> => {
  const { work, branch } = point.contents.environment
  const known = await workForRestore(context.store, codebase.id, point.contents.environment)
  if (!('live' in known)) return
  const { live } = known
  throw new AppError(
    'restore-failed',
    `can't restore ${branch}: ${workLabel(work)} already has a worktree, ${live.branch} at ${live.path}`,
    { remedy: remedy`remove that one first: ${coppice(`worktree remove ${shellWord(live.branch)}`)}` },
  )
}

const day = 24 * 60 * 60 * 1000

const toText = (result: RestoreResult, view: View): string => {
  if (result.kind === 'restored') {
    const { branch, work, path } = result.environment
    return [
      `${view.paint('green', 'Restored')} ${code(branch, view)} for ${workLabel(work)}`,
      ...(view.chat === true ? [] : [`  cd ${shellPath(path, view)}`]),
      ...(result.moved ? ['This conversation now works there.'] : []),
    ].join('\n')
  }
  const { points, codebase } = result
  if (points.length === 0) return `${codebase} has nothing to restore.`
  const rows = points.map(({ id, createdAt, expiresAt, contents: { environment, dirty } }) => [
    { text: environment.branch, style: 'bold' as const },
    { text: workLabel(environment.work) },
    { text: ago(createdAt, view.now) },
    { text: counted(Math.max(0, Math.ceil((expiresAt - view.now) / day)), 'day') },
    { text: dirty ? 'yes' : 'no' },
    { text: id.slice(0, 8), style: 'dim' as const },
  ])
  const headings = ['BRANCH', 'FOR', 'REMOVED', 'KEPT FOR', 'UNCOMMITTED', 'ID']
  return [
    fittedTable(headings, rows, view, { drop: ['FOR'], cut: ['BRANCH'] }).text,
    `Restore one: ${lastCommand(view.commandText('worktree restore <branch or id>'), view)}`,
  ].join('\n')
}

const toJson = (result: RestoreResult): unknown => {
  if (result.kind === 'restored') return environmentJson(result.environment, () => result.codebase)
  return result.points.map(({ id, createdAt, expiresAt, contents }) => ({
    restorePoint: id,
    environment: environmentJson(contents.environment, () => result.codebase),
    removedAt: new Date(createdAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    dirty: contents.dirty,
  }))
}

export const worktreeRestore = command<RestoreResult>({ run, toText, toJson })
