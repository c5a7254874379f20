import { AppError } from '../../domain/errors.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { aliasesFor } from '../../domain/trust.ts'
import type { Tree } from '../../domain/tree.ts'
import { sameWork, type Work, workLabel } from '../../domain/work.ts'
import { readToken } from '../../git/admin-dir.ts'
import type { ArchonConversation } from '../../store/archon/archon.ts'
import { type Age, ageOf } from './activity.ts'
import { type Candidate, candidatesOf, placeOf, rowIdsOf } from './candidates.ts'
import { type Identities, inferWorks } from './infer-work.ts'
import { ownable, type Ownable } from './ownable.ts'
import { mapPath } from './path-map.ts'
import type { PlannedCodebase, PlannedCodebases } from './plan-codebases.ts'
import { eachRow, type Planning } from './planning.ts'
import { reasonOf } from './report.ts'
import { worktreeAt, type WorktreeFound } from './worktree-at.ts'

/** A worktree that is, or will be, an environment here. */
export type PlannedEnvironment = {
  readonly codebase: PlannedCodebase
  readonly path: string
  readonly branch: string
  readonly work: Work
  /** Other works that will find it. */
  readonly aliases: readonly Work[]
  readonly age: Age
  /** Git's record, if it and the directory name each other by another machine's paths. */
  readonly relink: string | undefined
  /** Its path in Archon, if that is a path of another machine. */
  readonly elsewhere: string | undefined
  /** Its row here, if it has one. */
  readonly existing: IsolatedEnvironment | undefined
  readonly ownable: Ownable | undefined
  /** It is taken over as one of Coppice's own. */
  readonly own: Ownable | undefined
}

/** The environment an Archon conversation worked in; undefined if none is imported. */
export type EnvironmentOf = (conversation: ArchonConversation) => PlannedEnvironment | undefined

export type PlannedEnvironments = {
  readonly list: readonly PlannedEnvironment[]
  readonly environmentOf: EnvironmentOf
}

/** All that Archon says about one existing worktree. */
type Group = {
  readonly codebase: PlannedCodebase
  readonly found: WorktreeFound
  readonly candidates: Candidate[]
  identities: Identities
}

export const planEnvironments = async (
  planning: Planning,
  codebases: PlannedCodebases,
): Promise<PlannedEnvironments> => {
  const groups = await groupsOf(planning, codebases)
  const list: PlannedEnvironment[] = []
  const byCandidate = new Map<Candidate, PlannedEnvironment>()
  const kind = 'environment' as const
  await eachRow(planning, kind, groups, nameOf, async (group) => {
    const planned = await plan(planning, group, groups, list).catch((error: unknown) => {
      const rows = group.candidates.slice(1).filter(({ row }) => row !== undefined)
      planning.leftOut.push(...rows.map(({ name }) => ({ kind, name, reason: reasonOf(error) })))
      throw error
    })
    list.push(planned)
    for (const candidate of group.candidates) byCandidate.set(candidate, planned)
    reportLostNames(planning, group, planned)
  })
  const byRow = new Map([...byCandidate].map(([{ row }, environment]) => [row?.id, environment]))
  const named = [...byCandidate].filter(([{ row }]) => row === undefined)
  const byPath = new Map(named.map(([{ codebaseId, path }, environment]) => [keyOf(codebaseId, path), environment]))
  const rowIds = rowIdsOf(planning.archon.environments)
  const environmentOf: EnvironmentOf = (conversation) => {
    const place = placeOf(conversation, rowIds)
    if (place === undefined) return undefined
    return 'row' in place ? byRow.get(place.row) : byPath.get(keyOf(conversation.codebaseId, place.path))
  }
  return { list, environmentOf }
}

const nameOf = ({ candidates }: Group): string => candidates[0]?.name ?? ''
const keyOf = (codebaseId: string | undefined, path: string | undefined): string => `${codebaseId ?? ''}\0${path ?? ''}`

/** Rows about the same worktree are one environment, whatever their paths look like. */
const groupsOf = async (planning: Planning, codebases: PlannedCodebases): Promise<Group[]> => {
  const groups: Group[] = []
  const candidates = candidatesOf(planning.archon)
  await eachRow(
    planning,
    'environment',
    candidates,
    ({ name }) => name,
    async (candidate) => {
      const { codebase, found } = await lookAt(planning, candidate, codebases)
      const same = groups.find((group) => group.found.real === found.real && group.codebase === codebase)
      if (same !== undefined) same.candidates.push(candidate)
      else groups.push({ codebase, found, candidates: [candidate], identities: none })
    },
  )
  for (const group of groups) group.identities = identitiesOf(group)
  return groups
}

const none: Identities = { work: { type: 'task', id: '-' }, aliases: [] }

const lookAt = async (
  { map }: Planning,
  { status, provider, codebaseId, path }: Candidate,
  codebases: PlannedCodebases,
): Promise<Pick<Group, 'codebase' | 'found'>> => {
  if (status !== undefined && status !== 'active') throw no(`its status in Archon is ${status}`)
  if (provider !== undefined && provider !== 'worktree')
    throw no(`its provider is ${provider}; only worktrees can be imported`)
  const codebase = codebases.byArchonId.get(codebaseId ?? '')
  if (codebase === undefined) throw no("its repository wasn't imported")
  return { codebase, found: await worktreeAt(codebase.codebase, path, map) }
}

