import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Codebase } from '../../domain/environment.ts'
import { type Sha, isSha } from '../../domain/names.ts'
import { bytesBelow, rawBytes, toRaw } from '../../domain/raw-path.ts'
import { halfDone, readHead } from '../../git/admin-dir.ts'
import type { Tree } from '../../git/door.ts'
import { showFile } from '../../git/objects.ts'
import { resolveCommit } from '../../git/refs.ts'
import { readStatus } from '../../git/status.ts'
import type { JournalEntry } from '../../store/store.ts'
import { baseAndConfig } from '../base-and-config.ts'
import type { IsolationContext } from '../context.ts'
import type { Dirt } from '../dirt.ts'
import { isOurAddition } from './additions.ts'
import { unlessMissing } from './missing.ts'
import { writeRestorePoint } from './restore-point.ts'

/**
 * A creation that a crash interrupted left a directory that nobody was told of; but somebody may have found it and
 * worked in it. What is there beyond the checkout goes into a restore point before the directory goes.
 * Answers whether there was anything.
 */
export const saveStrangersWork = async (
  context: IsolationContext,
  codebase: Codebase,
  entry: JournalEntry,
  tree: Tree,
  start: string,
): Promise<boolean> => {
  const environment =
    entry.environmentId === undefined ? undefined : await context.store.environments.get(entry.environmentId)
  if (environment === undefined || !isSha(start)) return false
  const dirt = await beyondCheckout(context, codebase, tree, start)
  if (dirt === undefined) return false
  await writeRestorePoint(context, { codebase, environment, tree, dirt, fate: { tip: dirt.headSha }, id: entry.id })
  return true
}

/** Against a fresh index of the start commit: the tree's own may be half written. */
const beyondCheckout = async (
  context: IsolationContext,
  codebase: Codebase,
  tree: Tree,
  start: Sha,
): Promise<Dirt | undefined> => {
  const directory = mkdtempSync(join(tmpdir(), 'coppice-undo-'))
  try {
    const indexFile = join(directory, 'index')
    await context.git.run({ operation: 'read-tree', at: tree, args: ['read-tree', start], indexFile, locks: true })
    const status = await readStatus(context.git, tree, { indexFile })
    const { config } = await baseAndConfig(context, codebase)
    const changed: string[] = []
    for (const { bytes, path } of status.changed) {
      if (!(await isPartOfCheckout(context, tree, start, toRaw(bytes), path))) changed.push(toRaw(bytes))
    }
    const untracked: string[] = []
    for (const { bytes, path } of status.untracked) {
      if (!(await isOurAddition(context, codebase, tree, config, path))) untracked.push(toRaw(bytes))
    }
    const head = await resolveCommit(context.git, tree, 'HEAD')
    const half = halfDone(tree.gitDir)
    if (changed.length + untracked.length + half.length === 0 && (head === undefined || head === start))
      return undefined
    keepIndexReadable(tree, indexFile)
    return {
      headSha: head ?? start,
      headBranch: await branchOf(tree),
      changed,
      gitlinks: [],
      untracked,
      additions: [],
      hidden: [],
      halfDone: half,
      submodules: [],
      ignored: status.ignored.map(({ bytes }) => toRaw(bytes)),
      problems: [],
      fingerprint: '',
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const branchOf = async (tree: Tree): Promise<string | undefined> => {
  const head = await readHead(tree.gitDir)
  return head !== undefined && 'branch' in head ? head.branch : undefined
}

/** Killed before git wrote an index: the restore point gets the one of the start commit. */
const keepIndexReadable = (tree: Tree, indexFile: string): void => {
  const own = join(tree.gitDir, 'index')
  if (!existsSync(own)) copyFileSync(indexFile, own)
}

/** A file that is not there yet, or that git was writing when it was killed: the beginning of what the commit has. */
const isPartOfCheckout = async (
  context: IsolationContext,
  tree: Tree,
  start: Sha,
  raw: string,
  path: string,
): Promise<boolean> => {
  const handle = await unlessMissing(open(bytesBelow(tree.path, raw), 'r'))
  if (handle === undefined) return true
  try {
    const here = await handle.readFile()
    const there = rawBytes(raw).equals(Buffer.from(path)) ? await showFile(context.git, tree, start, path) : undefined
    return there !== undefined && here.length < there.length && there.subarray(0, here.length).equals(here)
  } finally {
    await handle.close()
  }
}
