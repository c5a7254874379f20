/** Converts between domain values and columns: the only place that maps undefined, booleans and JSON. */

export const orNull = <T>(value: T | undefined): T | null => (value === undefined ? null : value)

export const orUndefined = <T>(value: T | null): T | undefined => (value === null ? undefined : value)

export const toFlag = (value: boolean): number => (value ? 1 : 0)

export const fromFlag = (value: number): boolean => value !== 0

/** JSON omits undefined, so it is read back as `undefined`. */
export const toJson = (value: unknown): string => JSON.stringify(value)

/** The caller's cast is safe: each column holds only what `toJson` wrote. */
export const fromJson = (text: string): unknown => JSON.parse(text)

type Plain = string | number | boolean | undefined

/** The columns in a patch: an absent key leaves its column alone, `undefined` clears it. */
export const patchedColumns = <Patch extends { readonly [K in keyof Patch]?: Plain }, Row extends object>(
  patch: Patch,
  columns: { readonly [K in keyof Required<Patch>]: keyof Row & string },
): Partial<Row> => {
  const set: Record<string, string | number | null> = {}
  for (const [key, column] of Object.entries<string>(columns)) {
    if (Object.hasOwn(patch, key)) set[column] = columnValue((patch as Record<string, Plain>)[key])
  }
  return set as Partial<Row>
}

const columnValue = (value: Plain): string | number | null =>
  typeof value === 'boolean' ? toFlag(value) : orNull(value)
