import { lstat, readlink, realpath, symlink } from 'node:fs/promises'
import { dirname, isAbsolute, join, normalize } from 'node:path'
import { hasCode } from '../../../../domain/error-code.ts'
import type { Codebase } from '../../../../domain/environment.ts'
import { AppError, isAppError } from '../../../../domain/errors.ts'
import { toRepoPath } from '../../../../domain/names.ts'
import type { NotCopied, Notice } from '../../../../domain/notice.ts'
import type { IsolationContext } from '../../../context.ts'
import { isInside } from '../../../paths.ts'
import type { Provisioning } from './provisioning.ts'
import { putFile } from './put-file.ts'
import { type Match, matchingFiles } from './matching-files.ts'
import { isMissing, unlessMissing } from '../../../../domain/missing.ts'
import { copyUntrusted } from '../../../../process/files/read-untrusted.ts'
import { fileSource } from './shared-area.ts'
import { trackedFiles } from '../../../../git/tracked-files.ts'

/**
 * Copies `worktree.copy` into the tree: only untracked and ignored files, since git provides the others. A file that
 * can't be copied gets a notice; its source stays where it is.
 */
export const copyFiles = async (
  context: Pick<IsolationContext, 'git' | 'home'>,
  provisioning: Provisioning,
): Promise<{ copied: number; notices: Notice[] }> => {
  const { codebase, config, tree, signal } = provisioning
  const source = fileSource(context, codebase)
  if (config.copy.length === 0 || (await isAbsentArea(codebase, source))) return { copied: 0, notices: [] }
  const notices: Notice[] = []
  const matches = await matchingFiles(source, config.copy, (directory, error) => {
    if (directory === '') throw error
    notices.push({ kind: 'not-copied', path: directory, why: { kind: 'unreadable-directory', source } })
  })
  if (matches.length === 0) return { copied: 0, notices }
  const tracked = await trackedFiles(context.git, tree, signal)
  const trackedThere = await trackedInSource(context, codebase, signal)
  let copied = 0
  for (const match of matches) {
    if (signal?.aborted === true) throw new AppError('cancelled', 'copying files was cancelled')
    if (tracked.has(match.path) || trackedThere.has(match.path)) continue
    const outcome = await copyOne(provisioning, source, match)
    if (outcome === 'copied') copied += 1
    else if (outcome !== 'exists') notices.push({ kind: 'not-copied', path: match.path, why: outcome })
  }
  return { copied, notices }
}

/** A bare repository's area may be empty; a missing checkout is a fault. */
const isAbsentArea = async (codebase: Codebase, source: string): Promise<boolean> =>
  codebase.checkoutPath === undefined && (await unlessMissing(lstat(source))) === undefined

const trackedInSource = async (
  context: Pick<IsolationContext, 'git'>,
  codebase: Codebase,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> => {
  if (codebase.checkoutPath === undefined) return new Set()
  const commonDir = toRepoPath(codebase.repoPath)
  return trackedFiles(context.git, { commonDir, gitDir: codebase.repoPath, path: codebase.checkoutPath }, signal)
}

type CopyOutcome = 'copied' | 'exists' | NotCopied

const copyOne = async (provisioning: Provisioning, source: string, match: Match): Promise<CopyOutcome> => {
  if (!match.exact) return { kind: 'name-not-utf8' }
  if (match.kind === 'other') return { kind: 'no-file' }
  const from = join(source, match.path)
  if (match.kind === 'link' && !(await staysInside(source, match.path))) return { kind: 'leads-out' }
  const make = async (temporary: string): Promise<void> => {
    if (match.kind === 'link') await symlink(await readlink(from), temporary)
    // Shares blocks if the file system can, and keeps the mode.
    else await copyUntrusted(from, temporary)
  }
  const { tree, environment } = provisioning
  try {
    const laid = await putFile({ tree, environmentId: environment.id, relativePath: match.path, like: source, make })
    if (laid.outcome === 'blocked') return { kind: 'not-real', at: laid.at }
    return laid.outcome === 'laid' ? 'copied' : 'exists'
  } catch (error) {
    if (isForbidden(error)) return { kind: 'unreadable' }
    if (isAppError(error, 'unusable-file')) return { kind: 'not-regular' }
    if (isMissing(error)) return { kind: 'gone' }
    throw error
  }
}

/** An absolute target would lead every environment into the checkout, which agents must never touch. */
const staysInside = async (source: string, path: string): Promise<boolean> => {
  const target = await readlink(join(source, path))
  if (isAbsolute(target)) return false
  const way = normalize(join(dirname(path), target))
  if (way === '..' || way.startsWith('../') || way.split('/').some((part) => part.toLowerCase() === '.git'))
    return false
  const real = await unlessMissing(realpath(join(source, path)))
  return real === undefined || isInside(await realpath(source), real)
}

const isForbidden = (error: unknown): boolean => hasCode(error, 'EACCES') || hasCode(error, 'EPERM')
