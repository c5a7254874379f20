/*
 * Discord's IDs contain the time they were made (API reference, "Snowflakes"), so those of all channels are in one
 * order. They are too long for a number.
 */

const EPOCH_MS = 1_420_070_400_000n

export const isLater = (id: string, than: string): boolean =>
  id.length === than.length ? id > than : id.length > than.length

/** The first ID of that moment. */
export const snowflakeAt = (ms: number): string => {
  const since = BigInt(Math.floor(ms)) - EPOCH_MS
  return String(since > 0n ? since << 22n : 0n)
}

/** When it was made. */
export const snowflakeTime = (id: string): number => Number((BigInt(id) >> 22n) + EPOCH_MS)
