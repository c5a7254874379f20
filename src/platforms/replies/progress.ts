import { code, plain } from '../../commands/views/view.ts'
import type { Progress } from '../../conversations/outbox/delivery.ts'
import { lastPart } from '../../conversations/outbox/split.ts'
import type { ReplyAction } from '../../domain/message.ts'

/** The buttons under a preview. The answer that takes its place has its own, or none. */
export const previewActions: readonly ReplyAction[] = [{ label: 'Stop', command: '/stop', style: 'danger' }]

/**
 * A preview in Markdown, for the platform to render: the newest part of the reply, and below it the last action and the
 * time that has passed. At most `limit` characters.
 */
export const progressMarkdown = (progress: Progress, { limit, now }: { limit: number; now: number }): string => {
  const status = statusLine(progress, now)
  const text = lastPart(progress.text.trimEnd(), limit - status.length - GAP.length)
  return text === '' ? status : `${text}${GAP}${status}`
}

/** What remains of a preview if no answer takes its place. */
export const unfinishedMarkdown = ({ text }: Progress, limit: number): string =>
  `${lastPart(text.trimEnd(), limit - GAP.length - 1)}${GAP}…`.trimStart()

const GAP = '\n\n'

/** As code: an action names files and commands, which must not be read as formatting, mentions or links. */
const statusLine = ({ tool, startedAt }: Progress, now: number): string => {
  const line = (tool ?? '')
    .slice(0, LONGEST_LINE * 2)
    .replaceAll(/\s+/g, ' ')
    .trim()
  const cut = line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE).toWellFormed().trimEnd()} …` : line
  return `${cut === '' ? 'Working' : code(cut, { chat: true, paint: plain })} · ${elapsed(now - startedAt)}`
}

const LONGEST_LINE = 120

/** Minutes after the first one, so that the preview of a silent agent is edited once a minute. */
const elapsed = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
