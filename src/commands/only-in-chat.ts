import type { Call, ChatCall } from './command.ts'
import { usage } from './grammar/usage.ts'
import { coppice, remedy } from '../domain/remedy.ts'

/** The calling conversation. Throws for a command that needs one. */
export const onlyInChat = ({ chat }: Pick<Call, 'chat'>, name: string): ChatCall => {
  if (chat !== undefined) return chat
  throw usage(
    `/${name} only works in a conversation`,
    remedy`send it to one: ${coppice(`chat ${JSON.stringify(`/${name}`)} --conversation <id>`)}`,
  )
}
