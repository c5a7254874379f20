import { createHash } from 'node:crypto'
import type { CodebaseId, EnvironmentId } from '../domain/names.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { ConversationKey } from '../store/store.ts'

/** The run that a token belongs to. */
export type Run = ConversationKey & {
  /** Its message and attempt. */
  readonly messageId: string
  readonly attempt: number
  readonly codebaseId: CodebaseId
  /** Undefined for a read-only command without an environment. */
  readonly environmentId: EnvironmentId | undefined
}

export type RunTokens = {
  /** Variables for the agent to ask the server about its run; empty if no server listens. */
  issue(run: Run): { readonly variables: Readonly<Record<string, string>>; readonly revoke: () => void }
  /** The token's run, while it lasts. */
  find(token: string): Run | undefined
}

export type RunTokensOptions = {
  readonly secrets: Pick<Secrets, 'add' | 'forget'>
  /** 64 unguessable hex digits. */
  readonly random: () => string
  /** The server's URL for agents on this machine. */
  readonly url: () => string | undefined
}

/**
 * A token per run, so that no agent needs the server's own: it grants read access to the run's data and expires with
 * the run. In memory only: after a restart there are no runs, hence no tokens.
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
          // Its prefix still gets it redacted; only its encodings are no longer searched for.
          secrets.forget(token)
        },
      }
    },
    find: (token) => (token.startsWith(RUN_TOKEN_PREFIX) ? runs.get(digest(token)) : undefined),
  }
}

/** The prefix by which tokens are recognised and redacted. */
const RUN_TOKEN_PREFIX = 'coppice_run_'

/** Look up by digest, so that timing reveals nothing about a token. */
const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
