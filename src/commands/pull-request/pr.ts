import type { NotPublished } from '../../domain/forge/publishing.ts'
import { type Publication, publish } from '../../isolation/publish/publish.ts'
import { type Call, command, isSet, textOf } from '../command.ts'
import { usage } from '../grammar/usage.ts'
import { namedOrCurrent, followTarget, resolveTargetForWrite } from '../target.ts'
import { exitCodes } from '../views/failure.ts'
import { publicationJson } from './json.ts'
import { publicationText } from './texts.ts'

export type PrResult = { readonly publication: Publication; readonly codebase: string }

/** Pushes the branch and opens a pull request. */
const run = async (call: Call): Promise<PrResult> => {
  const title = textOf(call.values, 'title')?.trim()
  if (title === '') throw usage('--title is empty', 'usage: --title <text>')
  const place = await resolveTargetForWrite(call)
  const { context, codebase } = place
  const environment = await followTarget(call, place, await namedOrCurrent(call, place, 'pr'))
  const ready = isSet(call.values, 'ready')
  const publication = await publish(context, codebase, environment, { title, ready, signal: call.signal })
  return { publication, codebase: codebase.name }
}

const refusedKinds: ReadonlySet<NotPublished['kind']> = new Set([
  'untrusted',
  'is-base',
  'remote-changed',
  'remote-unconfirmed',
  'remote-ambiguous',
])

/** A pull request that can't be opened is a failure, though the branch is pushed; without a code host, a push is all. */
const exitCodeOf = ({ publication }: PrResult): number => {
  if (publication.outcome === 'not-published') {
    const { kind } = publication.why
    return refusedKinds.has(kind) ? exitCodes.refused : exitCodes.failed
  }
  const { outcome } = publication.opened
  return outcome === 'refused' || outcome === 'unreachable' ? exitCodes.failed : exitCodes.done
}

export const pr = command<PrResult>({
  run,
  toText: ({ publication }, view) => publicationText(publication, view),
  toJson: ({ publication, codebase }, view) => publicationJson(publication, codebase, view),
  exitCode: exitCodeOf,
})
