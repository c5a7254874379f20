import { strangerText } from '../stranger-notice.ts'
import { escapeMrkdwn } from './render.ts'

/** Private responses to a slash command, in Slack's dialect. The command's own answer is a separate message. */
export const answers = {
  inThread: (command: string, link: string | undefined): string =>
    `${code(command)} goes to ${link === undefined ? 'your latest thread here' : `<${link}|your latest thread here>`}.`,
  inChannel: (command: string): string =>
    `${code(command)} is answered in this channel. If no answer appears, invite the bot to it first.`,
  notNow: (): string => 'Coppice isn’t accepting messages right now. Try again in a few seconds.',
  stranger: (userId: string): string => escapeMrkdwn(strangerText(userId)),
}

const code = (text: string): string =>
  `\`${escapeMrkdwn(text.slice(0, 100)).replaceAll('`', 'ˋ').replaceAll('\n', ' ')}\``
