import { command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'

export const stop = command<'stopped' | 'nothing-running'>({
  run: (call) => onlyInChat(call, 'stop').controls.stop(),
  toText: (outcome) =>
    outcome === 'stopped' ? 'Stopped: the agent and all it had started have ended.' : 'Nothing is running here.',
  toJson: (outcome) => ({ outcome }),
})
