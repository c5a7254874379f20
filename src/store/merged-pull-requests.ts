import type { Kysely } from 'kysely'
import type { MergedPullRequest } from '../domain/merge-proof.ts'
import type { CodebaseId, Sha } from '../domain/names.ts'
import type { Tables } from './tables.ts'

/** What forges said. A merged pull request stays merged, so this is remembered; by head, since that is what is asked. */
export type MergedPullRequestStore = {
  find(codebaseId: CodebaseId, heads: readonly Sha[]): Promise<MergedPullRequest[]>
  save(codebaseId: CodebaseId, merged: readonly MergedPullRequest[], at: number): Promise<void>
  /** Deletes those learned before this time; whoever needs one asks again. */
  deleteBefore(codebaseId: CodebaseId, at: number): Promise<void>
}

/** Eight parameters per row; SQLite allows 32,766 per statement. */
const rowsPerStatement = 500

export const mergedPullRequestStore = (db: Kysely<Tables>): MergedPullRequestStore => ({
  find: async (codebaseId, heads) => {
    const found: MergedPullRequest[] = []
    for (let first = 0; first < heads.length; first += rowsPerStatement) {
      const rows = await db
        .selectFrom('merged_pull_requests')
        .selectAll()
        .where('codebase_id', '=', codebaseId)
        .where('head_sha', 'in', heads.slice(first, first + rowsPerStatement))
        .orderBy('number')
        .execute()
      for (const row of rows) {
        found.push({
          forge: row.forge,
          repository: row.repository,
          number: row.number,
          headSha: row.head_sha as Sha,
          mergeCommit: row.merge_commit as Sha,
          baseBranch: row.base_branch,
        })
      }
    }
    return found
  },
  save: async (codebaseId, merged, at) => {
    const rows = merged.map((one) => ({
      codebase_id: codebaseId,
      forge: one.forge,
      repository: one.repository,
      number: one.number,
      head_sha: one.headSha,
      merge_commit: one.mergeCommit,
      base_branch: one.baseBranch,
      learned_at: at,
    }))
    for (let first = 0; first < rows.length; first += rowsPerStatement) {
      await db
        .insertInto('merged_pull_requests')
        .values(rows.slice(first, first + rowsPerStatement))
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
  },
  deleteBefore: async (codebaseId, at) => {
    await db
      .deleteFrom('merged_pull_requests')
      .where('codebase_id', '=', codebaseId)
      .where('learned_at', '<', at)
      .execute()
  },
})
