import { expect, test } from 'vitest'
import { openStore } from './open.ts'

/** Nothing listens on port 1. */
const urls = [
  'postgres://me:s3cr3t-word@127.0.0.1:1/db',
  'postgres://me:s3cr3t-word@127.0.0.1:99999999/db',
  'postgres://me:s3cr3t-word @127.0.0.1:nope/db',
  'postgres://127.0.0.1:1/db?user=me&password=s3cr3t-word',
  's3cr3t-word',
  'postgres://me:%E0%A4%As3cr3t-word@127.0.0.1:1/db',
  // The resolver's message names the host, which here is the password too: what comes back must be cleaned.
  'postgres://me:s3cr3t-word.invalid@s3cr3t-word.invalid:1/db',
  'postgres://s3cr3t-word.invalid:1/db?user=me&password=s3cr3t%2Dword.invalid',
]

test.each(urls)('a server that cannot be used is a sentence, and the password is nowhere in it (%#)', async (url) => {
  const error: unknown = await openStore({ postgresUrl: url }, { wait: 2000 }).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'store-failed' })
  const everything = error as Error & { remedy: string; cause?: unknown }
  expect(everything.cause).toBeUndefined()
  expect(`${everything.message} ${everything.remedy} ${everything.stack ?? ''}`).not.toContain('s3cr3t-word')
})
