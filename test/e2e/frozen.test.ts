import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { type TestRepo, writeIn } from '../helpers/repo.ts'
import { makeServerWorld, type ServerProcess, type ServerWorld, textsOf } from '../helpers/server-process.ts'

/* Whatever an agent or a repository writes, the server answers, ends when it is told to, and starts again. */

/** The files that become FIFOs, each where it hides no other: by conversation, with the repository that it is about. */
const places: Record<string, [codebase: string, place: (tree: string, repo: TestRepo) => string]> = {
  record: [
    'project',
    (tree) => join(readFileSync(join(tree, '.git'), 'utf8').replace('gitdir: ', '').trim(), 'gitdir'),
  ],
  ref: ['other', (_, { commonDir }) => join(commonDir, 'refs/remotes/origin/HEAD')],
  tree: ['globs', (tree) => join(tree, 'd/.gitignore')],
}

const flood = [
  'head -c 500000 /dev/zero | tr "\\0" " "; echo end',
  'head -c 100000 /dev/zero | tr "\\0" "\\n"; echo end',
  String.raw`yes "$(printf '\033[31m|*_<@')" | head -n 20000; echo end`,
]

const withHostileGlobs = async (world: ServerWorld): Promise<TestRepo> => {
  const repo = await world.project('globs')
  const globs = [`${'*a'.repeat(30)}*b`, `${'**/*a*/'.repeat(20)}b`]
  writeIn(repo.path, '.coppice/config.yaml', `worktree:\n  copy: ${JSON.stringify(globs)}\n`)
  repo.commit('a'.repeat(100), 'x\n')
  repo.git('add', '.')
  repo.git('commit', '-qm', 'settings')
  repo.git('push', '-q', 'origin', 'main')
  return repo
}

test('FIFOs in the place of files of git, a glob that backtracks and endless lines freeze neither the server, nor its restart, nor the work in another worktree', async () => {
  await using world = makeServerWorld({ env: { COPPICE_AGENT_COMMAND: 'sh -s' } })
  const repos = new Map<string, TestRepo>([['globs', await withHostileGlobs(world)]])
  for (const name of ['project', 'other']) repos.set(name, await world.project(name))
  let server = await world.serve()
  const said = async (conversation: string, text: string, codebase?: string): Promise<string> =>
    textsOf(await server.ask(conversation, text, codebase === undefined ? {} : { codebase })).join('\n')

  const planted = await Promise.all(
    Object.entries(places).map(async ([name, [codebase, placeIn]]) => {
      const [tree = ''] = /^\/.*$/m.exec(await said(name, 'echo one > new.txt; pwd', codebase)) ?? []
      const repo = repos.get(codebase)
      if (repo === undefined) throw new Error(`there is no ${codebase}`)
      return { name, place: placeIn(tree, repo), aside: world.box.path(`aside-${name}`) }
    }),
  )
  /** Through the agent where there still is one; any process of its user can do the same. */
  const plant = async ({ name, place, aside }: (typeof planted)[number]): Promise<void> => {
    mkdirSync(dirname(place), { recursive: true })
    if (existsSync(place)) renameSync(place, aside)
    if (name === 'record') await said(name, `mkfifo ${place}`)
    if (!existsSync(place)) execFileSync('mkfifo', [place])
  }
  const eachIsReported = (): Promise<unknown> =>
    Promise.all(
      planted.map(async ({ name, place }) => {
        expect.soft(await said(name, '/diff')).toContain(`${place} is a FIFO`)
        expect.soft(await isHealthy(server), name).toBe(true)
      }),
    )

  for (const one of planted) await plant(one)
  await eachIsReported()
  for (const script of flood) {
    expect.soft(await said('flood', script, 'globs')).toContain('end')
    expect.soft(await isHealthy(server), script).toBe(true)
  }
  expect.soft(await said('flood', '/worktree remove')).toContain('Removed')

  expect((await server.stop('SIGTERM')).code).toBe(0)
  server = await world.serve()
  await eachIsReported()
  for (const { name, place, aside } of planted) {
    rmSync(place)
    if (existsSync(aside)) renameSync(aside, place)
    expect.soft(await said(name, '/diff')).toContain('new.txt')
  }
}, 120_000)

const isHealthy = async ({ url }: ServerProcess): Promise<boolean> => (await fetch(`${url}/healthz`)).ok
