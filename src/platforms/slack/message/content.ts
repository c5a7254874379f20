import { type Fields, fieldsOf, listOf, textIn } from './record.ts'

/**
 * Everything a message says, as one text with Slack's own escapes. Alerts and other apps' messages have their words in
 * `blocks` and `attachments`, and `text` is empty or only a summary for notifications.
 */
export const contentOf = (message: Fields): string => joined([ownText(message), attachedText(message)])

/** What its author wrote, without what is attached. */
export const ownText = (message: Fields): string => {
  const text = bounded(textIn(message['text']))
  const blocks = listOf(message['blocks'], MOST_BLOCKS)
  // What a person writes is one rich text block, and `text` says the same.
  const rest = text.trim() === '' ? blocks : blocks.filter(({ type }) => type !== 'rich_text')
  return joined([text, ...rest.map((block) => blockText(block)).filter((said) => !text.includes(said))])
}

/** Forwarded messages, alerts, previews of links: others' words. */
export const attachedText = (message: Fields): string =>
  joined(listOf(message['attachments'], MOST_ATTACHMENTS).map((one) => attachmentText(one)))

const MOST_BLOCKS = 50
const MOST_ATTACHMENTS = 20
const MOST_ELEMENTS = 200
const MOST_CHARACTERS = 20_000

const attachmentText = (attachment: Fields): string => {
  const own = joined([...sharedText(attachment), blocksText(attachment['blocks'])])
  const from = textIn(attachment['author_name']) || textIn(attachment['author_id'])
  const isForwarded = attachment['is_share'] === true || attachment['is_msg_unfurl'] === true
  const intro = isForwarded ? [`Forwarded message${from === '' ? '' : ` from ${firstLine(from)}`}:`] : []
  if (own !== '') return joined([...intro, own])
  const said = joined([
    textIn(attachment['pretext']),
    textIn(attachment['title']),
    textIn(attachment['text']),
    ...listOf(attachment['fields'], MOST_ELEMENTS).map((field) => fieldText(field)),
  ])
  // Our own buttons have blocks without any text.
  const fallback = attachment['blocks'] === undefined ? textIn(attachment['fallback']) : ''
  const shown = said === '' ? fallback : said
  return shown === '' ? '' : joined([...intro, shown])
}

/** A forwarded message has its original's blocks, which say more than `text`: lists, code. */
const sharedText = (attachment: Fields): string[] =>
  listOf(attachment['message_blocks'], MOST_ATTACHMENTS).map(({ message }) => blocksText(fieldsOf(message)['blocks']))

const fieldText = ({ title, value }: Fields): string =>
  [textIn(title), textIn(value)].filter((part) => part !== '').join(': ')

const blocksText = (blocks: unknown): string => joined(listOf(blocks, MOST_BLOCKS).map((block) => blockText(block)))

const blockText = (block: Fields): string => {
  switch (block['type']) {
    case 'rich_text':
      return joined(listOf(block['elements'], MOST_ELEMENTS).map((element) => richText(element)))
    case 'section':
      return joined([
        textIn(fieldsOf(block['text'])['text']),
        ...listOf(block['fields'], MOST_ELEMENTS).map(({ text }) => textIn(text)),
      ])
    case 'header':
      return textIn(fieldsOf(block['text'])['text'])
    case 'context':
      return listOf(block['elements'], MOST_ELEMENTS)
        .map(({ text }) => textIn(text))
        .filter((text) => text !== '')
        .join(' ')
    case 'markdown':
      return textIn(block['text'])
    case 'image':
      return textIn(block['alt_text'])
    default:
      return ''
  }
}

const richText = (element: Fields): string => {
  const elements = listOf(element['elements'], MOST_ELEMENTS)
  switch (element['type']) {
    case 'rich_text_list':
      return elements.map((item) => `• ${richText(item)}`).join('\n')
    case 'rich_text_quote':
      return elements
        .map((one) => inline(one))
        .join('')
        .replaceAll(/^/gm, '&gt; ')
    case 'rich_text_preformatted':
      return `\`\`\`\n${elements.map((one) => inline(one)).join('')}\n\`\`\``
    default:
      return elements.map((one) => inline(one)).join('')
  }
}

/** Its text is what was typed, so it is escaped as `text` would be. */
const inline = (element: Fields): string => {
  switch (element['type']) {
    case 'text':
      return escaped(textIn(element['text']))
    case 'link': {
      const label = escaped(textIn(element['text']).replaceAll('|', ' '))
      const url = textIn(element['url']).replaceAll(/[<>|\s]/g, '')
      return label === '' ? `<${url}>` : `<${url}|${label}>`
    }
    case 'user':
      return `<@${word(element['user_id'])}>`
    case 'channel':
      return `<#${word(element['channel_id'])}>`
    case 'usergroup':
      return `@${word(element['usergroup_id'])}`
    case 'broadcast':
      return `@${word(element['range'])}`
    case 'emoji':
      return `:${word(element['name'])}:`
    default:
      return escaped(textIn(element['text']))
  }
}

const word = (value: unknown): string =>
  textIn(value)
    .slice(0, 100)
    .replaceAll(/[^\w+-]/g, '')

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const firstLine = (text: string): string => text.slice(0, 80).split('\n', 1).join('')

const joined = (parts: readonly string[]): string =>
  bounded(
    parts
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .join('\n'),
  )

const bounded = (text: string): string => text.slice(0, MOST_CHARACTERS)
