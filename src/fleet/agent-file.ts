import { join } from 'node:path'
import { z } from 'zod'
import { agentNameProblem, type FleetAgent } from '../domain/fleet/agent.ts'
import type { Item } from '../domain/fleet/item.ts'
import { isSettled, itemStates, maxBodyLength, maxTitleLength } from '../domain/fleet/item.ts'
import type { Tree } from '../domain/tree.ts'
import { readUntrustedTextSync } from '../process/files/read-untrusted.ts'
import { replaceFileSync } from '../process/files/replace-file.ts'

/**
 * A copy of a worktree's agent and item, kept in its git directory so that `fleet up` can rebuild both if the database
 * is lost. The agent can write this file, so its content is never trusted.
 */
export type AgentFile = z.infer<typeof schema>

const MOST_BYTES = 1_000_000

/** Without the snapshot: the next import takes a new one. */
const source = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('github'), repository: z.string().max(200), number: z.number().int().min(1) }),
  z.object({ kind: z.literal('beads'), id: z.string().min(1).max(255) }),
])

const schema = z.object({
  version: z.literal(1),
  agent: z.object({
    id: z.string().min(1).max(100),
    name: z.string().refine((name) => agentNameProblem(name) === undefined),
    kind: z.enum(['worker', 'crew']),
    pool: z.string().max(60).optional(),
    program: z.string().min(1).max(100),
    /** Identifies its latest session, which may have outlived the database. */
    spawn: z.string().max(100),
    restarts: z.number().int().min(0).max(1_000),
    createdAt: z.number().int().min(0),
  }),
  item: z
    .object({
      id: z.number().int().min(1).max(1_000_000_000),
      title: z.string().min(1).max(maxTitleLength),
      body: z.string().max(maxBodyLength),
      priority: z.number().int().min(0).max(4),
      state: z.enum(itemStates),
      after: z.array(z.number().int().min(1)).max(1_000),
      pullRequest: z.string().max(2_000).optional(),
      source: source.optional(),
      createdBy: z.string().max(500),
      createdAt: z.number().int().min(0),
    })
    .optional(),
})

const agentFile = ({ gitDir }: Pick<Tree, 'gitDir'>): string => join(gitDir, 'coppice-agent.json')

export const writeAgentFile = (
  tree: Pick<Tree, 'gitDir'>,
  { id, name, kind, pool, program, spawn, restarts, createdAt }: FleetAgent,
  item: Item | undefined,
): void =>
  write(tree, { id, name, kind, program, spawn, restarts, createdAt, ...(pool !== undefined && { pool }) }, item)

/** Updates the item's state. A crew member's file forgets an item that is open again or settled. */
export const noteItem = (tree: Pick<Tree, 'gitDir'>, item: Item): void => {
  const file = readAgentFile(tree)
  if (file?.item === undefined || file.item.createdAt !== item.createdAt) return
  const isOver = item.state === 'open' || isSettled(item.state)
  write(tree, file.agent, file.agent.kind === 'crew' && isOver ? undefined : item)
}

const write = (tree: Pick<Tree, 'gitDir'>, agent: AgentFile['agent'], item: Item | undefined): void => {
  const content: AgentFile = {
    version: 1,
    agent,
    ...(item !== undefined && {
      item: {
        id: item.id,
        title: item.title,
        body: item.body,
        priority: item.priority,
        state: item.state,
        after: [...item.after],
        createdBy: item.createdBy,
        createdAt: item.createdAt,
        ...(item.pullRequest !== undefined && { pullRequest: item.pullRequest }),
        ...(item.source !== undefined && { source: source.safeParse(item.source).data }),
      },
    }),
  }
  replaceFileSync(agentFile(tree), `${JSON.stringify(content)}\n`, { mode: 0o600, sync: true })
}

/** Undefined if it is missing or invalid. */
export const readAgentFile = (tree: Pick<Tree, 'gitDir'>): AgentFile | undefined => {
  try {
    const text = readUntrustedTextSync(agentFile(tree), { maxBytes: MOST_BYTES })
    return text === undefined ? undefined : schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
