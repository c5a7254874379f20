import { join } from 'node:path'
import { isSha, type Sha, toRepoPath } from '../domain/names.ts'
import { listRefs } from '../git/refs.ts'
import { readUntrustedText } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'
import type { IsolationContext } from './context.ts'

/*
 * Git does not say which tags came from a remote and which somebody made here. Releases are often tagged on commits that
 * no branch has, so the tags that a submodule came with are written down, and every other tag counts as not pushed.
 */

const fileIn = (gitDir: string): string => join(gitDir, 'coppice-tags')

/** Of a submodule that was fetched just now. */
export const rememberTags = async ({ git }: Pick<IsolationContext, 'git'>, gitDir: string): Promise<void> => {
  const tags = await listRefs(git, { commonDir: toRepoPath(gitDir) }, ['refs/tags'])
  if (tags.length > 0) replaceFileSync(fileIn(gitDir), `${tags.map(({ sha }) => sha).join('\n')}\n`)
}

/** None where somebody else fetched it: then no tag is known to be on a remote. */
export const fetchedTags = async (gitDir: string): Promise<Sha[]> =>
  ((await readUntrustedText(fileIn(gitDir), { maxBytes: maxFileBytes })) ?? '').split('\n').filter(isSha)

/** 100,000 tags. */
const maxFileBytes = 8 * 1024 * 1024
