import { code, plain } from '../../commands/views/view.ts'
import type { NotFetched } from '../../runs/attachments/directory.ts'
import { MAX_FILE_BYTES, MAX_FILES, MAX_IMAGE_SIDE, MAX_MESSAGE_BYTES } from './fetch.ts'

/** In the thread. */
export const notFetchedNotice = (files: readonly NotFetched[]): string =>
  `Not passed to the agent: ${files.map((one) => `${code(one.name, { chat: true, paint: plain })} (${whyNotFetched(one)})`).join(', ')}.`

/** For the agent. */
export const notFetchedContext = (files: readonly NotFetched[]): string =>
  [
    "Files that came with the message or its thread and that you don't have:",
    ...files.map((one) => `- ${JSON.stringify(one.name)}: ${whyNotFetched(one)}`),
  ].join('\n')

const whyNotFetched = ({ why }: NotFetched): string => {
  switch (why.kind) {
    case 'too-large':
      return `larger than ${megabytes(MAX_FILE_BYTES)}`
    case 'message-too-large':
      return `a message's files may have ${megabytes(MAX_MESSAGE_BYTES)} in total`
    case 'too-many':
      return `a message may have at most ${MAX_FILES} files`
    case 'kind-not-taken':
      return 'not a PNG, JPEG, GIF or WebP image, text or PDF'
    case 'damaged-image':
      return 'the image is damaged or incomplete'
    case 'too-many-pixels':
      return `larger than ${MAX_IMAGE_SIDE} × ${MAX_IMAGE_SIDE} pixels`
    case 'unsupported':
      return "Coppice can't fetch files here"
    case 'failed':
      return why.problem.replaceAll(/\s+/g, ' ')
  }
}

const megabytes = (bytes: number): string => `${bytes / 1024 / 1024} MB`
