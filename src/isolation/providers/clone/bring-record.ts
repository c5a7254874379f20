import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { LeftOut } from '../../../domain/removal/restore-point.ts'
import type { Tree } from '../../../domain/tree.ts'
import { readHead } from '../../../git/admin-dir.ts'
import { readRefFile } from '../../../git/ref-file.ts'
import { deleteTree } from '../../../process/files/delete-tree.ts'
import { makeDirectorySync } from '../../../process/files/make-directory.ts'
import { replaceFileSync } from '../../../process/files/replace-file.ts'
import { unlessMissing } from '../../../domain/missing.ts'
import { copyTree } from '../checkout/restore-point/archive.ts'
import { dirname } from 'node:path'

/** HEAD is where the restored branch is; objects are added; the mark and submodules have their own way back. */
const notReplaced = new Set(['HEAD', 'coppice', 'objects', 'modules', 'shallow'])

/** Refs, reflogs, configuration, hooks, index and what was half done, as they were; and the objects that only it had. */
export const bringRecord = async (saved: string, tree: Tree, leftOut: LeftOut[]): Promise<void> => {
  const head = await readHead(tree.gitDir)
  const ref = head !== undefined && 'branch' in head ? `refs/heads/${head.branch}` : undefined
  const sha = ref === undefined ? undefined : await readRefFile(tree.commonDir, ref)
  for (const name of await readdir(saved)) {
    if (notReplaced.has(name) || name.endsWith('.lock')) continue
    await deleteTree(join(tree.gitDir, name))
    await copyTree(saved, tree.gitDir, name, leftOut)
  }
  await addObjects(join(saved, 'objects'), join(tree.gitDir, 'objects'), leftOut)
  // Its branch may have another name now.
  if (ref !== undefined && sha !== undefined && (await readRefFile(tree.commonDir, ref)) === undefined) {
    makeDirectorySync(dirname(join(tree.commonDir, ref)))
    replaceFileSync(join(tree.commonDir, ref), `${sha}\n`)
  }
}

/** An object's name is its content: one that is there already is the same. What it borrows is where the clone says now. */
const addObjects = async (from: string, to: string, leftOut: LeftOut[]): Promise<void> => {
  for (const directory of (await unlessMissing(readdir(from))) ?? []) {
    if (directory === 'info') continue
    makeDirectorySync(join(to, directory))
    const there = new Set(await readdir(join(to, directory)))
    for (const name of await readdir(join(from, directory))) {
      if (!there.has(name)) await copyTree(from, to, `${directory}/${name}`, leftOut)
    }
  }
}
