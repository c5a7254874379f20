/**
 * The one place that decides who may give orders. An inbox takes an order only with the proof that this made, so a
 * platform that forgets to ask does not compile.
 */
export const authorise = (author: Author): Authorised | undefined =>
  isAllowed(author) ? new Proof('userId' in author ? author.userId : undefined) : undefined

/** What is known about whoever wrote a message. */
export type Author =
  /** By immutable user id, never by a name that can change hands. An empty list allows nobody, `*` everybody. */
  | { readonly kind: 'listed'; readonly userId: string | undefined; readonly allowed: readonly string[] }
  /** What the service says about the author's access to the repository. */
  | { readonly kind: 'collaborator'; readonly userId: string; readonly canWrite: WritePermission }
  /** How a caller of this server's own API authenticated; undefined: not at all. */
  | { readonly kind: 'api-caller'; readonly authenticated: { readonly by: 'bearer' | 'cookie' } | undefined }

/** `unknown` is never `yes`. */
export type WritePermission = 'yes' | 'no' | 'unknown'

/** The author may give orders. `userId` is recorded as the author of the message, whatever the platform says. */
export type Authorised = Proof

/** For what the compiler cannot see: a cast, or a value from plain JavaScript. */
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

/** Not exported, and with a private field: nothing else can make one, or make something that passes for one. */
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
