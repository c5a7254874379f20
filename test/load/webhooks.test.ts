import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { makeServerWorld, until } from '../helpers/server-process.ts'
import { commented, headersFor, type Posted, SECRET, startDouble } from '../platforms/github-double.ts'

/*
 * 2,000 deliveries in a burst, a fifth of them twice, in any order, through the real server process: each message is
 * handled once, none is lost. Most are commands, which need no agent; each issue also has some that an agent works on.
 */

const ISSUES = 16
const ASKED = 10
const COMMANDS = 90
const DUPLICATES = 400
const AT_ONCE = 100

/** Always the same disorder. */
const shuffled = <T>(all: readonly T[]): T[] => {
  let seed = 42
  const keyed = all.map((one) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return { key: seed, one }
  })
  return keyed.sort((a, b) => a.key - b.key).map(({ one }) => one)
}

const unique: Required<Pick<Posted, 'event' | 'payload' | 'id'>>[] = Array.from({ length: ISSUES }, (_, issue) =>
  Array.from({ length: ASKED + COMMANDS }, (__, n) => ({
    ...commented(n < ASKED ? `@coppice message ${issue}-${n}` : '@coppice /codebases', {
      number: issue + 1,
      id: 10_000 + issue * 1_000 + n,
    }),
    id: `delivery-${issue}-${n}`,
  })),
).flat()

test('2,000 webhooks in a burst: each message handled once, none lost', { timeout: 240_000 }, async () => {
  const double = await startDouble()
  double.permissions.set('alice', { id: 5, permission: 'write' })
  const agent = 'message=$(cat); echo "$message" >> "$HOME/handled.txt"; echo ok'
  await using world = makeServerWorld({
    env: {
      COPPICE_AGENT_COMMAND: agent,
      GITHUB_TOKEN: 'ghp_0123456789abcdef0123',
      GITHUB_WEBHOOK_SECRET: SECRET,
      GITHUB_BOT: 'coppice',
      GITHUB_API_URL: double.url,
    },
  })
  const repo = await world.project()
  await world.json(repo.path, 'codebase', 'add', repo.path, '--github', 'acme/app')
  const server = await world.serve()

  const burst = shuffled([...unique, ...shuffled(unique).slice(0, DUPLICATES)])
  const took: number[] = []
  const answers = new Map<string, number>()
  const began = performance.now()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let posted = burst.pop(); posted !== undefined; posted = burst.pop()) {
        const body = JSON.stringify(posted.payload)
        const headers = headersFor(posted, body)
        const sent = performance.now()
        const response = await fetch(`${server.url}/webhooks/github`, { method: 'POST', headers, body })
        const answer = `${response.status} ${await response.text()}`
        took.push(performance.now() - sent)
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
      }
    }),
  )
  const whole = performance.now() - began
  took.sort((a, b) => a - b)
  const at = (share: number): string => `${(took[Math.floor(took.length * share)] ?? 0).toFixed(0)} ms`
  console.log(
    `2,000 webhooks, ${AT_ONCE} at once: ${(whole / 1_000).toFixed(1)} s; acknowledged p50 ${at(0.5)}, p99 ${at(0.99)}, last ${at(0.9999)}`,
  )
  expect(Object.fromEntries(answers)).toEqual({ '200 accepted': unique.length, '200 duplicate': DUPLICATES })

  await until(
    'every message is handled',
    async () => {
      const now = await server.metrics()
      const open = ['waiting', 'running'].map((state) => now.get(`coppice_messages{state="${state}"}`))
      return open.every((count) => count === 0) || undefined
    },
    200_000,
  )
  console.log(`all handled after ${((performance.now() - began) / 1_000).toFixed(1)} s`)
  const handled = readFileSync(join(world.env['HOME'] ?? '', 'handled.txt'), 'utf8')
    .trim()
    .split('\n')
  const asked = Array.from({ length: ISSUES }, (_, issue) =>
    Array.from({ length: ASKED }, (__, n) => `message ${issue}-${n}`),
  )
  expect(handled.toSorted()).toEqual(asked.flat().toSorted())

  const database = new DatabaseSync(join(world.home, 'coppice.db'), { readOnly: true })
  const one = (sql: string): unknown => database.prepare(sql).get()
  expect(one(`select count(*) as n from inbox where state = 'done'`)).toEqual({ n: unique.length })
  expect(
    one(
      `select count(*) as n from (select inbox_id from outbox where key = 'reply' group by inbox_id having count(*) = 1)`,
    ),
  ).toEqual({ n: unique.length })
  database.close()
  await double.close()
})
