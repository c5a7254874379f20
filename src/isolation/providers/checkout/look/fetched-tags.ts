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
 * Git doesn't record which tags came from a remote and which were made here. Releases are often tagged on commits that
 * no branch has, so we record the tags a submodule came with; every other tag counts as not pushed.
 */

export const tagsFile = 'coppice-tags'

const fileIn = (gitDir: string): string => join(gitDir, tagsFile)

/** For a newly fetched submodule. Also records its HEAD, which may be on no branch or tag there. */
export const rememberTags = async ({ git }: Pick<IsolationContext, 'git'>, gitDir: string): Promise<void> => {
  const tags = await listRefs(git, { commonDir: toRepoPath(gitDir) }, ['refs/tags'])
  const head = await readHead(gitDir)
  const known = [...tags.map(({ sha }) => sha), ...(head !== undefined && 'sha' in head ? [head.sha] : [])]
  if (known.length > 0) replaceFileSync(fileIn(gitDir), `${known.join('\n')}\n`)
}

export type RemoteTags = {
  /** The full names of the tags that the remote has. */
  readonly names: ReadonlySet<string>
  /** Their targets, and what was already known to be on the remote. */
  readonly known: readonly Sha[]
}

/**
 * Asks the submodule's remote for its tags and records them. Without credentials, since an agent can write the file
 * that has the address. Undefined when it doesn't answer.
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

/** Empty if someone else fetched it: then no tag is known to be on a remote. */
export const fetchedTags = async (gitDir: string): Promise<Sha[]> =>
  ((await readUntrustedText(fileIn(gitDir), { maxBytes: maxFileBytes })) ?? '').split('\n').filter(isSha)

/** 100,000 tags. */
const maxFileBytes = 8 * 1024 * 1024
