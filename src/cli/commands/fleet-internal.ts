import { command } from '../../commands/command.ts'
import { leaveOutside } from '../../fleet/formulas/leave-outside.ts'

/** Started by `coppice done` in an agent's session: ends that session and finishes the formula. */
export const leaveCommand = command<string>({
  run: async (call) => {
    const [runId = '', starter = ''] = call.words
    const { outcome } = await leaveOutside(await (await call.open()).fleet(), runId, starter)
    return outcome
  },
  toText: () => '',
  toJson: (outcome) => ({ outcome }),
})
