import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { EnvironmentJson } from '../helpers/cli.ts'
import { writeIn } from '../helpers/repo.ts'
import { makeServerWorld, textsOf } from '../helpers/server-process.ts'

/* Whatever an agent or a repository writes, the server answers, ends when it is told to, and starts again. */

const isHealthy = async (url: string): Promise<boolean> => (await fetch(`${url}/healthz`)).ok

test('an agent that puts FIFOs in the place of files of git freezes neither the server nor its restart', async () => {
  await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: 'sh -s' } })
  const repo = await world.project()
  await world.project('beside')
  let server = await world.serve()
  await server.ask('T1', 'echo one > new.txt', { codebase: 'project' })
  const [tree] = await world.json<EnvironmentJson[]>(repo.path, 'worktree', 'list')
  if (tree === undefined) throw new Error('there is no worktree')
  const record = readFileSync(join(tree.path, '.git'), 'utf8').replace('gitdir: ', '').trim()
  const aside = world.box.path('aside')

  /** Through the agent where there still is one; any process of its user can do the same. */
  const plant = async (place: string): Promise<void> => {
    mkdirSync(dirname(place), { recursive: true })
    if (existsSync(place)) renameSync(place, aside)
    if (place.endsWith('/gitdir')) await server.ask('T1', `mkfifo ${place}`)
    if (!existsSync(place)) execFileSync('mkfifo', [place])
  }
  const repair = (place: string): void => {
    rmSync(place)
    if (existsSync(aside)) renameSync(aside, place)
  }

  const places = [
    join(record, 'gitdir'),
    join(repo.commonDir, 'refs/remotes/origin/HEAD'),
    join(tree.path, 'd/.gitignore'),
  ]
  for (const place of places) {
    await plant(place)
    expect(textsOf(await server.ask('T1', '/diff')).join('\n')).toContain(`${place} is a FIFO`)
    expect(await isHealthy(server.url)).toBe(true)
    expect(textsOf(await server.ask('T2', 'echo works', { codebase: 'beside' })).join('\n')).toContain('works')
    expect((await server.stop('SIGTERM')).code).toBe(0)
    server = await world.serve()
    expect(textsOf(await server.ask('T1', '/diff')).join('\n')).toContain(`${place} is a FIFO`)
    repair(place)
    expect(textsOf(await server.ask('T1', '/diff')).join('\n')).toContain('new.txt')
  }
}, 120_000)

test('a repository with a glob that backtracks, and an agent that prints endless lines, hold up nobody', async () => {
  await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: 'sh -s' } })
  const repo = await world.project()
  const globs = [`${'*a'.repeat(30)}*b`, `${'**/*a*/'.repeat(20)}b`]
  writeIn(repo.path, '.coppice/config.yaml', `worktree:\n  copy: ${JSON.stringify(globs)}\n`)
  repo.commit('a'.repeat(100), 'x\n')
  repo.git('add', '.')
  repo.git('commit', '-qm', 'settings')
  repo.git('push', '-q', 'origin', 'main')
  const server = await world.serve()
  const flood = [
    'head -c 2000000 /dev/zero | tr "\\0" " "; echo end',
    'head -c 300000 /dev/zero | tr "\\0" "\\n"; echo end',
    String.raw`yes "$(printf '\033[31m|*_<@')" | head -n 60000; echo end`,
  ]
  for (const script of flood) {
    expect(textsOf(await server.ask('T1', script)).join('\n')).toContain('end')
    expect(await isHealthy(server.url)).toBe(true)
  }
  expect(textsOf(await server.ask('T1', '/worktree remove')).join('\n')).toContain('Removed')
}, 120_000)
