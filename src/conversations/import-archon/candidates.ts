import { toWork, type Work } from '../../domain/work.ts'
import type { ArchonConversation, ArchonEnvironment, ArchonInstallation } from '../../store/archon/archon.ts'

/** A worktree known to Archon: an environment row, or named by an old conversation. */
export type Candidate = {
  readonly row: ArchonEnvironment | undefined
  readonly name: string
  readonly codebaseId: string | undefined
  /** As Archon knows it. */
  readonly path: string | undefined
  readonly provider: string | undefined
  readonly status: string | undefined
  readonly conversations: readonly ArchonConversation[]
  readonly metadata: Metadata
}

export type Metadata = {
  /** Issues and PRs that Archon linked to the worktree. */
  readonly linked: readonly Work[]
  /** Somebody else had made the worktree. */
  readonly adopted: boolean
}

/** Environment rows first: they have more data about the same worktree. */
export const candidatesOf = ({ environments = [], conversations }: ArchonInstallation): Candidate[] => {
  const rows = environments.map((row): Candidate => {
    const users = conversations.filter(({ isolationEnvId }) => row.id !== undefined && isolationEnvId === row.id)
    const { path, codebaseId, provider, status } = row
    const name = row.branch ?? path ?? row.id ?? 'a row without a name'
    const metadata = readMetadata(row.metadata)
    return { row, name, codebaseId, path, provider, status, conversations: users, metadata }
  })
  return [...rows, ...namedByConversations(conversations, rowIdsOf(environments))]
}

export const rowIdsOf = (environments: readonly ArchonEnvironment[] = []): ReadonlySet<string> =>
  new Set(environments.flatMap(({ id }) => id ?? []))

/** Where a conversation works: the row it names, or a path in one of three legacy columns. */
export const placeOf = (
  { isolationEnvId, isolationEnvIdLegacy, worktreePath }: ArchonConversation,
  rowIds: ReadonlySet<string>,
): { readonly row: string } | { readonly path: string } | undefined => {
  if (isolationEnvId !== undefined && rowIds.has(isolationEnvId)) return { row: isolationEnvId }
  const path = [isolationEnvId, isolationEnvIdLegacy, worktreePath].find((text) => text?.startsWith('/') === true)
  const text = path ?? isolationEnvId ?? isolationEnvIdLegacy ?? worktreePath
  return text === undefined || text === '' ? undefined : { path: text }
}

const namedByConversations = (
  conversations: readonly ArchonConversation[],
  rowIds: ReadonlySet<string>,
): Candidate[] => {
  const found = new Map<string, Candidate & { conversations: ArchonConversation[] }>()
  for (const conversation of conversations) {
    const place = placeOf(conversation, rowIds)
    if (place === undefined || 'row' in place) continue
    const { path } = place
    const { codebaseId, isolationProvider: provider } = conversation
    const key = `${codebaseId ?? ''}\0${path}`
    const known = found.get(key)
    if (known !== undefined) known.conversations.push(conversation)
    else {
      const none = { row: undefined, status: undefined, metadata: readMetadata(undefined) }
      found.set(key, { ...none, name: path, codebaseId, path, provider, conversations: [conversation] })
    }
  }
  return [...found.values()]
}

const readMetadata = (text: string | undefined): Metadata => {
  const entries = entriesOf(text)
  const linked = entries
    .flatMap(([key, list]) => {
      const type = key === 'related_issues' ? 'issue' : key === 'related_prs' ? 'pr' : undefined
      if (type === undefined || !Array.isArray(list)) return []
      return list.filter(isNumber).map((number) => toWork(type, String(number)))
    })
    .slice(0, 100)
  return { linked, adopted: entries.some(([key, value]) => key === 'adopted' && value === true) }
}

const entriesOf = (text: string | undefined): [string, unknown][] => {
  try {
    const data: unknown = JSON.parse(text ?? '{}')
    return typeof data === 'object' && data !== null ? Object.entries(data) : []
  } catch {
    return []
  }
}

const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value < 1e10
