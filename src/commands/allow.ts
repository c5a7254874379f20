import { type Call, command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'

type Answered = { readonly agreed: boolean; readonly outcome: 'answered' | 'nothing-asked' }

const answering = (agreed: boolean) =>
  command<Answered>({
    run: async (call: Call) => {
      const { controls } = onlyInChat(call, agreed ? 'allow' : 'deny')
      return { agreed, outcome: controls.answer?.(agreed) ?? 'nothing-asked' }
    },
    toText: ({ outcome }) =>
      outcome === 'nothing-asked' ? 'No pending permission request.' : agreed ? 'Allowed once.' : 'Denied.',
    toJson: ({ outcome }) => ({ outcome, agreed }),
  })

export const allow = answering(true)
export const deny = answering(false)
