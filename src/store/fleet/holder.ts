import type { ExpressionWrapper, SqlBool } from 'kysely'
import { expressionBuilder } from 'kysely'
import type { FormulaRun } from '../../domain/fleet/formula.ts'

/** The process that works on a row, on its host. Rows that processes of several hosts can take over have these columns. */
export type HolderColumns = {
  holder_host: string | null
  holder_pid: number | null
  holder_start_time: string | null
}

type Holder = FormulaRun['holder']

export const holderColumns = (holder: Holder): HolderColumns => ({
  holder_host: holder?.host ?? null,
  holder_pid: holder?.process.pid ?? null,
  holder_start_time: holder?.process.startTime ?? null,
})

export const holderOf = ({ holder_host, holder_pid, holder_start_time }: HolderColumns): Holder =>
  holder_host === null || holder_pid === null || holder_start_time === null
    ? undefined
    : { host: holder_host, process: { pid: holder_pid, startTime: holder_start_time } }

/** Whether the row still has this holder. */
export const isHeldBy = (holder: Holder): ExpressionWrapper<Holding, 'row', SqlBool> => {
  const eb = expressionBuilder<Holding, 'row'>()
  if (holder === undefined) return eb('holder_pid', 'is', null)
  return eb.and([
    eb('holder_host', '=', holder.host),
    eb('holder_pid', '=', holder.process.pid),
    eb('holder_start_time', '=', holder.process.startTime),
  ])
}

type Holding = { row: HolderColumns }
