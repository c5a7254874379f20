import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CliWorld, makeCliWorld } from '../helpers/cli.ts'

let world: CliWorld
beforeEach(() => {
  world = makeCliWorld()
})
afterEach(() => world[Symbol.dispose]())

test('a home that --home names and that was not there is made with a word, once', async () => {
  const home = world.box.path('new', 'home')
  const list = () => world.run('/', 'codebase', 'list', '--home', home)
  const first = await list()
  expect(first).toMatchObject({ code: 0, err: `Created a new home directory at ${home}\n` })
  expect(statSync(home).mode & 0o777).toBe(0o700)
  expect(await list()).toEqual({ ...first, err: '' })
})

test('so is one that COPPICE_HOME names; the JSON answer is nothing but JSON', async () => {
  const home = world.box.path('new')
  world.env['COPPICE_HOME'] = home
  const { out, err } = await world.run('/', 'codebase', 'list', '--json')
  expect(err).toBe(`Created a new home directory at ${home}\n`)
  expect(JSON.parse(out)).toEqual([])
})

/** In a container the default home is /.coppice, which is not the sandbox's to make. */
const inContainer = ['/.dockerenv', '/run/.containerenv'].some((path) => existsSync(path))

test.skipIf(inContainer)('the default home is made without a word', async () => {
  // An empty name is none.
  world.env['COPPICE_HOME'] = ''
  expect((await world.run('/', 'codebase', 'list')).err).toBe('')
  expect(existsSync(join(world.box.home, '.coppice'))).toBe(true)
})
