import { createHash } from 'node:crypto'
import type { types } from '@slack/bolt'
import type { ReplyAction } from '../../domain/message.ts'
import type { Mark } from '../replies/port.ts'
import { foreignTeamOf, type SlackSelf } from './message/parse.ts'
import { type Fields, fieldsOf, isId, isTimestamp, listOf, textIn } from './message/record.ts'
import { escapeMrkdwn } from './render.ts'

export type SlackAttachments = types.MessageAttachment[]

/**
 * Buttons go into an attachment: with `blocks`, Slack would show them instead of the text, and a block holds less text
 * than a message. An empty list removes the buttons that an edited message had.
 */
export const buttonsOf = (mark: Mark, actions: readonly ReplyAction[]): SlackAttachments =>
  actions.length === 0
    ? []
    : [
        {
          fallback: actions.map(({ label }) => label).join(' · '),
          blocks: [
            {
              type: 'actions',
              block_id: blockIdOf(mark),
              elements: actions.slice(0, MOST_BUTTONS).map(({ label, command, style }, n) => ({
                type: 'button' as const,
                action_id: `${ACTION}${n}`,
                text: { type: 'plain_text' as const, text: label.slice(0, MOST_LABEL) },
                value: command,
                ...(style !== undefined && { style }),
              })),
            },
          ],
        },
      ]

/** What takes the place of a message's buttons: which one was pressed, and by whom. */
export const usedButton = ({ label, user }: Pick<Press, 'label' | 'user'>): SlackAttachments => [
  {
    fallback: label,
    blocks: [{ type: 'context', elements: [{ type: 'mrkdwn', text: `${escapeMrkdwn(label)} · <@${user}>` }] }],
  },
]

export type Press = {
  /** One button of one message works once: a double click mustn't allow the agent's next request too. */
  readonly deliveryId: string
  readonly channel: string
  readonly threadTs: string | undefined
  readonly user: string
  readonly foreignTeam: string | undefined
  readonly label: string
  readonly command: string
  readonly message: { readonly ts: string; readonly text: string; readonly mark: Mark }
}

/** A press of one of our buttons; undefined: something else. */
export const pressOf = (body: unknown, self: SlackSelf): Press | undefined => {
  const payload = fieldsOf(body)
  const [action = {}] = listOf(payload['actions'], 1)
  const message = fieldsOf(payload['message'])
  const presser = fieldsOf(payload['user'])
  const { id: channel } = fieldsOf(payload['channel'])
  const { ts, thread_ts: threadTs } = message
  const mark = markOf(action['block_id'])
  const command = textIn(action['value'])
  if (payload['type'] !== 'block_actions' || !textIn(action['action_id']).startsWith(ACTION)) return undefined
  if (!isId(channel) || !isTimestamp(ts) || !isId(presser['id']) || mark === undefined || command === '')
    return undefined
  return {
    deliveryId: `press:${channel}:${ts}:${createHash('sha256').update(command).digest('hex').slice(0, 16)}`,
    channel,
    threadTs: isTimestamp(threadTs) ? threadTs : undefined,
    user: presser['id'],
    foreignTeam: foreignTeamOf(presser['team_id'], self),
    label: labelOf(action),
    command,
    message: { ts, text: textIn(message['text']), mark },
  }
}

const ACTION = 'coppice_'
/** Slack's limits. */
const MOST_BUTTONS = 25
const MOST_LABEL = 75

/** The message's mark survives in its buttons: an edit must set it again. */
const blockIdOf = ({ kind, id }: Mark): string => `${kind}:${id}`

const markOf = (blockId: unknown): Mark | undefined => {
  const [, kind, id] = /^(reply|preview):(\S{1,200})$/.exec(textIn(blockId).slice(0, 255)) ?? []
  return id === undefined || (kind !== 'reply' && kind !== 'preview') ? undefined : { kind, id }
}

const labelOf = (action: Fields): string => textIn(fieldsOf(action['text'])['text']).slice(0, MOST_LABEL)
