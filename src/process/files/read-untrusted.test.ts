import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  copyUntrusted,
  openUntrusted,
  readUntrusted,
  readUntrustedSync,
  readUntrustedTextSync,
} from './read-untrusted.ts'
import { openLogSync, replaceFileSync, writeNewFileSync } from './replace-file.ts'

let root: string
const at = (name: string): string => join(root, name)
const socket = createServer()

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'coppice-read-'))
  writeFileSync(at('file'), 'content')
  mkdirSync(at('directory'))
  execFileSync('mkfifo', [at('fifo')])
  symlinkSync('/dev/zero', at('device'))
  symlinkSync('nowhere', at('dangling'))
  symlinkSync('file', at('link'))
  symlinkSync('fifo', at('link-to-fifo'))
  writeFileSync(at('huge'), '')
  truncateSync(at('huge'), 2 ** 30)
  await new Promise<void>((resolve) => socket.listen(at('socket'), resolve))
})

afterAll(() => {
  socket.close()
  rmSync(root, { recursive: true, force: true })
})

const unusable: [name: string, kind: RegExp][] = [
  ['directory', /is a directory, not a file/],
  ['fifo', /is a FIFO, not a file/],
  ['socket', /is a socket, a FIFO or a device, not a file/],
  ['device', /is a symbolic link, not a file/],
  ['dangling', /is a symbolic link, not a file/],
  ['link', /is a symbolic link, not a file/],
  ['link-to-fifo', /is a symbolic link, not a file/],
]

describe('reading what an agent can write', () => {
  test.each(unusable)('%s is refused at once, with what it is', async (name, message) => {
    const error = expect.objectContaining({ code: 'unusable-file', message: expect.stringMatching(message) })
    await expect(readUntrusted(at(name))).rejects.toEqual(error)
    expect(() => readUntrustedSync(Buffer.from(at(name)))).toThrow(message)
    await expect(openUntrusted(at(name))).rejects.toEqual(error)
    await expect(copyUntrusted(at(name), at('never'))).rejects.toEqual(error)
    expect(statSync(at('never'), { throwIfNoEntry: false })).toBeUndefined()
  })

  test('what is not there is undefined, and so is what lies below a file', async () => {
    for (const name of ['absent', 'file/absent']) {
      expect(await readUntrusted(at(name))).toBeUndefined()
      expect(readUntrustedSync(at(name))).toBeUndefined()
      expect(await openUntrusted(at(name))).toBeUndefined()
      expect(await copyUntrusted(at(name), at('never'))).toBe(false)
    }
  })

  test('a regular file is read whole, up to its limit', async () => {
    expect((await readUntrusted(at('file'), { maxBytes: 7 }))?.toString()).toBe('content')
    expect(readUntrustedTextSync(at('file'), { maxBytes: 7 })).toBe('content')
    await expect(readUntrusted(at('huge'))).rejects.toThrow(/is too large: 1073741824 bytes \(limit: 1048576\)/)
    expect(() => readUntrustedSync(at('huge'))).toThrow(/is too large/)
    await expect(readUntrusted(at('file'), { maxBytes: 6 })).rejects.toThrow(/too large/)
    expect(() => readUntrustedSync(at('file'), { maxBytes: 6 })).toThrow(/too large/)
  })

  test('a link is followed only when asked, and never to something else than a file', async () => {
    expect(readUntrustedTextSync(at('link'), { followLink: true })).toBe('content')
    expect((await readUntrusted(at('link'), { followLink: true }))?.toString()).toBe('content')
    expect(() => readUntrustedSync(at('link-to-fifo'), { followLink: true })).toThrow(/is a FIFO/)
    expect(() => readUntrustedSync(at('device'), { followLink: true })).toThrow(/is a device/)
    expect(readUntrustedSync(at('dangling'), { followLink: true })).toBeUndefined()
  })

  test('a copy has the bytes and the mode, and overwrites nothing', async () => {
    writeFileSync(at('script'), '#!/bin/sh\n')
    chmodSync(at('script'), 0o750)
    expect(await copyUntrusted(at('script'), at('copy'))).toBe(true)
    expect(readFileSync(at('copy'), 'utf8')).toBe('#!/bin/sh\n')
    expect(statSync(at('copy')).mode & 0o777).toBe(0o750)
    await expect(copyUntrusted(at('file'), at('copy'))).rejects.toMatchObject({ code: 'EEXIST' })
  })
})

describe('writing where an agent can write', () => {
  test('a FIFO or a link under the temporary name is replaced, never written through', () => {
    const temporary = `${at('record')}.${process.pid}.tmp`
    execFileSync('mkfifo', [temporary])
    replaceFileSync(at('record'), 'one')
    symlinkSync(at('file'), temporary)
    replaceFileSync(at('record'), 'two', { sync: true, mode: 0o600 })
    expect(readFileSync(at('record'), 'utf8')).toBe('two')
    expect(readFileSync(at('file'), 'utf8')).toBe('content')
    expect(statSync(at('record')).mode & 0o777).toBe(0o600)
  })

  test('a FIFO in the place of the file itself is replaced', () => {
    execFileSync('mkfifo', [at('place')])
    replaceFileSync(at('place'), 'one')
    expect(readFileSync(at('place'), 'utf8')).toBe('one')
    rmSync(at('place'))
    execFileSync('mkfifo', [at('place')])
    writeNewFileSync(at('place'), 'two')
    expect(readFileSync(at('place'), 'utf8')).toBe('two')
  })

  test('a log that is a FIFO is an error, also when somebody reads it', () => {
    expect(() => openLogSync(at('fifo'))).toThrow(/a socket, a FIFO or a device/)
    const reader = openSync(at('fifo'), constants.O_RDONLY | constants.O_NONBLOCK)
    expect(() => openLogSync(at('fifo'))).toThrow(/is a FIFO/)
    closeSync(reader)
  })
})
