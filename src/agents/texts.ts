/* Messages shared by several agents. */

type Program = {
  /** "Claude Code" */
  readonly title: string
  /** The command that installs it. */
  readonly install: string
  /** The variable and config key that hold its path. */
  readonly setting: string
}

export const notInstalled = ({ title, install, setting }: Program, command: string) => ({
  problem: `${title} is not installed (${JSON.stringify(command)} not found on PATH)`,
  remedy: `install it with ${install}, or set ${setting} to its path`,
})

/** Follows the name of a program that exited. */
export const exitText = (ended: { readonly exitCode: number | null; readonly signal: string | null }): string =>
  ended.exitCode === null ? `was killed by ${ended.signal}` : `exited with code ${ended.exitCode}`

export const CHECK_WORKTREE = 'Check that the worktree exists (/status), and send the message again.'
export const TRY_LATER = 'Try again later. The work so far is in the worktree.'
