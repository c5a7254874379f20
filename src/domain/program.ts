/** A program to start. */
export type Program = {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Changes a program so that it runs in an environment: as is, or wrapped in another program. */
export type Launch = (program: Program) => Program
