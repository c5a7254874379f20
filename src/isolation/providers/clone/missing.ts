import type { Sha } from '../../../domain/names.ts'
import type { Repo } from '../../../domain/tree.ts'
import { catFiles } from '../../../git/blobs.ts'
import type { Git } from '../../../git/door.ts'
import { readTree, writeObject, writeTree } from '../../../git/objects.ts'
import type { Ref } from '../../../git/refs.ts'
import { repoOf } from '../../codebases/repo-of.ts'
import type { CheckoutKind } from '../checkout/kind.ts'
import { madeOn, othersRefOf, pinsOf, tipRefOf } from './refs.ts'

/** Its directory is missing, so only what was last imported is available. */
export const heldForMissing: CheckoutKind['heldForMissing'] = async (context, codebase, { id }) => {
  const repo = repoOf(codebase)
  const pins = await pinsOf(context, repo, id)
  if (pins.length === 0) return undefined
  const shaOf = (ref: string): Sha | undefined => pins.find(({ name }) => name === ref)?.sha
  return {
    tip: shaOf(tipRefOf(id)),
    commits: [...new Set(pins.map(({ sha }) => sha))],
    packedRefs: await readNames(context.git, repo, shaOf(othersRefOf(id))),
    madeOn: madeOn(id, pins),
  }
}

const namesFile = 'refs'

/** The tree of the commit that holds what a clone's refs lead to: their names, for when the clone is gone. */
export const writeNames = async (git: Git, repo: Repo, refs: readonly Ref[]): Promise<Sha> => {
  const content = refs.map(({ sha, name }) => `${sha} ${name}\n`).join('')
  const sha = await writeObject(git, repo, 'blob', Buffer.from(content))
  return writeTree(git, repo, [{ name: namesFile, type: 'blob', sha }])
}

const readNames = async (git: Git, repo: Repo, commit: Sha | undefined): Promise<string> => {
  const entries = commit === undefined ? [] : await readTree(git, repo, commit)
  const file = entries.find(({ path }) => path === namesFile)
  let names = ''
  if (file !== undefined) await catFiles(git, repo, [file.sha], (_sha, content) => void (names = content.toString()))
  return names
}
