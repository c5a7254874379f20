import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import type { SessionKind } from '../../src/domain/fleet/agent.ts'
import { runnableKinds } from '../helpers/tmux.ts'
import { processesAt } from '../helpers/invariants.ts'
import { makeServerWorld, onDatabase, type ServerProcess, type ServerWorld, until } from '../helpers/server-process.ts'
import { startDouble } from '../platforms/github-double.ts'

/*
 * Five items with dependencies, a pool of three, done in each way, an evening and a morning, a lost database, a clean
 * end: the real command line, server, tmux, git and database. Agents are a shell that runs what it is told.
 */

const worker = resolve(import.meta.dirname, '../helpers/fleet-worker.sh')

type ItemJson = {
  readonly id: number
  readonly state: string
  readonly ready: boolean
  readonly agent: string | null
  readonly environment: { readonly path: string; readonly branch: string } | null
  readonly pullRequest: string | null
}
type AgentJson = {
  readonly name: string
  readonly state: string
  readonly item: number | null
  readonly session: { readonly kind: string; readonly pid: number } | null
  readonly environment: { readonly path: string; readonly branch: string } | null
}
type StatusJson = {
  readonly agents: readonly AgentJson[]
  readonly pools: readonly unknown[]
  readonly items: Readonly<Record<string, number>>
  readonly needsYou: readonly unknown[]
}

const configOf = (databaseUrl: string | undefined, session: SessionKind): string => `
worktrees: { spares: 0 }
${databaseUrl === undefined ? '' : `database: { url: '${databaseUrl}' }`}
fleet:
  session: ${session}
  patrolSeconds: 1
  pools:
    workers: { command: 'sh ${worker}', max: 3, names: [alder, beech, cedar], done: push }
`

const withCommit = (name: string, then = ''): string => `commit ${name}${then === '' ? '' : ` && ${then}`}`

