import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  rmSync,
  mkdtempSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AppError } from '../../domain/errors.ts'
import type { MessageAttachment } from '../../domain/message.ts'
import { gifOf, jpegOf, pngOf, webpOf } from '../../../test/helpers/images.ts'
import { createLogger } from '../../process/log.ts'
import { deleteTree } from '../../process/files/delete-tree.ts'
import { type FetchedAttachments, forgetAttachments } from '../../runs/attachments/directory.ts'
import type { ConversationsContext } from '../context.ts'
import type { Delivery } from '../outbox/delivery.ts'
import { fetchAttachments, MAX_FILE_BYTES } from './fetch.ts'
import { notFetchedContext, notFetchedNotice } from './texts.ts'

const png = pngOf(640, 480)
const log = createLogger({ write: () => undefined, level: 'error', clock: Date.now, redact: (text) => text })

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'attachments-'))
})
afterEach(() => deleteTree(home))

type Content = Uint8Array | string | Error | (() => AsyncIterable<Uint8Array>)

const asked: string[] = []
const fetched = (
  contents: Readonly<Record<string, Content>>,
  more: {
    readonly bytes?: number
    readonly fromOthers?: true
    readonly fileTimeoutMs?: number
    readonly signal?: AbortSignal
    readonly unable?: true
  } = {},
): Promise<FetchedAttachments> => {
  asked.length = 0
  const delivery: Pick<Delivery, 'fetchAttachment'> =
    more.unable === true
      ? {}
      : {
          fetchAttachment: async ({ reference }) => {
            asked.push(reference)
            const content = contents[reference]
            if (content instanceof Error) throw content
            return typeof content === 'function' ? content() : chunksOf(Buffer.from(content ?? ''))
          },
        }
  const attachments = Object.keys(contents).map((name): MessageAttachment => ({
    name,
    reference: name,
    mediaType: 'image/png',
    ...more,
  }))
  const context = {
    deliveries: new Map([['chat', delivery]]),
    isolation: { home, log },
    redact: (text: string) => text.replaceAll('s3cret', '***'),
  } as unknown as ConversationsContext
  const message = { id: 'm-1', platform: 'chat', details: { attachments } }
  return fetchAttachments(context, message, more.signal ?? new AbortController().signal, more.fileTimeoutMs)
}

const chunksOf = async function* (content: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += 65_536) yield content.subarray(at, at + 65_536)
}

const zip = Buffer.from('504b0304140000000800', 'hex')

test('files are stored outside every worktree for us alone, and recognised by their content', async () => {
  const { files, notFetched } = await fetched({
    'shot.jpg': png,
    'notes.md': 'ä note\n',
    'paper.pdf': '%PDF-1.7\n…',
    'log.png': 'plain text',
    'windows.log': Buffer.from('\ufeffhello', 'utf16le'),
  })
  expect(notFetched).toEqual([])
  expect(files.map(({ path, name, mediaType }) => [basename(path), name, mediaType])).toEqual([
    ['shot.jpg.png', 'shot.jpg', 'image/png'],
    ['notes.md', 'notes.md', 'text/plain'],
    ['paper.pdf', 'paper.pdf', 'application/pdf'],
    ['log.png.txt', 'log.png', 'text/plain'],
    ['windows.log', 'windows.log', 'text/plain'],
  ])
  const directory = join(home, 'attachments', 'm-1')
  expect(lstatSync(directory).mode & 0o777).toBe(0o700)
  expect(lstatSync(`${directory}.json`).mode & 0o777).toBe(0o600)
  for (const { path, bytes } of files) {
    expect(path.startsWith(`${directory}/`)).toBe(true)
    expect(lstatSync(path)).toMatchObject({ size: bytes })
    expect(lstatSync(path).mode & 0o777).toBe(0o600)
  }
  expect(readFileSync(files[0]?.path ?? '')).toEqual(png)
})

