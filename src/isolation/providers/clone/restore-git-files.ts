import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bytesBelow } from '../../../domain/text/raw-path.ts'
import type { LeftOut } from '../../../domain/removal/restore-point.ts'
import type { Tree } from '../../../domain/tree.ts'
import { readHead } from '../../../git/admin-dir.ts'
import { readRefFile } from '../../../git/ref-file.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import { makeDirectorySync } from '../../../process/files/make-directory.ts'
import { replaceFileSync } from '../../../process/files/replace-file.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { copyTree } from '../checkout/restore-point/archive.ts'

/** HEAD is at the restored branch; objects are added; the token and submodules are restored separately. */
const notReplaced = new Set(['HEAD', 'coppice', 'objects', 'modules'])

/** Restores refs, reflogs, configuration, hooks, index and half-done operations, and the objects that only it had. */
export const restoreGitFiles = async (saved: string, tree: Tree, leftOut: LeftOut[]): Promise<void> => {
  const head = await readHead(tree.gitDir)
  const ref = head !== undefined && 'branch' in head ? `refs/heads/${head.branch}` : undefined
  const sha = ref === undefined ? undefined : await readRefFile(tree.commonDir, ref)
  // Names stay bytes, as they were saved.
  for (const name of await readdir(saved, { encoding: 'latin1' })) {
    if (notReplaced.has(name) || name.endsWith('.lock')) continue
    await deleteTree(bytesBelow(tree.gitDir, name))
    await copyTree(saved, tree.gitDir, name, leftOut)
  }
  await addObjects(join(saved, 'objects'), join(tree.gitDir, 'objects'), leftOut)
  // Its branch may have a new name.
  if (ref !== undefined && sha !== undefined && (await readRefFile(tree.commonDir, ref)) === undefined) {
    makeDirectorySync(dirname(join(tree.commonDir, ref)))
    replaceFileSync(join(tree.commonDir, ref), `${sha}\n`)
  }
}

/** An object's name is its hash: an existing one is the same. What it borrows is where the clone says now. */
const addObjects = async (from: string, to: string, leftOut: LeftOut[]): Promise<void> => {
  const directories = (await unlessMissing(readdir(from, { withFileTypes: true }))) ?? []
  for (const { name: directory } of directories.filter((entry) => entry.isDirectory() && isForObjects(entry.name))) {
    makeDirectorySync(join(to, directory))
    const there = new Set(await readdir(join(to, directory), { encoding: 'latin1' }))
    for (const name of await readdir(join(from, directory), { encoding: 'latin1' })) {
      if (!there.has(name)) await copyTree(from, to, `${directory}/${name}`, leftOut)
    }
  }
}

const isForObjects = (name: string): boolean => /^(?:[0-9a-f]{2}|pack)$/.test(name)
