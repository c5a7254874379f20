/*
 * How large git's own files may be, and how many of some things there may be. Git reads most of them whole, whatever their size, and an agent can make one of a
 * terabyte in a moment (a sparse file). Each limit is far above what the largest known repositories have.
 */

const MB = 1024 * 1024

/** Some 40,000 lines. */
export const maxConfigBytes = 4 * MB
export const maxLogBytes = 64 * MB
/** Two million refs. */
export const maxPackedRefsBytes = 256 * MB
/** Some four million files. */
export const maxIndexBytes = 512 * MB
/** FETCH_HEAD, `info/exclude`, a rebase's list: whatever has no limit of its own. */
export const maxOtherBytes = 64 * MB

/** Directories in `worktrees`. */
export const maxWorktreeRecords = 5_000
/** Settings of the user's and the repository's configuration together, and all of them as git lists them. */
export const maxConfigEntries = 40_000
export const maxConfigListBytes = 16 * MB
/** Files that a repository's configuration includes, directly or not. */
export const maxIncludedFiles = 100
/** A repository's settings that we answer with our own. Each is passed to git in its environment, which has a limit. */
export const maxOverrides = 2_000
export const maxOverrideBytes = MB / 2
