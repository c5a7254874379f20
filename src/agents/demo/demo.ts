import { lstat, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock, Ids } from '../../domain/clock.ts'
import { AppError, isAppError, toAppError } from '../../domain/errors.ts'
import { unlessMissing } from '../../domain/missing.ts'
import type { Sha } from '../../domain/names.ts'
import type { ProcessIdentity } from '../../domain/process-identity.ts'
import { readAdminDir, readHead, readToken, readWorktreeLink } from '../../git/admin-dir.ts'
import { cloneAt } from '../../git/borrowing-clone.ts'
import { commitFile, readTrailers, settleIndexEntry } from '../../git/commit-file.ts'
import { discoverRepository } from '../../git/discover.ts'
import type { Git, Tree } from '../../git/door.ts'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import type { Agent, AgentRequest, AgentResult } from '../agent.ts'
import {
  commitMessage,
  DEMO_FILE,
  demoAuthor,
  type DemoNote,
  doneReply,
  MESSAGE_TRAILER,
  SESSION_TRAILER,
  withNote,
  readOnlyReply,
} from './text.ts'
import { coppice, remedy } from '../../domain/remedy.ts'

export type DemoAgentOptions = {
  readonly git: Git
  readonly clock: Clock
  /** For sessions. */
  readonly ids: Ids
  /** The demo runs in our own process. */
  readonly self: ProcessIdentity
}

/** Built in, no account needed: one small real commit per message shows a newcomer the whole workflow. */
export const createDemoAgent = (options: DemoAgentOptions): Agent => ({
  name: 'demo',
  enforcesReadOnly: true,
  runsNoCommands: true,
  availability: async () => ({ state: 'ready', version: undefined }),
  run: async (request) => {
    const session = request.session ?? options.ids()
    request.emit({ type: 'session', id: session })
    await request.onStart(options.self)
    try {
      const text = await work(options, request, session)
      request.emit({ type: 'text', text })
      return { outcome: 'done', text }
    } catch (error) {
      return failedResult(error)
    }
  },
})

const work = async (options: DemoAgentOptions, request: AgentRequest, session: string): Promise<string> => {
  const { directory, prompt, rules, signal } = request
  if (signal.aborted) throw new AppError('cancelled', 'the demo was cancelled')
  if (rules.access === 'read') return readOnlyReply(prompt, await branchAt(directory))
  const tree = await environmentAt(options.git, directory, signal)
  await requireRegularFile(tree)
  const message = request.environment['COPPICE_MESSAGE']
  const note = { prompt, session, message, number: 1 }
  const { rerun, commit, branch, number } = await commitNote(options, tree, note, signal)
  // Idempotent: a crash may have come between the commit and these two steps.
  const staged = await settleIndexEntry(options.git, tree, commit, DEMO_FILE, { signal })
  await settleFile(tree, { ...note, number })
  request.emit({ type: 'tool', line: `committed ${DEMO_FILE} to ${branch} as ${commit.slice(0, 7)}` })
  if (!staged) request.emit({ type: 'tool', line: `left the staged version of ${DEMO_FILE} unchanged` })
  const inFleet = request.environment['COPPICE_AGENT'] !== undefined
  return doneReply({ ...note, number, branch, commit, rerun, inFleet })
}

type CommittedNote = { rerun: boolean; commit: Sha; branch: string; number: number }

/** How many commits a rerun searches for its own; a crash leaves far fewer after it. */
const LOOK_BACK = 200

const commitNote = async (
  { git, clock }: DemoAgentOptions,
  tree: Tree,
  note: DemoNote,
  signal: AbortSignal,
): Promise<CommittedNote> => {
  let number = 1
  const unless = async (head: Sha): Promise<Sha | undefined> => {
    const search = { head, limit: LOOK_BACK }
    const ofSession = (await readTrailers(git, tree, { ...search, word: SESSION_TRAILER }, { signal })).filter(
      ({ values }) => values.includes(note.session),
    )
    const ofMessage =
      note.message === undefined ? [] : await readTrailers(git, tree, { ...search, word: MESSAGE_TRAILER }, { signal })
    const mine = ofMessage.find(({ values }) => note.message !== undefined && values.includes(note.message))
    const index = ofSession.findIndex(({ commit }) => commit === mine?.commit)
    number = index === -1 ? ofSession.length + 1 : ofSession.length - index
    return mine?.commit
  }
  const committed = await commitFile(
    git,
    tree,
    {
      path: DEMO_FILE,
      next: (before) => Buffer.from(withNote(before?.toString('utf8'), { ...note, number })),
      message: commitMessage(note),
      by: { ...demoAuthor, at: clock() },
      unless,
    },
    { signal },
  )
  return { rerun: !committed.made, commit: committed.commit, branch: committed.branch, number }
}

/** Adds the note to the file on disk, so uncommitted changes survive. */
const settleFile = async (tree: Tree, note: DemoNote): Promise<void> => {
  const path = join(tree.path, DEMO_FILE)
  const before = await readUntrustedText(path)
  const after = withNote(before, note)
  if (after === before) return
  const temporary = `${path}.coppice-new`
  // A leftover from a crash, or somebody's link: never write through it.
  await rm(temporary, { force: true })
  try {
    await writeFile(temporary, after, { flag: 'wx' })
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
}

/** A link could lead out of the environment, and a directory is somebody's work. */
const requireRegularFile = async (tree: Tree): Promise<void> => {
  const found = await lstat(join(tree.path, DEMO_FILE)).catch(() => undefined)
  if (found === undefined || found.isFile()) return
  throw new AppError('unsupported', `${DEMO_FILE} isn't a regular file here`, {
    remedy: `move ${DEMO_FILE} out of the way`,
  })
}

/** Only our own clones, and linked worktrees that git has a record of: never commit to the shared checkout. */
const environmentAt = async (git: Git, directory: string, signal: AbortSignal): Promise<Tree> => {
  const path = await realpath(directory)
  const clone = await ownCloneAt(path)
  if (clone !== undefined) return clone
  const { commonDir } = await discoverRepository(git, path, { signal })
  const gitDir = await readWorktreeLink(path)
  const record = gitDir === undefined ? undefined : await readAdminDir(gitDir)
  if (gitDir === undefined || dirname(gitDir) !== join(commonDir, 'worktrees') || record?.worktreePath !== path) {
    throw new AppError('unsupported', `${directory} isn't an isolated worktree, so nothing was committed there`, {
      remedy: remedy`create one: ${coppice('worktree create <branch>')}`,
    })
  }
  return { commonDir, gitDir, path }
}

const ownCloneAt = async (path: string): Promise<Tree | undefined> => {
  const tree = cloneAt(path)
  const isDirectory = (await unlessMissing(lstat(tree.gitDir)))?.isDirectory() === true
  return isDirectory && (await readToken(tree.gitDir)) !== undefined ? tree : undefined
}

const branchAt = async (directory: string): Promise<string | undefined> => {
  const clone = await ownCloneAt(directory).catch(() => undefined)
  const gitDir = clone?.gitDir ?? (await readWorktreeLink(directory).catch(() => undefined))
  const head = gitDir === undefined ? undefined : await readHead(gitDir)
  return head !== undefined && 'branch' in head ? head.branch : undefined
}

const failedResult = (error: unknown): AgentResult => {
  if (isAppError(error, 'cancelled')) return { outcome: 'cancelled', text: '' }
  const fault = toAppError(error)
  return {
    outcome: 'failed',
    text: '',
    problem: `The demo agent couldn't commit: ${fault.message}.`,
    remedy: fault.remedy ?? remedy`see ${coppice('status')} for the path of the worktree, and send the message again`,
  }
}
