/*
 * Limits for the size and number of git's own files. Git reads most of them whole, and an agent can create a terabyte
 * in a moment (a sparse file). Each limit is far above what the largest known repositories have.
 */

const MB = 1024 * 1024

/** Some 40,000 lines. */
export const maxConfigBytes = 4 * MB
export const maxLogBytes = 64 * MB
/** Two million refs. */
export const maxPackedRefsBytes = 256 * MB
/** Some four million files. */
export const maxIndexBytes = 512 * MB
/** FETCH_HEAD, `info/exclude`, a rebase's todo list: everything without its own limit. */
export const maxOtherBytes = 64 * MB

/** Directories in `worktrees`. */
export const maxWorktreeRecords = 5_000
/** The user's and the repository's settings together, and the size of git's list of them. */
export const maxConfigEntries = 40_000
export const maxConfigListBytes = 16 * MB
/** Files included by a repository's configuration, directly or not. */
export const maxIncludedFiles = 100
/** Repository settings that we override. Each goes into git's environment, which has a limit. */
export const maxOverrides = 2_000
export const maxOverrideBytes = MB / 2
