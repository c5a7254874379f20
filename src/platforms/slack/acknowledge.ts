import type { Logger } from '../../process/log.ts'
import type { SlackClient } from './client.ts'
import { isDirect, type SlackMessage } from './message/parse.ts'

/**
 * Shows at once that a message arrived. In an assistant's thread, which is always in a direct message, Slack shows a
 * status until the first reply; elsewhere, the message gets a reaction. Best effort.
 */
export const acknowledge = async (
  client: SlackClient,
  { channel, ts, threadTs }: Pick<SlackMessage, 'channel' | 'ts' | 'threadTs'>,
  log: Logger,
): Promise<void> => {
  try {
    if (isDirect(channel) && threadTs !== ts && (await showStatus(client, channel, threadTs))) return
    await client.reactions.add({ channel, timestamp: ts, name: 'eyes' })
  } catch (error) {
    log.debug('a message could not be acknowledged', { channel, error })
  }
}

/** Whether this is an assistant's thread isn't known beforehand: Slack refuses elsewhere. */
const showStatus = async (client: SlackClient, channel: string, threadTs: string): Promise<boolean> => {
  try {
    await client.assistant.threads.setStatus({ channel_id: channel, thread_ts: threadTs, status: 'is on it…' })
    return true
  } catch {
    return false
  }
}
