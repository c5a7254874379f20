import { stopNotice } from '../notices.ts'
import type { Stopped } from '../stop-run.ts'
import { command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'

export const stop = command<Stopped>({
  run: (call) => onlyInChat(call, 'stop').controls.stop(),
  toText: stopNotice,
  toJson: ({ outcome, left, scripts }) => ({ outcome, left, scripts }),
})
