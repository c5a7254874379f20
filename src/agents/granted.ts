export type GrantList = {
  readonly names: readonly string[]
  readonly prefixes?: readonly string[]
}

/** Passes an agent only those of our variables that its list names. */
export const grantedVariables = (
  own: Readonly<Record<string, string | undefined>>,
  { names, prefixes = [] }: GrantList,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(own).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && (names.includes(entry[0]) || prefixes.some((prefix) => entry[0].startsWith(prefix))),
    ),
  )
