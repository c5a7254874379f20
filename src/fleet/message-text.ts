import type { FleetAgent } from '../domain/fleet/agent.ts'
import { COMMAND_LINE } from './program.ts'

/**
 * Agent programs act on text that begins with certain characters (`/exit`, `!rm`), and on Enter they complete a name at
 * the end of the text (`@src`). A pool's own `command` gets the text unchanged.
 */
export const messageText = (text: string, { program }: Pick<FleetAgent, 'program'>): string => {
  if (program === COMMAND_LINE) return text
  const begun = /^[/!#$@&?\\]/.test(text) ? `Message: ${text}` : text
  return /(?:^|\s)[@$#/]\S*$/.test(begun) ? `${begun} ` : begun
}
