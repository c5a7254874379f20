import { createHash } from 'node:crypto'
import type { PlatformMemory } from './memory.ts'

/** What a button sends back when it is pressed: its command, or a reference to it if the service's limit is too small. */
export type ButtonData = {
  dataOf(command: string): Promise<string>
  /** Undefined: not ours, or older than the memory. */
  commandOf(data: string): Promise<string | undefined>
}

/** Commands begin with `/` or are a word, so this can't be one. */
const REFERENCE = '#'

export const createButtonData = (memory: Pick<PlatformMemory, 'get' | 'set'>, maxBytes: number): ButtonData => ({
  dataOf: async (command) => {
    if (Buffer.byteLength(command) <= maxBytes && !command.startsWith(REFERENCE)) return command
    const reference = `${REFERENCE}${createHash('sha256').update(command).digest('base64url').slice(0, 32)}`
    await memory.set(keyOf(reference), command)
    return reference
  },
  commandOf: async (data) => {
    if (data === '' || Buffer.byteLength(data) > maxBytes) return undefined
    return data.startsWith(REFERENCE) ? memory.get(keyOf(data)) : data
  },
})

const keyOf = (reference: string): string => `button:${reference.slice(1)}`
