import { createHash } from 'node:crypto'
import type { CodebaseId, EnvironmentId } from '../domain/names.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { ConversationKey } from '../store/store.ts'

/** One run of an agent, as its token knows it. */
export type Run = ConversationKey & {
  /** The message that it works on, and which attempt at it. */
  readonly messageId: string
  readonly attempt: number
  readonly codebaseId: CodebaseId
  /** Undefined for a command that only reads and has no environment. */
  readonly environmentId: EnvironmentId | undefined
}

export type RunTokens = {
  /** Variables with which the agent can ask the server about its own run; none while no server listens. */
  issue(run: Run): { readonly variables: Readonly<Record<string, string>>; readonly revoke: () => void }
  /** The run that the token was given to, as long as it runs. */
  find(token: string): Run | undefined
}

export type RunTokensOptions = {
  readonly secrets: Pick<Secrets, 'add' | 'forget'>
  /** 64 hex digits that nobody can guess. */
  readonly random: () => string
  /** Where an agent on this machine reaches the server. */
  readonly url: () => string | undefined
}

/**
 * A token per run, so that no agent needs the server's own: it opens what the run is about, for reading, and is worthless
 * when the run is over. In memory only: after a restart there are no runs, so there are no tokens either.
 */
export const createRunTokens = ({ secrets, random, url }: RunTokensOptions): RunTokens => {
  const runs = new Map<string, Run>()
  return {
    issue: (run) => {
      const address = url()
      if (address === undefined) return { variables: {}, revoke: () => undefined }
      const token = `${RUN_TOKEN_PREFIX}${random()}`
      const key = digest(token)
      runs.set(key, run)
      secrets.add(token)
      return {
        variables: { COPPICE_URL: address, COPPICE_RUN_TOKEN: token },
        revoke: () => {
          runs.delete(key)
          // Its shape still hides it; only the encodings of a worthless token are not looked for any more.
          secrets.forget(token)
        },
      }
    },
    find: (token) => (token.startsWith(RUN_TOKEN_PREFIX) ? runs.get(digest(token)) : undefined),
  }
}

/** By it a token is recognised and hidden wherever it turns up. */
const RUN_TOKEN_PREFIX = 'coppice_run_'

/** Looked up by digest, so that how long a look takes says nothing about a token. */
const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
