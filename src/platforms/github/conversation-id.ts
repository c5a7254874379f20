/** A conversation is an issue or a pull request: `acme/app#42`. */
export type Thread = { readonly owner: string; readonly repo: string; readonly number: number }

export const conversationIdOf = (repository: string, number: number): string => `${repository}#${number}`

export const threadOf = (conversationId: string): Thread | undefined => {
  const [, owner, repo, number] = /^([\w.-]{1,100})\/([\w.-]{1,100})#([1-9]\d{0,9})$/.exec(conversationId) ?? []
  return owner === undefined || repo === undefined ? undefined : { owner, repo, number: Number(number) }
}

export const repositoryOf = ({ owner, repo }: Pick<Thread, 'owner' | 'repo'>): string => `${owner}/${repo}`

export const numberOf = (conversationId: string): { readonly github: string; readonly number: number } | undefined => {
  const thread = threadOf(conversationId)
  return thread && { github: repositoryOf(thread), number: thread.number }
}

/** How a merge proof names it. */
export const FORGE = 'GitHub'
