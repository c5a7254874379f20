import { pathToFileURL } from 'node:url'
import type { AgentCapabilities, ContentBlock } from '@agentclientprotocol/sdk'
import type { AgentAttachment, AgentRequest } from '../agent.ts'
import { contextBlock } from '../context-block.ts'
import { base64Of, contextOf, fitsIntoMessage, isOwn } from '../attachments.ts'

/** A prompt is one message of the protocol, held in memory on both sides. */
const MAX_IMAGE_BYTES = 5 * 1024 * 1024

/** The prompt is its own block; the context is a resource, which agents treat as data. `mark`: unknown to others. */
export const promptOf = async (
  request: Pick<AgentRequest, 'context' | 'prompt' | 'attachments'>,
  { promptCapabilities }: AgentCapabilities,
  mark: string,
): Promise<ContentBlock[]> => {
  const context = contextOf(request)
  const files = (request.attachments ?? []).filter(isOwn).map((one) => blockOf(one, promptCapabilities?.image === true))
  return [
    ...(context === undefined ? [] : [contextAs(context, mark, promptCapabilities?.embeddedContext === true)]),
    ...(await Promise.all(files)),
    { type: 'text', text: request.prompt },
  ]
}

/** For agents without resource support: a text block that nothing in the context can close early. */
const contextAs = (context: string, mark: string, takesResources: boolean): ContentBlock =>
  takesResources
    ? { type: 'resource', resource: { uri: 'coppice://context', mimeType: 'text/markdown', text: context } }
    : { type: 'text', text: contextBlock(context, mark) }

/** Every agent accepts links; images only those that say so. The context names the files of others, as data. */
const blockOf = async (attachment: AgentAttachment, takesImages: boolean): Promise<ContentBlock> => {
  const { path, name, mediaType: mimeType, bytes: size } = attachment
  const uri = pathToFileURL(path).href
  const data = takesImages && fitsIntoMessage(attachment) ? await base64Of(attachment, MAX_IMAGE_BYTES) : undefined
  return data === undefined
    ? { type: 'resource_link', uri, name, mimeType, size }
    : { type: 'image', uri, data, mimeType }
}