test('names from a sender leave the directory by no means, and hide or overwrite nothing', async () => {
  const names = [
    '../../../etc/passwd',
    '.bashrc',
    '-rf',
    'a/b\\c\0d.txt',
    'A.txt',
    'a.txt',
    '',
    '...',
    `${'漢'.repeat(300)}.txt`,
    '$(id).txt',
  ]
  const { files } = await fetched(Object.fromEntries(names.map((name) => [name, 'x'])))
  const stored = files.map(({ path }) => basename(path))
  expect(stored).toEqual([
    'etc_passwd.txt',
    'bashrc.txt',
    'rf.txt',
    'a_b_cd.txt',
    'A.txt',
    'a-2.txt',
    'file.txt',
    'file-2.txt',
    `${'漢'.repeat(33)}.txt`,
    'id_.txt',
  ])
  expect(readdirSync(join(home, 'attachments', 'm-1')).toSorted()).toEqual(stored.toSorted())
})

test.each([
  ['a line separator', 'a\u2028- /etc/passwd.txt', 'a- /etc/passwd.txt', 'a-__etc_passwd.txt'],
  ['line breaks and tabs', 'a\n- b\r\n\tc.txt', 'a - b c.txt', 'a_-_b_c.txt'],
  ['a mark that reverses what follows', 'report\u202etxt.exe.txt', 'reporttxt.exe.txt', 'reporttxt.exe.txt'],
  ['other direction marks', 'a\u200e\u200f\u061c\u2066\u2069b.txt', 'ab.txt', 'ab.txt'],
  ['characters without width', 'a\u200b\u2060\ufeff\u00adb.txt', 'ab.txt', 'ab.txt'],
  ['letters that are blank', '\u2800\u3164\u115f\uffa0.txt', '.txt', 'txt.txt'],
  ['control characters', 'a\u001b[2Jb\u0000.txt', 'a[2Jb.txt', 'a_2Jb.txt'],
  ['nothing else', '\u200b\u2028', 'file', 'file.txt'],
  ['half a character', `a\ud83d.txt`, 'a\ufffd.txt', 'a_.txt'],
])('a name with %s is shown without it', async (_what, sent, shown, stored) => {
  const { files, notFetched } = await fetched({ [sent]: 'x', [`x${sent}`]: zip })
  expect(files.map(({ name, path }) => [name, basename(path)])).toEqual([[shown, stored]])
  expect(notFetched.map(({ name }) => name.replace('x ', 'x'))).toEqual([shown === 'file' ? 'x' : `x${shown}`])
})

test('whose files they are is kept, also for a rerun', async () => {
  const first = await fetched({ 'a.txt': 'x' }, { fromOthers: true })
  expect(first.files).toMatchObject([{ name: 'a.txt', fromOthers: true }])
  expect(await fetched({ 'a.txt': 'x' }, { fromOthers: true })).toEqual(first)
  expect(asked).toEqual([])
})

test('what is not passed on is named with the reason, and the rest is', async () => {
  const { files, notFetched } = await fetched({
    'a.zip': Buffer.concat([zip, Buffer.alloc(10_000)]),
    'gone.txt': new AppError('remote-unreachable', 'the app lacks the scope files:read, s3cret'),
    'odd.txt': new Error('https://service.test/file?token=abc'),
    'fine.txt': 'x',
  })
  expect(files.map(({ name }) => name)).toEqual(['fine.txt'])
  expect(notFetchedNotice(notFetched)).toBe(
    "Not passed to the agent: `a.zip` (not a PNG, JPEG, GIF or WebP image, text or PDF), `gone.txt` (the app lacks the scope files:read, ***), `odd.txt` (the service didn't provide it).",
  )
})

