import { join } from 'node:path'
import { isSha, type Sha, toRepoPath } from '../../../../domain/names.ts'
import { isAppError } from '../../../../domain/errors.ts'
import { readHead } from '../../../../git/admin-dir.ts'
import { listRefs } from '../../../../git/refs.ts'
import { askRemoteRefs } from '../../../../git/remote-refs.ts'
import { readUntrustedText } from '../../../../process/files/read-untrusted.ts'
import { replaceFileSync } from '../../../../process/files/replace-file.ts'
import type { IsolationContext } from '../../../context.ts'

/*
 * Git does not say which tags came from a remote and which somebody made here. Releases are often tagged on commits that
 * no branch has, so the tags that a submodule came with are written down, and every other tag counts as not pushed.
 */

export const tagsFile = 'coppice-tags'

const fileIn = (gitDir: string): string => join(gitDir, tagsFile)

/** Of a submodule that was fetched just now. Its HEAD, too: it may be a commit that no branch or tag there has. */
export const rememberTags = async ({ git }: Pick<IsolationContext, 'git'>, gitDir: string): Promise<void> => {
  const tags = await listRefs(git, { commonDir: toRepoPath(gitDir) }, ['refs/tags'])
  const head = await readHead(gitDir)
  const known = [...tags.map(({ sha }) => sha), ...(head !== undefined && 'sha' in head ? [head.sha] : [])]
  if (known.length > 0) replaceFileSync(fileIn(gitDir), `${known.join('\n')}\n`)
}

export type RemoteTags = {
  /** The full names of the tags that the remote has. */
  readonly names: ReadonlySet<string>
  /** What they lead to, and what was known to be on the remote before. */
  readonly known: readonly Sha[]
}

/**
 * Asks the submodule's remote which tags it has, and writes that down. Without credentials: the address is in a file that
 * an agent can write. Undefined when it does not answer.
 */
export const askForTags = async (
  { git }: Pick<IsolationContext, 'git'>,
  gitDir: string,
  remote: string | undefined,
): Promise<RemoteTags | undefined> => {
  if (remote === undefined) return undefined
  try {
    const options = { only: ['refs/tags/*'], anonymous: true }
    const tags = await askRemoteRefs(git, { commonDir: toRepoPath(gitDir) }, remote, options)
    const known = [...new Set([...(await fetchedTags(gitDir)), ...tags.values()])]
    replaceFileSync(fileIn(gitDir), `${known.join('\n')}\n`)
    return { names: new Set(tags.keys()), known }
  } catch (error) {
    if (isAppError(error)) return undefined
    throw error
  }
}

/** None where somebody else fetched it: then no tag is known to be on a remote. */
export const fetchedTags = async (gitDir: string): Promise<Sha[]> =>
  ((await readUntrustedText(fileIn(gitDir), { maxBytes: maxFileBytes })) ?? '').split('\n').filter(isSha)

/** 100,000 tags. */
const maxFileBytes = 8 * 1024 * 1024
