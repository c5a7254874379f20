import { lstat, mkdir, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../../../domain/errors.ts'
import type { Codebase } from '../../../../domain/environment.ts'
import type { Notice } from '../../../../domain/notice.ts'
import type { IsolationContext } from '../../../context.ts'
import type { Provisioning } from './provisioning.ts'
import { putFile } from './put-file.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { realParent } from './real-parent.ts'
import { linkRoot } from './shared-area.ts'
import { trackedFiles } from '../../../../git/tracked-files.ts'

/** Links `worktree.link` into the area that all environments of the codebase share. */
export const makeLinks = async (
  context: Pick<IsolationContext, 'git' | 'home'>,
  provisioning: Provisioning,
): Promise<{ linked: number; notices: Notice[] }> => {
  const { codebase, config, environment, tree, signal } = provisioning
  if (config.link.length === 0) return { linked: 0, notices: [] }
  const tracked = await trackedFiles(context.git, tree, signal)
  const notices: Notice[] = []
  let linked = 0
  for (const entry of config.link) {
    if (isTracked(tracked, entry)) {
      notices.push({ kind: 'not-linked', path: entry, why: { kind: 'tracked' } })
      continue
    }
    const target = await sharedTarget(context, codebase, entry)
    const make = (temporary: string) => symlink(target, temporary)
    const laid = await putFile({ tree, environmentId: environment.id, relativePath: entry, like: undefined, make })
    if (laid.outcome === 'laid') linked += 1
    else if (laid.outcome === 'blocked') {
      notices.push({ kind: 'not-linked', path: entry, why: { kind: 'not-real', at: laid.at } })
    } else if (!(await isOurLink(context, codebase, tree.path, entry))) {
      notices.push({ kind: 'not-linked', path: entry, why: { kind: 'exists' } })
    }
  }
  return { linked, notices }
}

/** Whether `<tree>/<entry>` is the link that `makeLinks` makes, still with our target. */
export const isOurLink = async (
  context: Pick<IsolationContext, 'home'>,
  codebase: Codebase,
  treePath: string,
  entry: string,
): Promise<boolean> => {
  if ((await realParent(treePath, entry)).kind !== 'real') return false
  const path = join(treePath, entry)
  const found = await unlessMissing(lstat(path))
  return found?.isSymbolicLink() === true && (await readlink(path)) === join(linkRoot(context, codebase), entry)
}

/** Agents write to this area, so its paths are checked as carefully as a tree's. */
const sharedTarget = async (
  context: Pick<IsolationContext, 'home'>,
  codebase: Codebase,
  entry: string,
): Promise<string> => {
  const root = linkRoot(context, codebase)
  await mkdir(root, { recursive: true, mode: 0o700 })
  const parent = await realParent(root, entry, { like: undefined })
  if (parent.kind !== 'real') {
    throw new AppError('path-outside-root', `${join(root, entry)} would go through a link or a file`, {
      remedy: `check ${root}, and make it a regular directory again`,
    })
  }
  const target = join(root, entry)
  if ((await unlessMissing(lstat(target))) === undefined) await mkdir(target)
  return target
}

/** The entry itself, something in it, or a file where its directory would be. */
const isTracked = (tracked: ReadonlySet<string>, entry: string): boolean => {
  if (tracked.has(entry)) return true
  for (const path of tracked) if (path.startsWith(`${entry}/`)) return true
  return false
}
