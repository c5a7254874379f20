import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { makeSandbox } from '../helpers/repo.ts'
import { isAlive, makeServerWorld, type ServerWorld, until } from '../helpers/server-process.ts'
import { aCodebase } from '../helpers/store-values.ts'

const database = ({ home }: ServerWorld): string => join(home, 'coppice.db')

const ways: readonly [string, (world: ServerWorld) => void][] = [
  ['deleted', (world) => ['', '-wal', '-shm'].forEach((name) => rmSync(`${database(world)}${name}`))],
  [
    'replaced by a copy',
    (world) => {
      copyFileSync(database(world), `${database(world)}.copy`)
      renameSync(`${database(world)}.copy`, database(world))
    },
  ],
  ['moved away with the home', (world) => renameSync(world.home, `${world.home}.away`)],
]

describe('a server whose database was', () => {
  test.each(ways)('%s stops with a sentence and exit code 1', async (_, take) => {
    await using world = makeServerWorld()
    await world.project()
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: 'echo done' } })
    await server.ask('before', 'hello')
    take(world)
    const { code, err } = await server.exit
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining(`the database ${database(world)} was deleted or replaced while it was in use`),
    })
  })

  test('deleted during a run ends its agent, and acknowledges nothing after that', async () => {
    await using world = makeServerWorld()
    await world.project()
    const gate = world.box.path('gate')
    mkdirSync(gate)
    const agent = `echo $$ > '${gate}/pid.new'; mv '${gate}/pid.new' '${gate}/pid'; while [ -d '${gate}' ]; do sleep 0.02; done`
    const server = await world.serve({ env: { COPPICE_AGENT_COMMAND: agent } })
    await server.say('long', 'take your time')
    await until('the agent runs', async () => existsSync(join(gate, 'pid')) || undefined)
    const pid = Number(readFileSync(join(gate, 'pid'), 'utf8'))
    rmSync(database(world))
    const late = await server
      .post('/test/message', { conversationId: 'late', message: 'me too' })
      .catch(() => undefined)
    expect(late?.status).not.toBe(202)
    expect((await server.exit).code).toBe(1)
    expect(isAlive(pid)).toBe(false)
  })
})

test('a command that runs for long stops in the same way', async () => {
  await using world = makeServerWorld()
  const repo = await world.project()
  const gate = world.box.path('gate')
  mkdirSync(gate)
  const agent = `touch '${gate}/began'; while [ -d '${gate}' ]; do sleep 0.02; done`
  const chat = world.cliWith({ COPPICE_AGENT_COMMAND: agent }, repo.path, 'chat', 'take your time')
  await until('the agent runs', async () => existsSync(join(gate, 'began')) || undefined)
  rmSync(database(world))
  expect(await chat).toMatchObject({
    code: 1,
    err: expect.stringContaining('was deleted or replaced while it was in use'),
  })
})

describe('the store over a file that was taken away', () => {
  test.each([
    ['deleted', (file: string) => rmSync(file)],
    [
      'replaced',
      (file: string) => {
        writeFileSync(`${file}.new`, '')
        renameSync(`${file}.new`, file)
      },
    ],
    ['without its log', (file: string) => rmSync(`${file}-wal`)],
  ])('%s fails on every read, write and commit, and tells its listeners once', async (_, take) => {
    using box = makeSandbox()
    const file = box.path('coppice.db')
    const store = await openStore({ sqliteFile: file })
    await store.codebases.insert(aCodebase())
    const told: string[] = []
    const heard = new Promise<void>((resolve) => {
      store.onLost(({ code }) => {
        told.push(code)
        resolve()
      })
    })
    const inside = store.transaction(async (transaction) => {
      await transaction.codebases.list('host')
      take(file)
    })
    await expect(inside).rejects.toMatchObject({ code: 'store-lost' })
    await heard
    await expect(store.codebases.list('host')).rejects.toMatchObject({ code: 'store-lost' })
    await expect(store.codebases.remove(aCodebase().id)).rejects.toMatchObject({ code: 'store-lost' })
    expect(told).toEqual(['store-lost'])
    await store.close()
  })

  test('is noticed without anybody asking', async () => {
    using box = makeSandbox()
    const store = await openStore({ sqliteFile: box.path('coppice.db') })
    const heard = new Promise<string>((resolve) => store.onLost(({ code }) => resolve(code)))
    rmSync(box.path('coppice.db'))
    expect(await heard).toBe('store-lost')
    await store.close()
  })
})
