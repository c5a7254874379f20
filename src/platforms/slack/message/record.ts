/** Slack's JSON is never what its types promise: everything is checked where it is read. */
export type Fields = Readonly<Record<string, unknown>>

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}

/** Objects only, and no more than this many. */
export const listOf = (value: unknown, most: number): readonly Fields[] =>
  Array.isArray(value) ? value.slice(0, most).map((one) => fieldsOf(one)) : []

export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

export const isId = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9]{2,64}$/.test(value)

export const isTimestamp = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{1,12}\.\d{1,9}$/.test(value)
