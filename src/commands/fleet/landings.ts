import { isOpenLanding, type Landing, type LandingBlock } from '../../domain/fleet/landing.ts'
import { sentence } from '../../domain/text/words.ts'
import type { IsolationContext } from '../../isolation/context.ts'
import type { CodebaseId } from '../../domain/names.ts'
import { type Call, command, isSet } from '../command.ts'
import { describeRefusal, explainBlock, landingJson } from '../views/landings.ts'
import { remedySentence } from '../views/remedy.ts'
import { ago, type Cell, fittedTable, lastCommand, printable, type Style, type View } from '../views/view.ts'
import { scopeOf } from './scope.ts'

export type ListedLanding = { readonly landing: Landing; readonly codebase: string }

type Listed = {
  readonly landings: readonly ListedLanding[]
  readonly blocked: readonly { readonly codebase: string; readonly why: LandingBlock }[]
}

const MOST = 200
/** Finished ones that are shown without --all. */
const RECENT = 10

/** In queue order, with the last that were finished before them. */
export const listLandings = async (
  { store, host }: Pick<IsolationContext, 'store' | 'host'>,
  { codebaseId, all }: { readonly codebaseId?: CodebaseId | undefined; readonly all: boolean },
): Promise<readonly ListedLanding[]> => {
  const names = new Map((await store.codebases.list(host)).map(({ id, name }) => [id, name]))
  const found = await store.landings.list({ limit: MOST, ...(codebaseId !== undefined && { codebaseId }) })
  const finished = found.filter((one) => !isOpenLanding(one)).slice(0, all ? MOST : RECENT)
  return found
    .filter((one) => isOpenLanding(one) || finished.includes(one))
    .toReversed()
    .map((landing) => ({ landing, codebase: names.get(landing.codebaseId) ?? '' }))
}

const run = async (call: Call): Promise<Listed> => {
  const workplace = await call.open()
  const codebase = await scopeOf(call, workplace)
  const { context } = workplace
  const landings = await listLandings(context, { codebaseId: codebase?.id, all: isSet(call.values, 'all') })
  const names = new Map((await context.store.codebases.list(context.host)).map(({ id, name }) => [id, name]))
  const blocked = (await context.store.landings.blockedQueues()).flatMap(({ codebaseId, blocked: why }) => {
    const isMeant = why !== undefined && (codebase === undefined || codebase.id === codebaseId)
    return isMeant ? [{ codebase: names.get(codebaseId) ?? '', why }] : []
  })
  return { landings, blocked }
}

const styles: Readonly<Record<Landing['state'], Style>> = {
  queued: 'yellow',
  testing: 'cyan',
  landed: 'green',
  refused: 'red',
  superseded: 'dim',
}

const row = ({ landing, codebase }: ListedLanding, view: View, named: boolean): readonly Cell[] => {
  const { id, itemId, branch, state, landedSha, why, updatedAt } = landing
  return [
    { text: String(id), style: 'bold' },
    { text: itemId === undefined ? '' : String(itemId) },
    { text: branch },
    { text: state, style: styles[state] },
    { text: landedSha?.slice(0, 7) ?? (why === undefined ? '' : describeRefusal(why)) },
    { text: ago(updatedAt, view.now), style: 'dim' },
    { text: named ? codebase : '', style: 'dim' },
  ]
}

const toText = ({ landings, blocked }: Listed, view: View): string => {
  if (landings.length === 0)
    return `Nothing is queued. Land something: ${lastCommand(view.commandText('land <item>'), view)}`
  const repositories = new Set(landings.map(({ codebase }) => codebase))
  const { text } = fittedTable(
    ['LANDING', 'ITEM', 'BRANCH', 'STATE', 'RESULT', 'SINCE', 'REPOSITORY'],
    landings.map((one) => row(one, view, repositories.size > 1)),
    view,
    { drop: ['SINCE', 'REPOSITORY'], cut: ['RESULT', 'BRANCH'] },
  )
  return [
    text,
    ...blocked.flatMap(({ codebase, why }) => {
      const { what, todo } = explainBlock(why, codebase)
      return [printable(sentence(what)), ...todo.map((one) => `  ${printable(remedySentence(one, view))}`)]
    }),
  ].join('\n')
}

export const landings = command<Listed>({
  run,
  toText,
  toJson: (listed) => listed.landings.map(({ landing, codebase }) => landingJson(landing, codebase)),
})
