/** The permissions that are used, by their bit (API reference, "Permissions"). The setup steps name the same. */
const used: readonly (readonly [name: string, bit: bigint])[] = [
  ['View Channels', 1n << 10n],
  ['Send Messages', 1n << 11n],
  ['Create Public Threads', 1n << 35n],
  ['Send Messages in Threads', 1n << 38n],
  ['Read Message History', 1n << 16n],
  ['Add Reactions', 1n << 6n],
]

/** Has every permission, whatever else is set. */
const ADMINISTRATOR = 1n << 3n

export const usedPermissions: readonly string[] = used.map(([name]) => name)

/** Discord sends the bits as a decimal number in a text. What can't be read counts as none. */
export const missingPermissions = (granted: unknown): string[] => {
  const bits = typeof granted === 'string' && /^\d{1,30}$/.test(granted) ? BigInt(granted) : 0n
  if ((bits & ADMINISTRATOR) !== 0n) return []
  return used.filter(([, bit]) => (bits & bit) === 0n).map(([name]) => name)
}
