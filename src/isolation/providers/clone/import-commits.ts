import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Codebase, IsolatedEnvironment } from '../../../domain/environment.ts'
import { AppError, isAppError, toAppError } from '../../../domain/errors.ts'
import { unlessMissingSync } from '../../../domain/missing.ts'
import type { EnvironmentId, Sha } from '../../../domain/names.ts'
import { writeLine } from '../../../domain/text/shell-word.ts'
import type { Tree } from '../../../domain/tree.ts'
import { borrowsFrom, copyObjectsToLender } from '../../../git/borrowing-clone.ts'
import { isAncestor } from '../../../git/history.ts'
import { commitTree } from '../../../git/objects.ts'
import { readRefFile } from '../../../git/ref-file.ts'
import { readRef, type RefCommand, resolveCommit, updateRefs } from '../../../git/refs.ts'
import { readUntrustedText } from '../../../process/files/read-untrusted.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { IsolationContext } from '../../context.ts'
import { makePrivateDirectory, writeDurably } from '../../durable.ts'
import { author } from '../checkout/restore-point/named-by-record.ts'
import { recordStamp } from '../checkout/restore-point/record-files.ts'
import { importLargeFiles } from './import-large-files.ts'
import { writeNames } from './missing.ts'
import { presenceOf } from './presence.ts'
import { leftRefOf, othersRefOf, pinsOf, stampFile, tipRefOf } from './refs.ts'
import { assertFewRefs, namedTips, refsOfClone } from './tips.ts'
import { remedy, shell } from '../../../domain/remedy.ts'

/** Imports the clones' commits into the codebase's repository. Returns why it failed for some. */
export const importTips = async (
  context: IsolationContext,
  codebase: Codebase,
  environments: readonly IsolatedEnvironment[],
): Promise<ReadonlyMap<EnvironmentId, string>> => {
  const problems = new Map<EnvironmentId, string>()
  for (const environment of environments) {
    // On another host, or without its directory, only earlier imports are available.
    if (environment.host !== context.host || environment.status !== 'active') continue
    try {
      const presence = await presenceOf(codebase, environment)
      if (presence.state === 'missing') continue
      if (presence.state !== 'present') throw new AppError('not-found', presence.detail)
      const { tree } = presence
      await bringTip(context, codebase, environment, tree)
      await bringOthers(context, codebase, environment, tree).catch((error: unknown) => {
        // Its branch is imported, and that is what the caller needs.
        context.log.warn('refs of a clone could not be brought', { path: tree.path, error: toAppError(error).message })
      })
    } catch (error) {
      problems.set(environment.id, toAppError(error).message)
    }
  }
  return problems
}

const bringTip = async (
  context: Pick<IsolationContext, 'store' | 'git' | 'ids'>,
  codebase: Codebase,
  { id, branch }: IsolatedEnvironment,
  tree: Tree,
): Promise<void> => {
  await assertFewRefs(tree)
  const name = `refs/heads/${branch}`
  const tip = (await readRefFile(tree.commonDir, name)) ?? (await readRef(context.git, tree, name))?.sha
  const brought = await readRefFile(repoOf(codebase).commonDir, tipRefOf(id))
  if (tip === undefined || tip === brought) return
  await bring(context, codebase, tree, [tip])
  const isLeft = brought !== undefined && !(await isAncestor(context.git, repoOf(codebase), brought, tip))
  const left: RefCommand[] = isLeft ? [{ update: leftRefOf(id, brought), to: brought, from: undefined }] : []
  await pin(context, codebase, id, { ref: tipRefOf(id), to: tip, from: brought }, left)
}

/**
 * Its other refs may lead to commits that it borrows, such as a branch that it fetched after the repository had: then
 * it depends on these too.
 */
