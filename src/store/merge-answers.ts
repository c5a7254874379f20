import type { Kysely } from 'kysely'
import type { Merged } from '../domain/merge-proof.ts'
import type { CodebaseId, Sha } from '../domain/names.ts'
import { inTransaction } from './engine.ts'
import { fromJson, toJson } from './rows.ts'
import type { Tables } from './tables.ts'

/** Proofs are facts about commits: the answer for (tip, base, start) never changes, so it is cached. */
export type MergeQuestion = { readonly tip: Sha; readonly base: Sha; readonly start: Sha | undefined }
export type MergeAnswerStore = {
  /** One statement for many questions. */
  find(codebaseId: CodebaseId, base: Sha): Promise<{ question: MergeQuestion; answer: Merged }[]>
  save(
    codebaseId: CodebaseId,
    answers: readonly { question: MergeQuestion; answer: Merged }[],
    at: number,
  ): Promise<void>
  /** Deletes the answers for any other base. */
  keepOnly(codebaseId: CodebaseId, base: Sha): Promise<void>
}

/** Six parameters per row; SQLite allows 32,766 per statement. */
const rowsPerStatement = 500

export const mergeAnswerStore = (db: Kysely<Tables>): MergeAnswerStore => ({
  find: async (codebaseId, base) => {
    const rows = await db
      .selectFrom('merge_answers')
      .select(['tip', 'start_sha', 'answer'])
      .where('codebase_id', '=', codebaseId)
      .where('base', '=', base)
      .execute()
    return rows.flatMap((row) => {
      const answer = fromJson(row.answer) as Merged
      // Earlier versions kept a sentence instead of the base: such an answer is asked for again.
      if (answer.value === 'yes' && (answer.base as string | undefined) === undefined) return []
      const start = row.start_sha === '' ? undefined : (row.start_sha as Sha)
      return [{ question: { tip: row.tip as Sha, base, start }, answer }]
    })
  },
  save: (codebaseId, answers, at) =>
    inTransaction(db, async (transaction) => {
      const rows = answers.map(({ question, answer }) => ({
        codebase_id: codebaseId,
        base: question.base,
        tip: question.tip,
        start_sha: question.start ?? '',
        answer: toJson(answer),
        created_at: at,
      }))
      for (let first = 0; first < rows.length; first += rowsPerStatement) {
        await transaction
          .insertInto('merge_answers')
          .values(rows.slice(first, first + rowsPerStatement))
          .onConflict((conflict) =>
            conflict
              .columns(['codebase_id', 'base', 'tip', 'start_sha'])
              .doUpdateSet((eb) => ({ answer: eb.ref('excluded.answer') })),
          )
          .execute()
      }
    }),
  keepOnly: async (codebaseId, base) => {
    await db.deleteFrom('merge_answers').where('codebase_id', '=', codebaseId).where('base', '<>', base).execute()
  },
})
