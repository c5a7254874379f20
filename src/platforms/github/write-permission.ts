import type { Clock } from '../../domain/clock.ts'
import type { Logger } from '../../process/log.ts'
import type { WritePermission } from '../authorisation.ts'
import type { GithubClient } from './client.ts'
import { repositoryOf, type Thread } from './conversation-id.ts'
import { failureOf } from './failure.ts'
import type { Writer } from './payloads.ts'

export type AskWritePermission = (
  repository: Pick<Thread, 'owner' | 'repo'>,
  writer: Writer,
) => Promise<WritePermission>

/** Whether a user may write to the repository. GitHub's answer is cached for a minute. */
export const createWritePermission = ({
  client,
  clock,
  log,
}: {
  readonly client: Pick<GithubClient, 'permission'>
  readonly clock: Clock
  readonly log: Logger
}): AskWritePermission => {
  const known = new Map<string, { readonly until: number; readonly answer: Promise<WritePermission> }>()
  const ask = async (repository: Pick<Thread, 'owner' | 'repo'>, { id, login }: Writer): Promise<WritePermission> => {
    try {
      const { userId, roles } = await client.permission(repository, login)
      // The name may have changed hands since the delivery.
      return userId === id && roles.some((role) => MAY_WRITE.has(role)) ? 'yes' : 'no'
    } catch (error) {
      const { kind, message } = failureOf(error, clock)
      if (kind === 'missing') return 'no'
      log.warn('a permission could not be asked for', { repository: repositoryOf(repository), userId: id, message })
      return 'unknown'
    }
  }
  return async (repository, writer) => {
    const key = `${repositoryOf(repository).toLowerCase()} ${writer.id} ${writer.login}`
    const now = clock()
    const remembered = known.get(key)
    if (remembered !== undefined && remembered.until > now) return remembered.answer
    const answer = ask(repository, writer)
    // Move it to the end, so that the oldest comes first.
    known.delete(key)
    known.set(key, { until: now + REMEMBERED_MS, answer })
    for (const [old] of known) {
      if (known.size <= MAX_REMEMBERED) break
      known.delete(old)
    }
    if ((await answer) === 'unknown' && known.get(key)?.answer === answer) known.delete(key)
    return answer
  }
}

const MAY_WRITE = new Set(['write', 'maintain', 'admin'])
const REMEMBERED_MS = 60_000
const MAX_REMEMBERED = 10_000