const bringOthers = async (
  context: IsolationContext,
  codebase: Codebase,
  { id, branch }: IsolatedEnvironment,
  tree: Tree,
): Promise<void> => {
  const stamp = await stampOf(tree)
  const file = stampFile(context.home, id)
  if ((await readUntrustedText(file)) === stamp) return
  const { git } = context
  const repo = repoOf(codebase)
  const head = await resolveCommit(git, tree, 'HEAD')
  const { commits, refs } = await namedTips(context, codebase, tree)
  const tips = new Set([...commits, ...(head === undefined ? [] : [head])])
  for (const { sha } of await pinsOf(context, repo, id)) tips.delete(sha)
  const known = await readRefFile(repo.commonDir, othersRefOf(id))
  // One that is out of date would bring back names that are gone.
  if (tips.size > 0 || known !== undefined) {
    if (tips.size > 0) await bring(context, codebase, tree, [...tips])
    const parents = [...tips, ...(known === undefined ? [] : [known])]
    const message = `What the refs of the clone of ${branch} lead to\n`
    const names = await writeNames(git, repo, refs)
    const to = await commitTree(git, repo, { tree: names, parents, message, by: author(context) })
    await pin(context, codebase, id, { ref: othersRefOf(id), to, from: known })
  }
  if ((await context.store.environments.get(id))?.status !== 'active') return
  await makePrivateDirectory(dirname(file))
  await writeDurably(file, stamp)
}

/** Changes with every ref of the clone. Starts no program. */
const stampOf = async ({ gitDir }: Tree): Promise<string> => {
  const files = ['HEAD', 'packed-refs', 'FETCH_HEAD'].map((name) => {
    const found = unlessMissingSync(() => lstatSync(join(gitDir, name), { bigint: true }))
    return found === undefined ? '-' : `${found.ino} ${found.size} ${found.mtimeNs}`
  })
  const refs = await recordStamp(join(gitDir, 'refs'))
  return createHash('sha256')
    .update([...files, refs].join('\n'))
    .digest('hex')
}

type Pin = { readonly ref: string; readonly to: Sha; readonly from: Sha | undefined }

/** Only while the clone exists: a faster removal deletes the pins, and they must not reappear. */
const pin = async (
  context: Pick<IsolationContext, 'store' | 'git'>,
  codebase: Codebase,
  id: EnvironmentId,
  { ref, to, from }: Pin,
  also: readonly RefCommand[] = [],
): Promise<void> => {
  const repo = repoOf(codebase)
  if (from === undefined && (await context.store.environments.get(id))?.status !== 'active') return
  const command: RefCommand = from === undefined ? { create: ref, to } : { update: ref, to, from }
  const reason = 'coppice: brought from the clone'
  const kept = await updateRefs(context.git, repo, [...also, command], { reason }).catch((error: unknown) => {
    if (isAppError(error, 'busy')) return { ok: false, stderr: error.message } as const
    throw error
  })
  // Another process imported it at the same moment.
  if (kept.ok || (await readRef(context.git, repo, ref))?.sha === to) return
  throw new AppError('busy', `${ref} could not be updated: ${kept.stderr.trim()}`)
}

/** Imports all that the restore point's commit reaches, and refs' non-commit targets, such as a tag on a file. */
export const importCommit = async (
  context: Pick<IsolationContext, 'git' | 'ids'>,
  codebase: Codebase,
  tree: Tree,
  commit: Sha,
): Promise<void> => {
  const refs = await refsOfClone(context.git, tree)
  const others = refs.filter(({ committerDate }) => committerDate === undefined).map(({ sha }) => sha)
  await bring(context, codebase, tree, [commit, ...others])
  await importLargeFiles(tree, repoOf(codebase))
}

const bring = async (
  context: Pick<IsolationContext, 'git' | 'ids'>,
  codebase: Codebase,
  tree: Tree,
  objects: readonly Sha[],
): Promise<void> => {
  const repo = repoOf(codebase)
  // What it borrows elsewhere would be left out, and the repository would have only half.
  if (!borrowsFrom(tree, repo)) {
    const file = join(tree.gitDir, 'objects/info/alternates')
    throw new AppError('unusable-file', `${file} was changed`, {
      remedy: remedy`write it again: ${shell(writeLine(file, join(repo.commonDir, 'objects')))}`,
    })
  }
  // Git renames the pack from where it writes it, which works only within one file system; the home may be on another.
  // Concurrent imports write the same pack, so each uses its own name.
  const tempPrefix = join(tree.gitDir, 'objects', `coppice-${context.ids()}`)
  await copyObjectsToLender(context.git, tree, repo, objects, { tempPrefix })
}
