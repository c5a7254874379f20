import { publicationText } from '../commands/pull-request/texts.ts'
import { toAppError } from '../domain/errors.ts'
import type { Codebase, IsolatedEnvironment } from '../domain/environment.ts'
import type { NotPublished } from '../domain/forge/publishing.ts'
import { currentConfig } from '../isolation/codebases/base-and-config.ts'
import { publish } from '../isolation/publish/publish.ts'
import type { RunResult } from '../runs/request.ts'
import { viewOf } from './answer-command.ts'
import type { ConversationsContext } from './context.ts'
import { notPublishedNotice } from './notices.ts'

export type RunToPublish = {
  readonly codebase: Codebase
  readonly result: RunResult
  /** An earlier attempt was interrupted, and may have committed. */
  readonly isRerun: boolean
  readonly signal: AbortSignal
}

/**
 * In a repository that wants it (`pullRequests.open: auto`), pushes what a run committed and opens a pull request.
 * Returns what to tell the user. Never throws: the run is done, whatever becomes of its pull request.
 */
export const publishRun = async (
  context: ConversationsContext,
  { codebase, result, isRerun, signal }: RunToPublish,
): Promise<string | undefined> => {
  const { isolation } = context
  const environment = committedIn(result, isRerun)
  if (environment === undefined) return undefined
  try {
    if ((await currentConfig(isolation, codebase))?.openPullRequests !== 'auto') return undefined
    const publication = await publish(isolation, codebase, environment, { signal })
    if (publication.outcome === 'not-published' && !isWorthSaying(publication.why)) return undefined
    return publicationText(publication, viewOf(context))
  } catch (error) {
    isolation.log.warn('a run could not be published', { branch: environment.branch, error })
    return notPublishedNotice(environment, toAppError(error))
  }
}

/** Only a finished run, and only one that the repository's own people asked for. */
const committedIn = (result: RunResult, isRerun: boolean): IsolatedEnvironment | undefined => {
  if (result.outcome !== 'done' || !result.trusted) return undefined
  return result.committed || isRerun ? result.environment : undefined
}

/** It would be said after every run, and nobody asked. */
const isWorthSaying = ({ kind }: NotPublished): boolean =>
  kind !== 'no-remote' && kind !== 'no-commits' && kind !== 'untrusted' && kind !== 'is-base'
