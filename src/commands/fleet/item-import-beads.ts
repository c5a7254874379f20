import { resolve } from 'node:path'
import { type BeadsImport, importBeadsFile } from '../../fleet/items/beads/import-beads.ts'
import { type Call, command, cwdOf, isSet } from '../command.ts'
import { resolveTarget } from '../target.ts'
import { importedJson, importedText, itemName, leftOutText, notesText, shortJson } from '../views/item-imports.ts'
import type { View } from '../views/view.ts'
import { changerOf } from './scope.ts'

type Result = { readonly imported: BeadsImport; readonly file: string; readonly dryRun: boolean }

const run = async (call: Call): Promise<Result> => {
  const file = resolve(cwdOf(call), call.words[0] ?? '')
  const dryRun = isSet(call.values, 'dry-run')
  const { codebase, context } = await resolveTarget(call)
  const by = changerOf(call, { isolation: context })
  return { imported: await importBeadsFile(context, file, { codebase, by, dryRun }), file, dryRun }
}

const toText = ({ imported, file, dryRun }: Result, view: View): string =>
  [
    importedText(imported, { from: file, dryRun }, view),
    ...notesText('No longer open in beads:', imported.noLongerOpen.map(describeOver), view),
    ...leftOutOfBeads(imported),
  ].join('\n')

const describeOver = ({ item, there }: BeadsImport['noLongerOpen'][number]): string =>
  `${itemName(item)}: ${there === 'closed' ? 'closed' : 'deleted, or not in the file'}`

const leftOutOfBeads = ({ leftOut }: BeadsImport): readonly string[] =>
  leftOutText([
    [leftOut.closed, 'closed'],
    [leftOut.deleted, 'deleted'],
    [leftOut.aside, leftOut.aside === 1 ? 'template or message' : 'templates and messages'],
    [leftOut.others, leftOut.others === 1 ? 'other record' : 'other records'],
  ])

export const itemImportBeads = command<Result>({
  run,
  toText,
  toJson: ({ imported, file, dryRun }) => ({
    source: { kind: 'beads', file },
    dryRun,
    ...importedJson(imported),
    noLongerOpen: imported.noLongerOpen.map(({ item, there }) => ({ ...shortJson(item), there })),
    leftOut: imported.leftOut,
  }),
})
