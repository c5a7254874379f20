import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { serve } from '../../src/cli/commands/serve.ts'
import type { CliCall } from '../../src/cli/cli-call.ts'
import { makeServerWorld } from '../helpers/server-process.ts'

test('a new token is shown on a terminal and nowhere else', async () => {
  await using world = makeServerWorld()
  const server = await world.serve()
  const { out, err } = await server.stop()
  expect(out).toContain(`token  in ${join(world.home, 'token')}`)
  expect(out + err).not.toContain(server.token)

  const lines: string[] = []
  const shown: string[] = []
  const serving = {
    url: 'http://127.0.0.1:1',
    tokenFile: '/home/ada/.coppice/token',
    newToken: 'the-new-token',
    notices: [],
    stopped: Promise.resolve({ finished: 0, left: 0 }),
  }
  const greet = (given: Partial<CliCall>) =>
    serve.execute({
      values: {},
      words: [],
      live: (text: string) => lines.push(text),
      notice: (text: string) => lines.push(text),
      serve: async () => serving,
      ...given,
    } as unknown as CliCall)
  await greet({ showSecret: (text) => shown.push(text) })
  expect(shown.join('')).toContain('the-new-token')
  await greet({ showSecret: undefined })
  await greet({ showSecret: undefined, live: undefined })
  expect(lines.join('')).not.toContain('the-new-token')
})

test('secrets in a config.yaml that others can read are reported at the start and by doctor, with the remedy', async () => {
  await using world = makeServerWorld()
  const file = join(world.home, 'config.yaml')
  const doctor = async (): Promise<readonly { about: string; state: string; detail: string; remedy: string }[]> => {
    const { out } = await world.cli(world.box.root, 'doctor', '--json')
    const { findings } = JSON.parse(out) as {
      findings: { about: string; state: string; detail: string; remedy: string }[]
    }
    return findings.filter(({ about }) => about === 'config')
  }
  chmodSync(file, 0o644)
  expect(await doctor(), 'there is no secret in it').toEqual([])
  writeFileSync(file, 'worktrees: { spares: 0 }\nplatforms: { telegram: { webhookSecret: a-secret-of-mine } }\n')
  for (const mode of [0o644, 0o640, 0o604]) {
    chmodSync(file, mode)
    expect(await doctor()).toEqual([
      {
        about: 'config',
        state: 'problem',
        detail: `other users can read the secrets in ${file}`,
        remedy: `chmod 600 ${file}`,
      },
    ])
  }
  const open = await (await world.serve()).stop()
  expect(open.out).toContain(`note: other users can read the secrets in ${file}: chmod 600 ${file}\n`)
  expect(open.out).not.toContain('a-secret-of-mine')
  chmodSync(file, 0o600)
  expect(await doctor()).toEqual([])
  expect((await (await world.serve()).stop()).out).not.toContain('other users')
  expect(readFileSync(file, 'utf8')).toContain('a-secret-of-mine')
})
