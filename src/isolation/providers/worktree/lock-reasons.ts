/** These identify unfinished things as ours, from the moment that git's record of them exists. */

/** The reason in git's lock during an environment's creation. */
export const creationReason = (environmentId: string): string => `coppice: making ${environmentId}`

/** The reason in git's lock of a waiting spare. */
export const spareReason = (id: string): string => `coppice: spare ${id}`

/** Spares have a token too, so that a stranger's worktree of the same name is never mistaken for one. */
export const spareToken = (id: string): string => `spare:${id}`