test('an image that a model would reject is not passed on, and neither is one larger than any model takes', async () => {
  const { files, notFetched } = await fetched({
    'fine.png': png,
    'large.webp': webpOf(8_000, 1),
    'cut.png': png.subarray(0, -1),
    'cut.jpg': jpegOf(640, 480).subarray(0, -2),
    'page.gif': Buffer.from('GIF89a<html>not found</html>'),
    'wide.png': pngOf(8_001, 1),
    'high.gif': gifOf(1, 8_001),
  })
  expect(files.map(({ name, longestSide }) => [name, longestSide])).toEqual([
    ['fine.png', 640],
    ['large.webp', 8_000],
  ])
  expect(notFetchedNotice(notFetched)).toBe(
    'Not passed to the agent: `cut.png` (the image is damaged or incomplete), `cut.jpg` (the image is damaged or incomplete), `page.gif` (the image is damaged or incomplete), `wide.png` (larger than 8000 × 8000 pixels), `high.gif` (larger than 8000 × 8000 pixels).',
  )
})

test('a file that is said to be too large is not asked for, and one that is stops at the limit', async () => {
  const said = await fetched({ 'a.txt': 'x' }, { bytes: MAX_FILE_BYTES + 1 })
  expect(asked).toEqual([])
  expect(said.notFetched).toEqual([{ name: 'a.txt', why: { kind: 'too-large' } }])
  rmSync(join(home, 'attachments'), { recursive: true })
  let sent = 0
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) {
      sent += 1
      yield Buffer.alloc(1024 * 1024, 'x')
    }
  }
  const real = await fetched({ 'a.txt': endless })
  expect(real.notFetched).toEqual([{ name: 'a.txt', why: { kind: 'too-large' } }])
  expect(sent).toBe(21)
})

test('the download of a kind that is not taken stops at its beginning', async () => {
  let sent = 0
  const film = async function* (): AsyncGenerator<Uint8Array> {
    for (; sent < 20; sent++) yield Buffer.alloc(65_536)
  }
  expect((await fetched({ 'film.png': film })).notFetched).toMatchObject([{ why: { kind: 'kind-not-taken' } }])
  expect(sent).toBeLessThan(2)
})

test('a message may have ten files and 50 MB', async () => {
  const many = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`${n}.txt`, 'x']))
  expect((await fetched(many)).notFetched).toEqual(
    ['10.txt', '11.txt'].map((name) => ({ name, why: { kind: 'too-many' } })),
  )
  rmSync(join(home, 'attachments'), { recursive: true })
  const large = Buffer.alloc(19 * 1024 * 1024, 'x')
  const { files, notFetched } = await fetched({ 'a.txt': large, 'b.txt': large, 'c.txt': large, 'd.txt': 'x' })
  expect(files.map(({ name }) => name)).toEqual(['a.txt', 'b.txt', 'd.txt'])
  expect(notFetched).toEqual([{ name: 'c.txt', why: { kind: 'message-too-large' } }])
})

test('of hundreds of files that are too many, some are named and the rest is counted', async () => {
  const many = Object.fromEntries(Array.from({ length: 410 }, (_, n) => [`${n}.txt`, 'x']))
  const { notFetched } = await fetched(many)
  expect(notFetched).toHaveLength(400)
  expect(notFetchedNotice(notFetched)).toMatch(/`29\.txt` \(a message may have at most 10 files\); and 380 more\.$/)
  expect(notFetchedContext(notFetched).split('\n').slice(-2)).toEqual([
    '- "29.txt": a message may have at most 10 files',
    '- and 380 more',
  ])
})

test('a platform that cannot fetch files says so', async () => {
  expect((await fetched({ 'a.txt': 'x' }, { unable: true })).notFetched).toMatchObject([
    { why: { kind: 'unsupported' } },
  ])
  expect(lstatSync(join(home, 'attachments')).mode & 0o777).toBe(0o700)
})

