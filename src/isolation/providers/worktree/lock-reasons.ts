/** How a half-made thing is known for ours, from the first instant that git's record of it exists. */

/** The reason in git's lock while an environment is being made. */
export const creationReason = (environmentId: string): string => `coppice: making ${environmentId}`

/** The reason in git's lock of a waiting spare. */
export const spareReason = (id: string): string => `coppice: spare ${id}`

/** Spares carry a token too, so that a stranger's worktree under the same name is never taken for one. */
export const spareToken = (id: string): string => `spare:${id}`
