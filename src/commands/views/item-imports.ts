import { type Item, type ItemField, type ItemSource, sourceLabel } from '../../domain/fleet/item.ts'
import { sentence } from '../../domain/text/words.ts'
import type { ImportedItems } from '../../fleet/items/import/import-items.ts'
import { describeParkReason, sourceJson } from './items.ts'
import { aligned, type Cell, printable, type View } from './view.ts'

/**
 * For every import: `Imported from acme/app: 2 added, 12 already there.`, and a line for each item that has changed.
 */
export const importedText = (
  { added, updated, unchanged, kept }: ImportedItems,
  { from, dryRun }: { readonly from: string; readonly dryRun: boolean },
  view: View,
): string => {
  const already = new Set([...unchanged, ...kept.map(({ item }) => item)].map(({ id }) => id)).size
  const counts = [
    [added.length, 'added'],
    [updated.length, 'updated'],
    [already, 'already there'],
  ] as const
  const said = counts.flatMap(([n, what]) => (n === 0 ? [] : [`${n} ${what}`]))
  const done = dryRun ? 'Would import' : view.paint('green', 'Imported')
  const headline = `${done} from ${printable(from)}: ${said.length === 0 ? 'nothing found' : said.join(', ')}.`
  const rows = [
    ...added.map((item) => row('added', 'green', item, item.parked && describeParkReason(item.parked))),
    ...updated.map(({ item, fields }) => row('updated', 'cyan', item, fields.join(', '))),
    ...kept.map(({ item, fields, why }) => row('kept', 'yellow', item, `${fields.join(', ')}: ${whyKept[why]}`)),
  ]
  return [headline, ...shortened(rows, view)].join('\n')
}

const whyKept = { edited: 'changed there, but edited here', begun: 'changed there after the work began' } as const

const row = (what: string, style: 'green' | 'cyan' | 'yellow', item: Item, note = ''): readonly Cell[] => [
  { text: `  ${what}`, style },
  { text: String(item.id), style: 'bold' },
  { text: labelOf(item), style: 'dim' },
  { text: item.title.length > 60 ? `${item.title.slice(0, 59).toWellFormed()}…` : item.title },
  { text: note, style: 'dim' },
]

const MOST_ROWS = 30

const shortened = (rows: readonly (readonly Cell[])[], view: View): readonly string[] => {
  if (rows.length === 0) return []
  const text = aligned(rows.slice(0, MOST_ROWS), view)
  return rows.length > MOST_ROWS ? [text, `  and ${rows.length - MOST_ROWS} more`] : [text]
}

/** One line per item, up to a limit. */
export const notesText = (heading: string, notes: readonly string[], view: View): readonly string[] => {
  if (notes.length === 0) return []
  const bullet = view.chat === true ? '- ' : '  '
  const more = notes.length > MOST_ROWS ? [`${bullet}and ${notes.length - MOST_ROWS} more`] : []
  return [
    view.paint('bold', heading),
    ...notes.slice(0, MOST_ROWS).map((note) => `${bullet}${printable(note)}`),
    ...more,
  ]
}

const labelOf = ({ source }: Pick<Item, 'source'>): string => (source === undefined ? '' : sourceLabel(source))

/** `item 7 (acme/app#42)` */
export const itemName = (item: Pick<Item, 'id' | 'source'>): string => `item ${item.id} (${labelOf(item)})`

export const leftOutText = (counts: readonly (readonly [number, string])[]): readonly string[] => {
  const some = counts.filter(([n]) => n > 0).map(([n, what]) => `${n} ${what}`)
  return some.length === 0 ? [] : [sentence(`left out: ${some.join(', ')}`)]
}

export const importedJson = ({ added, updated, unchanged, kept }: ImportedItems) => ({
  added: added.map((item) => ({
    ...shortJson(item),
    priority: item.priority,
    state: item.state,
    after: item.after,
    parked: item.parked === undefined ? null : { ...item.parked, message: describeParkReason(item.parked) },
  })),
  updated: updated.map(({ item, fields }) => ({ ...shortJson(item), fields })),
  unchanged: unchanged.map(({ id }) => id),
  kept: kept.map(({ item, fields, why }) => ({
    ...shortJson(item),
    fields: fields satisfies readonly ItemField[],
    why,
  })),
})

export const shortJson = ({ id, title, source }: Pick<Item, 'id' | 'title' | 'source'>) => ({
  id,
  title,
  source: source === undefined ? null : sourceJson(source satisfies ItemSource),
})
