import type { FleetAgent } from '../domain/fleet/agent.ts'
import { COMMAND_LINE } from './program.ts'

/**
 * Programs act on what begins with some characters (`/exit`, `!rm`), and complete the name at the end of a text when they
 * get Enter (`@src`). A command of the pool's own gets exactly the text.
 */
export const messageText = (text: string, { program }: Pick<FleetAgent, 'program'>): string => {
  if (program === COMMAND_LINE) return text
  const begun = /^[/!#$@&?\\]/.test(text) ? `Message: ${text}` : text
  return /(?:^|\s)[@$#/]\S*$/.test(begun) ? `${begun} ` : begun
}
