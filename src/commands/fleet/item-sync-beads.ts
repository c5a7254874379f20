import type { Item } from '../../domain/fleet/item.ts'
import { type BeadsSync, type LeaveReason, syncBeads } from '../../fleet/items/beads/sync.ts'
import { type Call, command, isSet } from '../command.ts'
import { assertWholeServer, resolveTarget } from '../target.ts'
import { importedJson, importedText, itemName, notesText, shortJson } from '../views/item-imports.ts'
import { describeParkReason, stateWord } from '../views/items.ts'
import { exitCodes } from '../views/failure.ts'
import type { View } from '../views/view.ts'
import { changerOf } from './scope.ts'

type Result = BeadsSync & { readonly dryRun: boolean }

const run = async (call: Call): Promise<Result> => {
  if (call.chat !== undefined) assertWholeServer(call.chat, '/item sync beads')
  const dryRun = isSet(call.values, 'dry-run')
  const { codebase, fleet: open } = await resolveTarget(call)
  const fleet = await open()
  const by = changerOf(call, fleet)
  // beads can be told to refuse a reason of less than 20 characters.
  const words = { closed: 'Its item in Coppice is done', parked: parkedComment }
  return { ...(await syncBeads(fleet, { codebase, by, dryRun, signal: call.signal, words })), dryRun }
}

const parkedComment = ({ id, parked }: Item): string =>
  `Parked in Coppice (item ${id})${parked === undefined ? '' : `: ${describeParkReason(parked)}`}`

const toText = (result: Result, view: View): string => {
  const { imported, pulled, pushed, left, refused, dryRun } = result
  const added = imported.added.length + imported.updated.length + imported.kept.length
  const nothing = added + pulled.length + pushed.length + left.length + refused.length === 0
  if (nothing) return 'Items and beads are in sync.'
  return [
    ...(added === 0 ? [] : [importedText(imported, { from: 'beads', dryRun }, view)]),
    ...notesText(
      dryRun ? 'Would change here:' : 'Changed here:',
      pulled.map(({ item, to }) => `${itemName(item)}: ${stateWord(item.state)} → ${stateWord(to)}`),
      view,
    ),
    ...notesText(
      dryRun ? 'Would change in beads:' : 'Changed in beads:',
      pushed.map(({ item, to }) => `${itemName(item)}: ${to}`),
      view,
    ),
    ...notesText(
      'Left alone:',
      left.map((one) => `${itemName(one.item)}: ${describeLeft(one)}`),
      view,
    ),
    ...notesText(
      'Refused by bd:',
      refused.map(({ item, said }) => `${itemName(item)}: ${said}`),
      view,
    ),
  ].join('\n')
}

const thereWords = {
  ready: 'open',
  working: 'in progress',
  waiting: 'blocked or deferred',
  done: 'closed',
  gone: 'deleted',
} as const

const describeLeft = ({ item, there, why }: BeadsSync['left'][number]): string => {
  const both: Record<LeaveReason, string> = {
    'at-work': `${thereWords[there]} in beads, but an agent has it here (${stateWord(item.state)})`,
    final: `${thereWords[there]} in beads, but it is ${stateWord(item.state)} here, which is final`,
    gone: `its issue is no longer in beads`,
  }
  return both[why]
}

export const itemSyncBeads = command<Result>({
  run,
  toText,
  toJson: ({ imported, pulled, pushed, left, refused, dryRun }) => ({
    source: { kind: 'beads' },
    dryRun,
    ...importedJson(imported),
    pulled: pulled.map(({ item, to }) => ({ ...shortJson(item), from: item.state, to })),
    pushed: pushed.map(({ item, to }) => ({ ...shortJson(item), to })),
    left: left.map(({ item, there, why }) => ({ ...shortJson(item), state: item.state, there, why })),
    refused: refused.map(({ item, said }) => ({ ...shortJson(item), said })),
    leftOut: imported.leftOut,
  }),
  exitCode: ({ refused }) => (refused.length === 0 ? exitCodes.done : exitCodes.failed),
})
