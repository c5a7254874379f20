import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import { AppError, isAppError } from '../domain/errors.ts'
import { isTrusted } from '../domain/trust.ts'
import { parseWorkRef, workLabel } from '../domain/work.ts'
import { readAdminDir, readWorktreeLink } from '../git/admin-dir.ts'
import { discoverRepository } from '../git/discover.ts'
import { codebaseAround } from '../isolation/codebases/codebases.ts'
import type { IsolationContext } from '../isolation/context.ts'
import { findEnvironment } from '../isolation/find.ts'
import { followed } from '../isolation/moved.ts'
import { gitWorktrees } from '../isolation/provider-of.ts'
import { type Call, type ChatCall, command, cwdOf } from './command.ts'
import { resolveTargetForWrite } from './target.ts'
import { environmentJson } from './views/json.ts'
import { ifTrusted } from './views/notices.ts'
import { shellWord } from '../domain/text/shell-word.ts'
import { lastCommand, code, tilde, type View } from './views/view.ts'
import { coppice, remedy, shell } from '../domain/remedy.ts'

export type AdoptResult = { readonly environment: IsolatedEnvironment; readonly codebase: string }

const run = (call: Call): Promise<AdoptResult> =>
  call.chat === undefined ? runInShell(call) : runInChat(call, call.chat)

/**
 * A chat names a worktree that git lists for its own repository, by branch, work or path; never the main one. No other
 * path is looked at: the answer would say what exists on the server.
 */
const runInChat = async (call: Call, { conversation }: ChatCall): Promise<AdoptResult> => {
  const { context, environments, codebase } = await resolveTargetForWrite(call)
  const [ref = ''] = call.words
  const path = await listedPath(context, codebase, ref)
  const request = { createdBy: conversation.platform, aliases: [], claim: true } as const
  return { environment: await (await environments()).adopt(codebase, path, request), codebase: codebase.name }
}

const listedPath = async (context: IsolationContext, codebase: Codebase, ref: string): Promise<string> => {
  const listed = await gitWorktrees(context, codebase)
  const found = listed.find(({ path }) => path === ref) ?? listed.find(({ branch }) => branch === ref)
  if (found?.tracked?.as === 'main') {
    throw new AppError(
      'not-adoptable',
      `that is the main working tree of ${codebase.name}, which Coppice doesn't track`,
    )
  }
  if (found !== undefined) return found.path
  const { environments } = context.store
  const work = parseWorkRef(ref)
  const own =
    (await environments.liveByBranch(codebase.id, ref)) ??
    (work === undefined ? undefined : await environments.liveByWork(codebase.id, work))
  if (own?.host === context.host) return own.path
  throw new AppError('not-adoptable', `git lists no worktree ${JSON.stringify(ref)} of ${codebase.name}`, {
    remedy: remedy`run ${coppice('worktree orphans')} for a list`,
  })
}

const runInShell = async (call: Call): Promise<AdoptResult> => {
  const path = await pathOf(call)
  const { context } = await call.open()
  const isKnown = (await context.store.environments.liveByPath(context.host, realpathSync(path))) !== undefined
  if (call.codebase === undefined && !isKnown) await assertLinked(context, path)
  // The worktree determines the repository, whatever the current directory.
  const { environments, codebase } = await resolveTargetForWrite(call, path)
  const environment = await (await environments()).adopt(codebase, path, { createdBy: 'cli', aliases: [], claim: true })
  return { environment, codebase: codebase.name }
}

/** A path, another name of an environment (its branch, ID or work), or a branch that git lists. */
const pathOf = async (call: Call): Promise<string> => {
  const [ref = ''] = call.words
  const path = resolve(cwdOf(call), ref)
  if (existsSync(path)) return path
  const known = await environmentNamed(call, ref)
  if (known !== undefined && existsSync(known.path)) return known.path
  const listed = await listedBranch(call, ref)
  if (listed !== undefined && existsSync(listed)) return listed
  throw new AppError(
    'not-adoptable',
    listed === undefined ? `no worktree found for "${ref}"` : `${listed} doesn't exist`,
    { remedy: remedy`run ${coppice('worktree orphans')} for a list` },
  )
}

const codebaseNamed = async (call: Call): Promise<Codebase | undefined> => {
  const { context } = await call.open()
  return call.codebase === undefined
    ? codebaseAround(context, cwdOf(call))
    : context.store.codebases.byName(context.host, call.codebase)
}

/** Where git has this branch checked out, as `worktree orphans` shows it. */
const listedBranch = async (call: Call, ref: string): Promise<string | undefined> => {
  const { context } = await call.open()
  const codebase = await codebaseNamed(call)
  if (codebase === undefined) return undefined
  return (await gitWorktrees(context, codebase)).find(({ branch }) => branch === ref)?.path
}

const environmentNamed = async (call: Call, ref: string): Promise<IsolatedEnvironment | undefined> => {
  const { context } = await call.open()
  const codebase = await codebaseNamed(call)
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

const untrusted = ({ branch }: IsolatedEnvironment, view: View): string[] => [
  `  Coppice couldn't verify where its commits come from, so agents there ignore its settings.`,
  `  ${ifTrusted(branch, view)}`,
]

const link = ({ branch }: IsolatedEnvironment, view: View): string =>
  lastCommand(view.commandText(`worktree link ${shellWord(branch)}`), view)

export const worktreeAdopt = command<AdoptResult>({
  run,
  toText: ({ environment }, view) =>
    [
      `${view.paint('green', 'Adopted')} ${code(environment.branch, view)} for ${workLabel(environment.work)}`,
      `  Coppice won't delete ${tilde(environment.path, view)}`,
      ...(isTrusted(environment.trust) ? [] : untrusted(environment, view)),
      ...(view.chat === true ? [`  to work there: ${link(environment, view)}`] : []),
    ].join('\n'),
  toJson: ({ environment, codebase }) => environmentJson(environment, () => codebase),
})
