import { expect, test } from 'vitest'
import { createSecrets } from '../../process/redaction/redact.ts'
import { redactingTokens } from './octokits.ts'

test("an app's tokens are hidden before they are sent or seen, and forgotten when they are worth nothing", async () => {
  const secrets = createSecrets(['a-permanent-token'])
  const text = 'a-token-of-its-own a-token-of-the-installation a-permanent-token'
  const seen: string[] = []
  let now = 0
  const send = redactingTokens(
    async () => {
      seen.push(secrets.redactKnown(text))
      return Response.json({ token: 'a-token-of-the-installation' }, { status: 201 })
    },
    { secrets, clock: () => now },
  )
  const ask = (path: string, token: string) =>
    send(`https://api.github.com${path}`, { headers: { authorization: `bearer ${token}` } })
  const answer = await ask('/app/installations/7/access_tokens', 'a-token-of-its-own')
  seen.push(secrets.redactKnown(text))
  expect(await answer.json()).toEqual({ token: 'a-token-of-the-installation' })
  now += 3 * 3_600_000
  await ask('/repos/acme/app', 'another-token')
  expect([...seen, secrets.redactKnown('another-token')]).toEqual([
    '[hidden] a-token-of-the-installation [hidden]',
    '[hidden] [hidden] [hidden]',
    'a-token-of-its-own a-token-of-the-installation [hidden]',
    '[hidden]',
  ])
})
