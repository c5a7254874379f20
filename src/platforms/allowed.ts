/**
 * The one place that decides who may speak. By immutable user id, never by a name that can be taken over; an empty list
 * means nobody. `*` is everybody, for who really wants that.
 */
export const maySpeak = (allowed: readonly string[], userId: string | undefined): boolean =>
  allowed.includes('*') || (userId !== undefined && userId !== '' && allowed.includes(userId))