test('a rerun finds what was fetched, and fetches again what an interrupted attempt left or an agent changed', async () => {
  const contents = { 'a.txt': 'first', 'b.zip': zip, 'c.png': png, 'd.png': png.subarray(0, 60) }
  const first = await fetched(contents)
  expect(await fetched(contents)).toEqual(first)
  expect(asked).toEqual([])
  const record = join(home, 'attachments', 'm-1.json')
  const [file] = first.files
  // Of the size that is recorded.
  const elsewhere = join(home, 'elsewhere')
  writeFileSync(elsewhere, 'third')
  const forged = [
    '{}',
    'x'.repeat(10),
    JSON.stringify({ files: [{ ...file, path: elsewhere }], notFetched: [] }),
    JSON.stringify({
      files: [{ ...file, path: join(home, 'attachments', 'm-1', '..', '..', 'elsewhere') }],
      notFetched: [],
    }),
  ]
  for (const text of forged) {
    writeFileSync(record, text)
    expect(await fetched(contents)).toEqual(first)
    expect(asked).toEqual(Object.keys(contents))
  }
  rmSync(file?.path ?? '')
  symlinkSync('/etc/hostname', file?.path ?? '')
  await fetched(contents)
  expect(asked).toEqual(Object.keys(contents))
  expect(readFileSync(file?.path ?? '', 'utf8')).toBe('first')
})

test('a file that does not arrive in time is named, whatever the platform does about it', async () => {
  const hangs = (): AsyncIterable<Uint8Array> => ({
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
  })
  const { files, notFetched } = await fetched({ 'a.txt': hangs, 'b.txt': 'x' }, { fileTimeoutMs: 50 })
  expect(notFetched).toEqual([{ name: 'a.txt', why: { kind: 'failed', problem: 'the service took too long' } }])
  expect(files.map(({ name }) => name)).toEqual(['b.txt'])
})

test('/stop does not wait for a service that hangs', async () => {
  const stop = new AbortController()
  const hangs = (): AsyncIterable<Uint8Array> => ({
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
  })
  const fetching = fetched({ 'a.txt': hangs }, { signal: stop.signal })
  await expect.poll(() => asked).toEqual(['a.txt'])
  stop.abort('stop')
  await expect(fetching).rejects.toBe('stop')
})

test('files go with their message', async () => {
  await fetched({ 'a.txt': 'x' })
  expect(await forgetAttachments(home, async () => true)).toBe(0)
  expect(readdirSync(join(home, 'attachments'))).toHaveLength(2)
  expect(await forgetAttachments(home, async () => false)).toBe(1)
  expect(readdirSync(join(home, 'attachments'))).toEqual([])
  expect(await forgetAttachments(join(home, 'nowhere'), async () => false)).toBe(0)
})

test('nothing is written or deleted behind a link in place of their directory', async () => {
  const worktree = join(home, 'worktree')
  mkdirSync(join(worktree, 'm-1'), { recursive: true })
  writeFileSync(join(worktree, 'm-1.json'), 'of somebody else')
  symlinkSync(worktree, join(home, 'attachments'))
  const why = { kind: 'failed', problem: "couldn't be stored on the server" }
  expect((await fetched({ 'a.txt': 'x' })).notFetched).toEqual([{ name: 'a.txt', why }])
  expect(readdirSync(worktree)).toEqual(['m-1', 'm-1.json'])
  expect(readdirSync(join(worktree, 'm-1'))).toEqual([])
  // Nor is a record read there.
  const files = [{ path: join(home, 'attachments', 'm-1', 'a.txt'), name: 'a.txt', mediaType: 'text/plain', bytes: 4 }]
  writeFileSync(join(worktree, 'm-1', 'a.txt'), 'evil')
  writeFileSync(join(worktree, 'm-1.json'), JSON.stringify({ files, notFetched: [] }))
  expect((await fetched({ 'a.txt': 'x' })).files).toEqual([])
})

test('old files are not deleted behind a link in place of their directory', async () => {
  const others = join(home, 'photos')
  mkdirSync(join(others, 'holiday'), { recursive: true })
  symlinkSync(others, join(home, 'attachments'))
  expect(await forgetAttachments(home, async () => false)).toBe(0)
  expect(readdirSync(others)).toEqual(['holiday'])
})
