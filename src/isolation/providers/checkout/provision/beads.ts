import { lstat, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Codebase } from '../../../../domain/environment.ts'
import type { Notice } from '../../../../domain/notice.ts'
import type { Provisioning } from './provisioning.ts'
import { putFile } from './put-file.ts'
import { unlessMissing } from '../../../../domain/missing.ts'
import { readUntrustedText } from '../../../../process/files/read-untrusted.ts'
import { replaceFileSync } from '../../../../process/files/replace-file.ts'
import { realParent } from './real-parent.ts'

export const redirectPath = '.beads/redirect'

/** Makes all environments share the canonical checkout's issue store. */
export const writeBeadsRedirect = async ({ codebase, environment, tree }: Provisioning): Promise<Notice[]> => {
  const content = await redirectContent(codebase)
  if (content === undefined) return []
  const make = (temporary: string) => writeFile(temporary, content, { flag: 'wx' })
  const laid = await putFile({
    tree,
    environmentId: environment.id,
    relativePath: redirectPath,
    like: undefined,
    make,
  })
  if (laid.outcome === 'blocked') return [{ kind: 'no-issue-store', path: redirectPath, at: laid.at }]
  if (laid.outcome === 'exists' && !(await isOurRedirect(codebase, tree.path))) {
    return [{ kind: 'other-issue-store', path: redirectPath, store: content.trim() }]
  }
  return []
}

export const isOurRedirect = async (codebase: Codebase, treePath: string): Promise<boolean> => {
  const content = await redirectContent(codebase)
  if (content === undefined || (await realParent(treePath, redirectPath)).kind !== 'real') return false
  const path = join(treePath, redirectPath)
  const found = await unlessMissing(lstat(path))
  return found?.isFile() === true && (await readUntrustedText(path)) === content
}

/** The shared store moved with the canonical checkout. Leaves a redirect that someone changed. */
export const moveBeadsRedirect = async (
  treePath: string,
  from: string | undefined,
  to: string | undefined,
): Promise<void> => {
  if (from === undefined || to === undefined) return
  if ((await unlessMissing(realParent(treePath, redirectPath)))?.kind !== 'real') return
  const path = join(treePath, redirectPath)
  if ((await unlessMissing(lstat(path)))?.isFile() !== true) return
  if ((await readUntrustedText(path)) !== `${join(from, '.beads')}\n`) return
  replaceFileSync(path, `${join(to, '.beads')}\n`)
}

const redirectContent = async (codebase: Codebase): Promise<string | undefined> => {
  if (codebase.checkoutPath === undefined) return undefined
  const store = join(codebase.checkoutPath, '.beads')
  const found = await unlessMissing(stat(store))
  if (found?.isDirectory() !== true) return undefined
  // beads follows only one redirect, so ours must name the final target.
  const further = (await readUntrustedText(join(store, 'redirect'), { followLink: true }))?.trim() ?? ''
  return `${further === '' ? store : resolve(codebase.checkoutPath, further)}\n`
}