const identitiesOf = ({ candidates, found }: Group): Identities => {
  const conversations = candidates.flatMap((candidate) => candidate.conversations)
  return inferWorks({
    rows: candidates.flatMap(({ row }) => row ?? []),
    path: found.real,
    branch: found.branch,
    conversations: conversations.flatMap(({ platform, conversationId: id }) =>
      id === undefined ? [] : [{ platform, id }],
    ),
  })
}

const plan = async (
  planning: Planning,
  group: Group,
  groups: readonly Group[],
  earlier: readonly PlannedEnvironment[],
): Promise<PlannedEnvironment> => {
  const { codebase, found, candidates, identities } = group
  const { store, host } = planning.context
  const { real: path } = found
  const existing = await store.environments.liveByPath(host, path)
  if (existing !== undefined && existing.codebaseId !== codebase.codebase.id) {
    throw no('it belongs to another repository here')
  }
  const work = existing?.work ?? identities.work
  const holder = existing === undefined ? await holderOf(planning, group, earlier) : undefined
  if (holder !== undefined) throw no(holder)
  const adminDir = found.relink ? found.adminDir : undefined
  const { tree, branch, trust } = await planning.environments.examine(codebase.codebase, path, {
    work,
    ...(adminDir !== undefined && { adminDir }),
  })
  const conversations = candidates.flatMap((candidate) => candidate.conversations)
  const linked = candidates.flatMap(({ metadata }) => metadata.linked)
  const wanted = aliasesFor(existing?.trust ?? trust, work, [...identities.aliases, ...linked])
  const rows = candidates.flatMap(({ row }) => row ?? [])
  const isOurs = existing?.owned === true || (existing !== undefined && existing.createdBy !== createdBy)
  const mayOwn =
    isOurs || (await wasClaimed(tree, existing)) ? undefined : await ownable(planning, { tree, branch, candidates })
  return {
    codebase,
    path,
    branch,
    work,
    aliases: isOurs ? [] : await freeAliases(planning, group, groups, earlier, { work, wanted }),
    age: await ageOf(planning.context, { tree, branch }, rows, conversations),
    relink: adminDir,
    elsewhere: candidates.map((one) => one.path ?? '').find((given) => mapPath(planning.map, given) !== given),
    existing,
    ownable: mayOwn,
    own: planning.own ? mayOwn : undefined,
  }
}

export const createdBy = 'archon'

/** It was Coppice's own, as its token says, until a person adopted it. */
const wasClaimed = async ({ gitDir }: Tree, existing: IsolatedEnvironment | undefined): Promise<boolean> =>
  existing !== undefined && (await readToken(gitDir)) === existing.id

/** Who already has this work or branch, here or earlier in this import. */
const holderOf = async (
  { context: { store } }: Planning,
  { codebase: { codebase }, identities: { work }, found: { branch } }: Group,
  others: readonly PlannedEnvironment[],
): Promise<string | undefined> => {
  const own = others.filter((other) => other.codebase.codebase.id === codebase.id)
  const sameWorks = (await store.environments.liveByWork(codebase.id, work)) ?? own.find((o) => sameWork(o.work, work))
  if (sameWorks !== undefined) return `${workLabel(work)} already has a worktree: ${sameWorks.path}`
  const onBranch = (await store.environments.liveByBranch(codebase.id, branch)) ?? own.find((o) => o.branch === branch)
  return onBranch === undefined ? undefined : `the branch ${branch} already has a worktree: ${onBranch.path}`
}

/** A work with its own worktree keeps that. */
const freeAliases = async (
  { context: { store } }: Planning,
  group: Group,
  groups: readonly Group[],
  earlier: readonly PlannedEnvironment[],
  { work, wanted }: { readonly work: Work; readonly wanted: readonly Work[] },
): Promise<Work[]> => {
  const { codebase } = group.codebase
  const isSame = (other: PlannedCodebase): boolean => other.codebase.id === codebase.id
  const taken = [
    work,
    ...groups.filter((other) => other !== group && isSame(other.codebase)).map(({ identities }) => identities.work),
    ...earlier.filter((other) => isSame(other.codebase)).flatMap(({ aliases }) => aliases),
  ]
  const free: Work[] = []
  for (const alias of wanted) {
    if ([...taken, ...free].some((other) => sameWork(other, alias))) continue
    if ((await store.environments.liveByWork(codebase.id, alias)) === undefined) free.push(alias)
  }
  return free
}

/** Every row is some work's: one whose work finds another worktree, or none, is named. */
const reportLostNames = ({ leftOut }: Planning, { candidates, found }: Group, planned: PlannedEnvironment): void => {
  if (planned.existing !== undefined) return
  for (const { row, name } of candidates) {
    if (row === undefined) continue
    const { work } = inferWorks({ rows: [row], path: found.real, branch: found.branch, conversations: [] })
    if ([planned.work, ...planned.aliases].some((other) => sameWork(other, work))) continue
    const reason = `its worktree is imported for ${workLabel(planned.work)} only: ${workLabel(work)} has another one, or the worktree isn't trusted`
    leftOut.push({ kind: 'environment', name, reason })
  }
}

const no = (why: string): AppError => new AppError('not-adoptable', why)
