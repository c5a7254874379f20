/**
 * The only place that decides whose messages are accepted. An inbox requires the proof that this returns, so a
 * platform that forgets to ask doesn't compile.
 */
export const authorise = (author: Author): Authorised | undefined =>
  isAllowed(author) ? new Proof('userId' in author ? author.userId : undefined) : undefined

/** What is known about a message's author. */
export type Author =
  /** By immutable user ID, never by a name that can change hands. An empty list allows nobody, `*` everybody. */
  | { readonly kind: 'listed'; readonly userId: string | undefined; readonly allowed: readonly string[] }
  /** The author's access to the repository, according to the service. */
  | { readonly kind: 'collaborator'; readonly userId: string; readonly canWrite: WritePermission }
  /** How a caller of our own API authenticated; undefined: not at all. */
  | { readonly kind: 'api-caller'; readonly authenticated: { readonly by: 'bearer' | 'cookie' } | undefined }

/** Only `yes` allows anything. */
export type WritePermission = 'yes' | 'no' | 'unknown'

/** Proof that the author is allowed. `userId` is recorded as the message's author, whatever the platform says. */
export type Authorised = Proof

/** Catches what the compiler can't: a cast, or a value from plain JavaScript. */
export const isAuthorised = (value: unknown): value is Authorised => Proof.isProof(value)

const isAllowed = (author: Author): boolean => {
  switch (author.kind) {
    case 'listed': {
      const { allowed, userId } = author
      return allowed.includes('*') || (userId !== undefined && userId !== '' && allowed.includes(userId))
    }
    case 'collaborator':
      return author.canWrite === 'yes'
    case 'api-caller':
      return author.authenticated !== undefined
  }
}

/** Not exported, and with a private field, so nothing else can create or imitate one. */
class Proof {
  readonly #userId: string | undefined

  constructor(userId: string | undefined) {
    this.#userId = userId
  }

  get userId(): string | undefined {
    return this.#userId
  }

  static isProof(value: unknown): value is Proof {
    return typeof value === 'object' && value !== null && #userId in value
  }
}
