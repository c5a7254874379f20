import { existsSync, renameSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive, makeServerWorld } from '../helpers/server-process.ts'

const worker = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')

/** Everything is stale at once, and there is room for one. */
const config = `
worktrees: { spares: 0 }
cleanup: { staleDays: 0, restoreDays: 1 }
limits: { worktreesPerCodebase: 1 }
fleet: { session: process, pools: { workers: { command: 'sh ${worker}', names: [alder] } } }
`

type AgentJson = {
  readonly session: { readonly pid: number }
  readonly environment: { readonly id: string; readonly path: string; readonly branch: string }
}

test('no way of removing takes the worktree of an agent that is at work', async () => {
  await using world = makeServerWorld({ config })
  const repo = await world.project()
  await world.json(repo.path, 'item', 'add', 'Fix login')
  const { session, environment } = await world.json<AgentJson>(repo.path, 'sling', '1')
  const { id, path, branch } = environment
  // Merged, clean and unused for ever, as far as git can tell.
  world.box.raw(path, 'commit', '-q', '--allow-empty', '-m', 'work')
  repo.git('merge', '-q', '--no-ff', branch, '-m', 'merge')
  repo.git('push', '-q', 'origin', 'main', branch)
  const server = await world.serve()
  const tried: string[] = []
  const stays = (how: string): void => {
    tried.push(how)
    expect({ how, isThere: existsSync(path), isAlive: isAlive(session.pid) }).toEqual({
      how,
      isThere: true,
      isAlive: true,
    })
    expect({ how, at: world.box.raw(path, 'log', '-1', '--format=%s') }).toEqual({ how, at: 'work' })
  }
  const commands: readonly (readonly [string, number])[] = [
    [`worktree remove ${branch}`, 3],
    [`worktree remove ${branch} --force`, 3],
    [`worktree remove ${path} --force`, 3],
    [`worktree remove ${id} --force`, 3],
    ['worktree remove item-1 --force', 3],
    ['worktree cleanup merged', 0],
    ['worktree cleanup stale', 0],
    ['cleanup', 0],
    ['doctor --fix', 0],
    ['item close 1', 3],
    ['item reopen 1', 3],
    ['worktree create another', 3],
    ['codebase remove project', 3],
    ['fleet up', 0],
    ['sling 1', 3],
  ]
  for (const [words, expected] of commands) {
    const { code, out, err } = await world.cli(repo.path, ...words.split(' '))
    expect({ words, code, out, err }).toMatchObject({ code: expected })
    stays(words)
  }
  for (const text of [`/worktree remove ${branch} --force`, '/worktree cleanup merged', '/worktree cleanup stale']) {
    await server.ask('T1', text)
    stays(text)
  }
  // A conversation that worked there, and is closed.
  await server.ask('T2', `/worktree link item-1`)
  await server.close('T2')
  stays('a closed conversation')
  for (const force of [false, true]) {
    const { status } = await server.call(`/api/environments/${id}?force=${force}`, { method: 'DELETE' })
    expect(status).toBe(409)
    stays(`DELETE, force=${force}`)
  }
  // Away for a moment, as a directory on a disk that is not mounted: what takes it up anew must leave the agent alone.
  renameSync(path, `${path}.away`)
  for (const words of ['fleet up', 'cleanup', 'doctor', 'item close 1']) await world.cli(repo.path, ...words.split(' '))
  renameSync(`${path}.away`, path)
  stays('gone for a moment')
  expect(tried).toHaveLength(22)
  expect(await world.json(repo.path, 'item', 'show', '1')).toMatchObject({ state: 'hooked', agent: 'alder' })
  expect(await world.cli(repo.path, 'fleet', 'down')).toMatchObject({ code: 0 })
  expect(isAlive(session.pid)).toBe(false)
  expect((await world.cli(repo.path, 'item', 'close', '1')).out).toContain('Closed item 1')
  expect((await world.cli(repo.path, 'item', 'close', '1')).out).toBe('Item 1 is already closed: Fix login\n')
  expect((await world.cli(repo.path, 'item', 'park', '1')).code).toBe(3)
})
