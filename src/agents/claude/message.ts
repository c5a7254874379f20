import type { AgentAttachment, AgentRequest } from '../agent.ts'
import { base64Of, contextOf, fitsIntoMessage, isOwn, isPdf } from '../attachments.ts'
import { contextBlock } from '../context-block.ts'

/** The API takes images of up to 5 MB in base64, and 32 MB per request. Claude Code reads larger ones by their path. */
const MAX_IMAGE_BYTES = 3.75 * 1024 * 1024
const MAX_PDF_BYTES = 10 * 1024 * 1024
const MAX_TOTAL_BYTES = 16 * 1024 * 1024

/**
 * The context is part of the user's message, not the system prompt: that would give data too much authority, and a
 * resumed session keeps its original system prompt, so the context of every later message would be lost.
 */
export const claudeMessage = async (request: AgentRequest, mark: string): Promise<object> => {
  const context = contextOf(request)
  const content = [
    ...(context === undefined ? [] : [text(contextBlock(context, mark))]),
    ...(await filesOf(request.attachments ?? [])),
    text(request.prompt),
  ]
  return { type: 'user', message: { role: 'user', content } }
}

const text = (words: string): object => ({ type: 'text', text: words })

const filesOf = async (attachments: readonly AgentAttachment[]): Promise<object[]> => {
  const blocks: object[] = []
  let left = MAX_TOTAL_BYTES
  for (const attachment of attachments) {
    const { mediaType: media_type } = attachment
    const most = fitsIntoMessage(attachment)
      ? MAX_IMAGE_BYTES
      : isOwn(attachment) && isPdf(attachment)
        ? MAX_PDF_BYTES
        : 0
    const data = most === 0 ? undefined : await base64Of(attachment, Math.min(most, left))
    if (data === undefined) continue
    left -= attachment.bytes
    blocks.push({ type: isPdf(attachment) ? 'document' : 'image', source: { type: 'base64', media_type, data } })
  }
  return blocks
}
