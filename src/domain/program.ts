/** A program that is about to be started. */
export type Program = {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** How a program has to be started to run in an environment: as it is, or through another one that leads inside. */
export type Launch = (program: Program) => Program
