import type { Codebase, IsolatedEnvironment } from '../../domain/environment.ts'
import { AppError } from '../../domain/errors.ts'
import { type EnvironmentId, toEnvironmentId } from '../../domain/names.ts'
import { sameWork, type Work, workLabel } from '../../domain/work.ts'
import type { ArchonConversation } from '../../store/archon/archon.ts'
import { activityOf } from './activity.ts'
import { type Candidate, candidatesOf, placeOf, rowIdsOf } from './candidates.ts'
import type { CodebasesTaken } from './codebases.ts'
import { eachRow, type Import } from './each-row.ts'
import { inferWork } from './infer-work.ts'
import { worktreeAt } from './worktree-at.ts'

export type EnvironmentTaken = {
  readonly id: EnvironmentId
  readonly path: string
  readonly codebase: Codebase
  readonly work: Work
  readonly branch: string
}

/** The imported environment an Archon conversation worked in; undefined if none. */
export type EnvironmentOf = (conversation: ArchonConversation) => EnvironmentTaken | undefined

/** An existing worktree and its work. */
type Found = { candidate: Candidate; codebase: Codebase; real: string; branch: string; work: Work }

export const takeOverEnvironments = async (run: Import, codebases: CodebasesTaken): Promise<EnvironmentOf> => {
  const found: Found[] = []
  const candidates = candidatesOf(run.archon)
  await eachRow(run, 'environment', candidates, nameOf, async (candidate) => {
    found.push(await lookAt(candidate, codebases))
  })
  const taken = new Map<Candidate, EnvironmentTaken>()
  await eachRow(
    run,
    'environment',
    found,
    ({ candidate }) => nameOf(candidate),
    async (one) => {
      const same = [...taken.values()].find(({ path }) => path === one.real)
      if (same !== undefined) return repeated(run, taken, one, same)
      taken.set(one.candidate, await takeOver(run, one, [...taken.values()], found))
    },
  )
  const byRow = new Map([...taken].map(([{ row }, environment]) => [row?.id, environment]))
  const byPath = new Map([...taken].filter(([{ row }]) => !row).map(([c, e]) => [keyOf(c.codebaseId, c.path), e]))
  const rowIds = rowIdsOf(run.archon.environments)
  return (conversation) => {
    const place = placeOf(conversation, rowIds)
    if (place === undefined) return undefined
    return 'row' in place ? byRow.get(place.row) : byPath.get(keyOf(conversation.codebaseId, place.path))
  }
}

const nameOf = ({ name }: Candidate): string => name
const keyOf = (codebaseId: string | undefined, path: string | undefined): string => `${codebaseId ?? ''}\0${path ?? ''}`

const lookAt = async (candidate: Candidate, codebases: CodebasesTaken): Promise<Found> => {
  const { row, status, provider } = candidate
  if (status !== undefined && status !== 'active') throw no(`its status in Archon is ${status}`)
  if (provider !== undefined && provider !== 'worktree')
    throw no(`its provider is ${provider}; only worktrees can be imported`)
  const codebase = codebases.get(candidate.codebaseId ?? '')
  if (codebase === undefined) throw no("its repository wasn't imported")
  const { real, branch } = await worktreeAt(codebase, candidate.path)
  const conversationIds = candidate.conversations.flatMap(({ conversationId }) => conversationId ?? [])
  const { workflowType, workflowId } = row ?? { workflowType: undefined, workflowId: undefined }
  const work = inferWork({ workflowType, workflowId, path: real, branch, conversationIds })
  return { candidate, codebase, real, branch, work }
}

/** Two rows about one worktree are one environment. A path that an old conversation names isn't a row. */
const repeated = (run: Import, taken: Map<Candidate, EnvironmentTaken>, one: Found, same: EnvironmentTaken): void => {
  if (one.codebase.id === same.codebase.id) taken.set(one.candidate, same)
  if (one.candidate.row === undefined) return
  run.record.leftOut('environment', one.candidate.name, `its worktree is already imported for ${workLabel(same.work)}`)
}

const takeOver = async (
  run: Import,
  one: Found,
  others: readonly EnvironmentTaken[],
  found: readonly Found[],
): Promise<EnvironmentTaken> => {
  const { codebase, real: path, branch, work } = one
  const { store, host, clock } = run.context
  const known = await store.environments.liveByPath(host, path)
  if (known !== undefined && known.codebaseId !== codebase.id) throw no('it belongs to another repository here')
  if (known !== undefined) {
    run.record.known('environment')
    return { id: known.id, path, codebase, work: known.work, branch: known.branch }
  }
  const holder = await holderOf(run, one, others)
  if (holder !== undefined) throw no(holder)
  const id = run.dryRun ? toEnvironmentId(`planned ${path}`) : (await adopt(run, one, found)).id
  const at = Math.max(0, ...one.candidate.conversations.map((conversation) => activityOf(conversation, clock())))
  // Adopting isn't activity: a worktree unused for a month isn't fresh because we imported it.
  if (!run.dryRun && at > 0) await store.environments.update(id, { lastActivityAt: at })
  run.record.taken('environment')
  run.record.environment({ codebase: codebase.name, work, branch, path })
  return { id, path, codebase, work, branch }
}

/** Who already has this work or branch, here or earlier in this import. */
const holderOf = async (
  { context: { store } }: Import,
  { codebase, work, branch }: Found,
  others: readonly EnvironmentTaken[],
): Promise<string | undefined> => {
  const own = others.filter((other) => other.codebase.id === codebase.id)
  const sameWorks = (await store.environments.liveByWork(codebase.id, work)) ?? own.find((o) => sameWork(o.work, work))
  if (sameWorks !== undefined) return `${workLabel(work)} already has a worktree: ${sameWorks.path}`
  const onBranch = (await store.environments.liveByBranch(codebase.id, branch)) ?? own.find((o) => o.branch === branch)
  return onBranch === undefined ? undefined : `the branch ${branch} already has a worktree: ${onBranch.path}`
}

/** A linked work with its own worktree keeps that. */
const adopt = ({ environments }: Import, one: Found, found: readonly Found[]): Promise<IsolatedEnvironment> => {
  const aliases = one.candidate.aliases.filter(
    (alias) => !found.some(({ codebase, work }) => codebase.id === one.codebase.id && sameWork(work, alias)),
  )
  return environments.adopt(one.codebase, one.real, { work: one.work, createdBy: 'archon', aliases })
}

const no = (why: string): AppError => new AppError('not-adoptable', why)
