import { expect, test } from 'vitest'
import { filesOf } from './files.ts'

const shot = {
  id: 'F1',
  name: 'shot.png',
  mimetype: 'image/png',
  size: 12,
  mode: 'hosted',
  url_private: 'https://files.slack.com/files-pri/T1-F1/shot.png',
  url_private_download: 'https://files.slack.com/files-pri/T1-F1/download/shot.png',
}

test('a file is named with what Slack says about it and where it is', () => {
  expect(filesOf({ files: [shot] })).toEqual({
    attachments: [{ name: 'shot.png', mediaType: 'image/png', bytes: 12, reference: shot.url_private_download }],
    snippets: [],
  })
})

test('a snippet is text of the message, and one in a forwarded message is a file like any other', () => {
  const snippet = { ...shot, name: 'Untitled', mode: 'snippet' }
  const { attachments, snippets } = filesOf({ files: [snippet], attachments: [{ is_share: true, files: [snippet] }] })
  expect([attachments.length, snippets.length]).toEqual([1, 1])
  expect([attachments[0]?.fromOthers, snippets[0]?.fromOthers]).toEqual([true, undefined])
})

test('a file of another workspace has only its ID, and deleted ones are left out', () => {
  const files = [
    { id: 'F2', file_access: 'check_file_info' },
    { ...shot, mode: 'tombstone' },
    { ...shot, mode: 'hidden_by_limit' },
    {},
    null,
  ]
  expect(filesOf({ files }).attachments).toEqual([{ name: 'file', reference: 'F2' }])
})

test('its name has no line breaks and nothing that cannot be seen', () => {
  expect(filesOf({ files: [{ ...shot, name: 'a\nb\u202Egnp.exe' }] }).attachments[0]?.name).toBe('a bgnp.exe')
})
