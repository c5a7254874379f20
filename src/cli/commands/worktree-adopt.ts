import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError, isAppError } from '../../domain/errors.ts'
import { isTrusted } from '../../domain/trust.ts'
import { workLabel } from '../../domain/work.ts'
import { readAdminDir, readWorktreeLink } from '../../git/admin-dir.ts'
import { discoverRepository } from '../../git/discover.ts'
import { codebaseAround } from '../../isolation/codebases/codebases.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import { findEnvironment } from '../../isolation/find.ts'
import { followed } from '../../isolation/moved.ts'
import { type Call, command, cwdOf } from '../../commands/command.ts'
import { resolveTargetForWrite } from '../../commands/target.ts'
import { environmentJson } from '../../commands/views/json.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { tilde } from '../../commands/views/view.ts'
import { remedy, shell } from '../../domain/remedy.ts'

export type AdoptResult = { readonly environment: IsolatedEnvironment; readonly codebase: string }

const run = async (call: Call): Promise<AdoptResult> => {
  const path = await pathOf(call)
  const { context } = await call.open()
  const isKnown = (await context.store.environments.liveByPath(context.host, realpathSync(path))) !== undefined
  if (call.codebase === undefined && !isKnown) await assertLinked(context, path)
  // The worktree determines the repository, whatever the current directory.
  const { environments, codebase } = await resolveTargetForWrite(call, path)
  const environment = await (await environments()).adopt(codebase, path, { createdBy: 'cli', aliases: [], claim: true })
  return { environment, codebase: codebase.name }
}

/** A path, or another name of an environment: its branch, ID or work. */
const pathOf = async (call: Call): Promise<string> => {
  const [ref = ''] = call.words
  const path = resolve(cwdOf(call), ref)
  if (existsSync(path)) return path
  const known = await environmentNamed(call, ref)
  if (known !== undefined && existsSync(known.path)) return known.path
  throw new AppError('not-adoptable', `no worktree found for "${ref}"`, {
    remedy: remedy`run ${shell('git worktree list')} to see them`,
  })
}

const environmentNamed = async (call: Call, ref: string): Promise<IsolatedEnvironment | undefined> => {
  const { context } = await call.open()
  const codebase =
    call.codebase === undefined
      ? await codebaseAround(context, cwdOf(call))
      : await context.store.codebases.byName(context.host, call.codebase)
  if (codebase === undefined) return undefined
  const found = await findEnvironment(context, codebase, ref, cwdOf(call)).catch((error: unknown) => {
    if (isAppError(error, 'not-found')) return undefined
    throw error
  })
  return found && (await followed(context, codebase, found)).environment
}

/** Before registering the repository: a refusal must leave no trace. */
const assertLinked = async (context: Pick<IsolationContext, 'git'>, path: string): Promise<void> => {
  const adminDir = await readWorktreeLink(realpathSync(path))
  const record = adminDir === undefined ? undefined : await readAdminDir(adminDir)
  if (record === undefined) {
    const { checkoutPath } = await discoverRepository(context.git, path)
    const isMain = checkoutPath === realpathSync(path)
    throw new AppError(
      'not-adoptable',
      isMain
        ? `${path} is the repository's main working tree, which Coppice doesn't track`
        : `${path} is not a linked worktree`,
      { remedy: remedy`run ${shell(`git -C ${shellWord(path)} worktree list`)} for a list` },
    )
  }
  if (record.head === undefined || !('branch' in record.head)) {
    throw new AppError('not-adoptable', `${path} has no branch checked out`, {
      remedy: remedy`check one out first: ${shell(`git -C ${shellWord(path)} switch -c <branch>`)}`,
    })
  }
}

export const worktreeAdopt = command<AdoptResult>({
  run,
  toText: ({ environment }, view) =>
    [
      `${view.paint('green', 'Adopted')} ${view.paint('bold', environment.branch)} for ${workLabel(environment.work)}`,
      `  Coppice won't delete ${tilde(environment.path, view)}`,
      ...(isTrusted(environment.trust)
        ? []
        : [
            `  Coppice couldn't verify where its commits come from, so agents there ignore its settings`,
            `  if you trust it: ${view.commandText(`worktree trust ${shellWord(environment.branch)}`)}`,
          ]),
    ].join('\n'),
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