/** With tmux where it is installed; `npm run test:every-case` adds PostgreSQL with sessions without a terminal. */
onDatabase('sqlite', (database, engine) => {
  const session: SessionKind = engine === 'sqlite' ? runnableKinds[0] : 'process'

  test(`the story of a fleet (sessions: ${session})`, async () => {
    const github = await startDouble()
    const address = (await database())['COPPICE_DATABASE_URL']
    const config = configOf(address, session)
    await using world = makeServerWorld({ config })
    const login = { GITHUB_TOKEN: 'ghp_x', GITHUB_API_URL: github.url }
    const repo = world.box.repo('app')
    const origin = world.box.bare('origin.git').path
    repo.git('remote', 'add', 'origin', origin)
    repo.git('push', '-q', '-u', 'origin', 'main')
    repo.git('remote', 'set-head', 'origin', 'main')
    await world.json(world.box.root, 'codebase', 'add', repo.path, '--github', 'acme/app')
    github.branches = () => world.box.raw(origin, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')
    const coppice = <T>(...words: string[]): Promise<T> => world.json<T>(repo.path, ...words)
    const refused = async (...words: string[]): Promise<string> => {
      const { code, out, err } = await world.cli(repo.path, ...words)
      expect({ words, code, out, err }).toMatchObject({ code: 3 })
      return out + err
    }
    const item = (id: number): Promise<ItemJson> => coppice<ItemJson>('item', 'show', String(id))
    const status = (): Promise<StatusJson> => coppice<StatusJson>('fleet', 'status')
    const order = (agent: string, line: string) => coppice('nudge', agent, line)
    const inState = (id: number, state: string): Promise<ItemJson> =>
      until(`item ${id} is ${state}`, async () => {
        const found = await item(id)
        return found.state === state ? found : undefined
      })
    const isGone = (name: string) =>
      until(`${name} is gone`, async () => (await status()).agents.every((one) => one.name !== name) || undefined)

    // Morning. Two are ready, three wait; one comes from a chat, which follows it.
    const server: ServerProcess = await world.serve({ env: login })
    await server.ask('T1', '/codebase app')
    expect(await server.ask('T1', '/item add "Fix login"')).toMatchObject([
      { role: 'system', text: expect.stringContaining('Added item') },
    ])
    for (const [title, ...after] of [['Docs', '1'], ['API'], ['UI', '3'], ['Tests', '1']] as const) {
      await coppice('item', 'add', title ?? '', ...after.flatMap((id) => ['--after', id]))
    }
    expect((await coppice<ItemJson[]>('item', 'ready')).map(({ id }) => id)).toEqual([1, 3])
    expect(await refused('sling', '2')).toContain('item 2 waits for item 1')
    expect(await server.ask('T1', '/sling 1')).toMatchObject([
      { role: 'system', text: expect.stringContaining('is working on item 1') },
    ])
    const first = (await item(1)).agent ?? ''
    expect(['alder', 'beech', 'cedar']).toContain(first)
    await coppice('sling', '3')
    await expectAgents(world, status, 2, session)

    // Done by pushing: the branch is on the remote, the name is free again, the thread knows.
    await order(first, withCommit('login', 'coppice done'))
    await inState(1, 'closed')
    await isGone(first)
    const pushed = world.box.raw(origin, 'for-each-ref', '--format=%(refname:short)', `refs/heads/agent/${first}-*`)
    expect(pushed).not.toBe('')
    await until('the thread has heard of it', async () => {
      const texts = (await server.messages('T1')).map(({ text }) => text)
      const isTold = (part: string): boolean => texts.some((text) => text.includes(part))
      return ['is pushed to the branch', 'is closed'].every(isTold) || undefined
    })
    expect((await coppice<ItemJson[]>('item', 'ready')).map(({ id }) => id)).toEqual([2, 5])

    // Done by giving it up for good: what it was needed for is ready.
    const third = (await item(3)).agent ?? ''
    await order(third, 'coppice done --mode discard --close')
    await inState(3, 'closed')
    await isGone(third)

    // Done by a pull request, which the server opens: an agent has no login.
    const second = (await coppice<AgentJson>('sling', '2')).name
    expect([first, third]).toContain(second)
    await order(second, withCommit('docs', 'coppice done --mode pr'))
    const reviewed = await inState(2, 'in_review')
    expect(reviewed.pullRequest).toContain('acme/app/pull/')
    await isGone(second)
    expect(existsSync(reviewed.environment?.path ?? '')).toBe(true)

    // Done by landing: the server brings it onto the base branch of the remote, and the worktree goes.
    const fourth = (await coppice<AgentJson>('sling', '4')).name
    await order(fourth, withCommit('ui', 'coppice done --mode land'))
    await inState(4, 'landed')
    await isGone(fourth)
    expect(world.box.raw(origin, 'log', '--format=%s', 'main').split('\n')).toContain('ui')

    // Evening: half of the last one is done. Everything stays.
    const fifth = (await coppice<AgentJson>('sling', '5')).name
    await order(fifth, `${withCommit('tests')}; echo half >half.txt`)
    const tree = (await item(5)).environment
    await until('half of it is done', async () => existsSync(join(tree?.path ?? '', 'half.txt')) || undefined)
    expect((await server.stop()).code).toBe(0)
    const evening = await coppice<{ stopped: AgentJson[]; problems: unknown[] }>('fleet', 'down')
    expect(evening).toMatchObject({ stopped: [{ name: fifth, environment: tree }], problems: [] })
    expect(processesAt(world.box.root).filter(([, command]) => !command.startsWith('tmux '))).toEqual([])
    expect(await item(5)).toMatchObject({ state: 'hooked', agent: fifth, environment: tree })
    expect(await refused('sling', '5')).toContain('the fleet is down')

    // The next morning it continues in the same worktree, and so it does after the database was lost.
    await coppice('fleet', 'up')
    expect((await status()).agents).toMatchObject([{ name: fifth, state: 'working', item: 5, environment: tree }])
    await coppice('fleet', 'down')
    if (address === undefined)
      for (const end of ['', '-wal', '-shm']) rmSync(join(world.home, `coppice.db${end}`), { force: true })
    else writeFileSync(join(world.home, 'config.yaml'), configOf((await database())['COPPICE_DATABASE_URL'], session))
    const up = await coppice<{ rebuilt: { agents: string[]; items: number[] }; problems: unknown[] }>('fleet', 'up')
    expect(up).toMatchObject({ rebuilt: { agents: [fifth], items: [2, 5] }, problems: [] })
    expect(await item(5)).toMatchObject({ state: 'hooked', agent: fifth, environment: { path: tree?.path } })
    expect((await item(2)).state).toBe('in_review')
    expect((await status()).agents).toMatchObject([{ name: fifth, state: 'working', item: 5 }])
    expect(readFileSync(join(tree?.path ?? '', 'half.txt'), 'utf8')).toBe('half\n')
    const primed = world.box.path('primed.json')
    await order(fifth, `coppice prime --json >'${primed}.new' && mv '${primed}.new' '${primed}'`)
    await until('it was primed', async () => existsSync(primed) || undefined)
    expect(JSON.parse(readFileSync(primed, 'utf8'))).toMatchObject({
      item: { id: 5, title: 'Tests' },
      agent: { name: fifth },
      commits: [{ subject: 'tests' }],
      uncommitted: { untracked: 1 },
    })

    // What is not committed is refused; then it is done, without a server.
    const said = world.box.path('said.txt')
    await order(fifth, `coppice done >'${said}' 2>&1; echo "exit $?" >>'${said}'`)
    await until(
      'it was refused',
      async () => (existsSync(said) && /^exit 3$/m.test(readFileSync(said, 'utf8'))) || undefined,
    )
    expect(readFileSync(said, 'utf8')).toContain('1 untracked')
    await order(fifth, 'git add -A && git commit -qm half && coppice done')
    await inState(5, 'closed')
    await isGone(fifth)

    // A clean end: what has nothing of its own goes, and its item is open again.
    await coppice('item', 'add', 'Later')
    const sixth = await coppice<AgentJson>('sling', '6')
    const clean = await coppice<{ removed: AgentJson[]; kept: unknown[]; problems: unknown[] }>(
      'fleet',
      'down',
      '--clean',
    )
    expect(clean).toMatchObject({ removed: [{ name: sixth.name }], kept: [], problems: [] })
    expect((await item(6)).state).toBe('open')
    expect(existsSync(sixth.environment?.path ?? '')).toBe(false)
    // One that waits for a merge keeps its worktree until a person says that it is finished.
    const path = reviewed.environment?.path ?? ''
    expect(existsSync(path)).toBe(true)
    expect(await coppice('item', 'close', '2')).toMatchObject({ state: 'closed', worktree: { removed: true } })
    expect(existsSync(path)).toBe(false)
    expect(await coppice('worktree', 'list')).toEqual([])

    // Nothing is lost, and nothing is left.
    const kept = world.box.raw(repo.path, 'log', '--all', '--format=%s').split('\n')
    for (const subject of ['login', 'docs', 'ui', 'tests', 'half']) expect(kept).toContain(subject)
    await until('nothing runs', async () => processesAt(world.box.root).length === 0 || undefined)
    expect(readdirSync(join(world.home, 'fleet', 'agents'))).toEqual([])
    const trees = readdirSync(join(world.home, 'worktrees'), { recursive: true }).map(String)
    expect(trees.filter((path) => path.includes('agent-'))).toEqual([])
    expect(repo.git('worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(1)
    await github.close()
  })
})

/** Both sides of each hook, and a real process for each agent. */
const expectAgents = async (
  world: ServerWorld,
  status: () => Promise<StatusJson>,
  count: number,
  kind: SessionKind,
): Promise<void> => {
  const { agents } = await status()
  expect(agents).toHaveLength(count)
  for (const { session, environment, state } of agents) {
    expect({ state, kind: session?.kind }).toEqual({ state: 'working', kind })
    expect(existsSync(`/proc/${session?.pid}`)).toBe(true)
    expect(existsSync(environment?.path ?? '')).toBe(true)
    expect(environment?.path.startsWith(world.box.root)).toBe(true)
  }
}
