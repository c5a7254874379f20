import { type Stats, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../domain/errors.ts'
import { bytesBelow, shownPath } from '../domain/raw-path.ts'
import type { Git, GitRequest, GitResult, Tree } from './door.ts'

/** A status of 30,000 files takes 0.1 s: what has taken this long may be waiting for something. */
const patienceMs = 1000

/**
 * A question for which git reads the `.gitattributes` and `.gitignore` files of a tree. It opens them whatever they are,
 * and to open a FIFO is to wait for its writer: for ever, with the repository's lock held. So git that is slow to answer
 * is ended when such a thing is found, and the path is named; git that answers in time costs nothing more.
 */
export const askAboutFiles = async (
  git: Git,
  request: GitRequest & { readonly at: Tree },
  patience = patienceMs,
): Promise<GitResult> => {
  const blocked = new AbortController()
  let pipe: string | undefined
  let answered = false
  let timer: NodeJS.Timeout | undefined
  const lookAfter = (ms: number): void => {
    timer = setTimeout(() => void look(ms), ms)
  }
  const look = async (waited: number): Promise<void> => {
    pipe = await findPipe(request.at, () => answered)
    if (pipe !== undefined) blocked.abort()
    // It may have come after the look; and a large tree on a cold disk is not to be walked every second.
    else if (!answered) lookAfter(waited * 2)
  }
  lookAfter(patience)
  const { signal } = request
  try {
    return await git.run({ ...request, signal: signal ? AbortSignal.any([signal, blocked.signal]) : blocked.signal })
  } catch (cause) {
    if (pipe === undefined || signal?.aborted === true) throw cause
    throw new AppError('unsupported', `${pipe} is not a file: git ${request.operation} would wait for it for ever`, {
      cause,
      remedy: `remove ${pipe} and try again`,
    })
  } finally {
    answered = true
    clearTimeout(timer)
  }
}

const readByGit: ReadonlySet<string> = new Set(['.gitattributes', '.gitignore', '.gitmodules'])

/** The first thing under one of those names that has no end, or no beginning. Never throws: it only explains a wait. */
const findPipe = async (tree: Tree, isOver: () => boolean): Promise<string | undefined> => {
  for (const name of ['info/exclude', 'info/attributes']) {
    const path = join(tree.commonDir, name)
    if (isPipe(Buffer.from(path))) return path
  }
  let seen = 0
  const visit = async (path: string): Promise<string | undefined> => {
    if ((seen += 1) % 128 === 0) await nextTurn()
    if (isOver()) return undefined
    for (const entry of entriesOf(tree, path)) {
      const inner = path === '' ? entry.name : `${path}/${entry.name}`
      if (readByGit.has(entry.name) && !entry.isFile() && isPipe(bytesBelow(tree.path, inner))) return shownPath(inner)
      const found = entry.isDirectory() && entry.name !== '.git' ? await visit(inner) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }
  return visit('')
}

const entriesOf = (tree: Tree, path: string) => {
  try {
    const at = path === '' ? tree.path : bytesBelow(tree.path, path)
    return readdirSync(at, { withFileTypes: true, encoding: 'latin1' })
  } catch {
    return []
  }
}

const isPipe = (path: Buffer): boolean => {
  try {
    const found: Stats = statSync(path)
    return found.isFIFO() || found.isCharacterDevice()
  } catch {
    return false
  }
}
