import type { Logger } from '../../process/log.ts'
import { authorise } from '../authorisation.ts'
import type { PlatformInbox } from '../platform.ts'
import { type Press, pressOf, usedButton } from './buttons.ts'
import type { SlackClient } from './client.ts'
import type { SlackAnswer } from './delivery.ts'
import type { LatestThread } from './latest-thread.ts'
import { authorOf, foreignTeamOf, type SlackSelf, threadOf } from './message/parse.ts'
import { fieldsOf, isId, textIn } from './message/record.ts'
import { toPlainText } from './message/text.ts'
import { editOf } from './reply-port.ts'
import { answers } from './texts.ts'

export type InteractionParts = {
  readonly client: SlackClient
  readonly allowedUsers: readonly string[]
  readonly log: Logger
  readonly latestThread: LatestThread
  readonly accept: PlatformInbox['accept']
  /** Somebody who isn't allowed pressed a button. */
  readonly onStranger: (press: Press) => void
}

export type Interactions = {
  /** Handles a pressed button as if its command had been written. Throws if that couldn't be stored. */
  readonly press: (body: unknown, self: SlackSelf) => Promise<void>
  /** `/coppice stop` is `/stop` in the user's latest thread in that channel. Always answers. */
  readonly command: (body: unknown, self: SlackSelf) => Promise<SlackAnswer>
}

export const createInteractions = (parts: InteractionParts): Interactions => {
  const { client, allowedUsers, log, latestThread, accept, onStranger } = parts

  /** Best effort. A preview is left alone: by now it may be the answer, and its run's end removes the button. */
  const removeButtons = async (press: Press): Promise<void> => {
    const { channel, message } = press
    if (message.mark.kind === 'preview') return
    try {
      await client.chat.update(editOf({ channel, ...message, attachments: usedButton(press) }))
    } catch (error) {
      log.debug('used buttons could not be removed', { channel, error })
    }
  }

  return {
    press: async (body, self) => {
      const press = pressOf(body, self)
      if (press === undefined) return log.debug('ignored a Slack interaction', {})
      const { channel, threadTs, deliveryId, command: text } = press
      const userId = authorOf(press)
      const by = authorise({ kind: 'listed', userId, allowed: allowedUsers })
      if (by === undefined) {
        log.warn('ignored a button: who pressed it is not an allowed user', { userId })
        return onStranger(press)
      }
      const conversationId = threadTs === undefined ? channel : `${channel}:${threadTs}`
      const details = { userId, channelId: channel }
      const { outcome } = await accept({ conversationId, deliveryId, kind: 'message', text, details }, by)
      if (outcome !== 'too-old') void removeButtons(press)
    },
    command: async (body, self) => {
      const { user_id: user, team_id: team, channel_id: channel, trigger_id: trigger, text: typed } = fieldsOf(body)
      if (!isId(user) || !isId(channel) || textIn(trigger) === '') return undefined
      const userId = authorOf({ user, foreignTeam: foreignTeamOf(team, self) })
      const by = authorise({ kind: 'listed', userId, allowed: allowedUsers })
      if (by === undefined) {
        log.warn('ignored a slash command: its user is not an allowed user', { userId })
        return whispered(answers.stranger(userId))
      }
      const text = commandIn(textIn(typed))
      try {
        const conversationId = (await latestThread.of(text, channel, user)) ?? channel
        const details = { userId, channelId: channel }
        const deliveryId = `command:${textIn(trigger).slice(0, 200)}`
        await accept({ conversationId, deliveryId, kind: 'message', text, details }, by)
        const thread = threadOf(conversationId)?.threadTs
        return whispered(
          thread === undefined ? answers.inChannel(text) : answers.inThread(text, link(self, channel, thread)),
        )
      } catch (error) {
        log.warn('a slash command was not accepted', { error })
        return whispered(answers.notNow())
      }
    },
  }
}

/** `stop`, `/stop` and, with nothing typed, help. */
const commandIn = (typed: string): string => {
  const words = toPlainText(typed.slice(0, 4_000)).trim().replace(/^[/!]/, '')
  return `/${words === '' ? 'help' : words}`
}

const whispered = (text: string): SlackAnswer => ({ response_type: 'ephemeral', text })

/** As Slack's own "Copy link" makes it. */
const link = ({ url }: SlackSelf, channel: string, threadTs: string): string | undefined =>
  url === undefined ? undefined : `${url}archives/${channel}/p${threadTs.replace('.', '')}`
