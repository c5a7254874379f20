import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { type ArchonFixture, archonOnPostgres, archonOnSqlite } from '../helpers/archon.ts'
import {
  type CliResult,
  type CliWorld,
  ended,
  type EnvironmentJson,
  main,
  makeCliWorld,
  project,
} from '../helpers/cli.ts'
import { startPostgres } from '../helpers/postgres.ts'
import type { TestRepo } from '../helpers/repo.ts'

type Report = Record<'codebases' | 'environments' | 'conversations' | 'sessions', { taken: number; known: number }> & {
  leftOut: { kind: string; name: string; reason: string }[]
}

let world: CliWorld
let repo: TestRepo
let archon: ArchonFixture
let codebase: string

beforeEach(async () => {
  world = makeCliWorld()
  repo = project(world)
  archon = await archonOnSqlite(world.box.path('archon.db'), 'latest')
  codebase = await archon.insert('codebases', { name: 'shop', default_cwd: repo.path })
})
afterEach(async () => {
  await archon.close()
  world[Symbol.dispose]()
})

const imported = (...more: string[]): Promise<Report> =>
  world.json<Report>('/', 0, 'import', 'archon', archon.address, ...more)
const reasons = ({ leftOut }: Report): string[] => leftOut.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`)
const list = (): Promise<EnvironmentJson[]> => world.json<EnvironmentJson[]>(repo.path, 0, 'worktree', 'list')

const environment = (path: string, more: Record<string, string> = {}): Promise<string> =>
  archon.insert('isolation_environments', {
    codebase_id: codebase,
    workflow_type: 'task',
    workflow_id: path,
    working_path: path,
    branch_name: path,
    ...more,
  })
const conversation = (id: string, more: Record<string, string | number | null> = {}): Promise<string> =>
  archon.insert('conversations', {
    platform_type: 'slack',
    platform_conversation_id: id,
    codebase_id: codebase,
    ...more,
  })

describe('what a row says is looked at before it is believed', () => {
  test('a path that is no linked worktree of the repository', async () => {
    const other = world.box.repo('other')
    const foreign = other.worktree('foreign', '-b', 'foreign').path
    const detached = repo.worktree('detached', '--detach').path
    const copied = repo.worktree('copied-from', '-b', 'copied').path
    cpSync(copied, world.box.path('copy'), { recursive: true })
    const odd = repo.worktree('odd', '-b', 'odd')
    writeFileSync(join(odd.gitDir, 'HEAD'), 'ref: refs/heads/--force\n')
    mkdirSync(world.box.path('plain'))
    const paths: [string, string][] = [
      [repo.path, 'is the main working tree of shop'],
      [repo.commonDir, 'is not a linked worktree of shop'],
      ['/', 'is not a linked worktree of shop'],
      ['/etc', 'is not a linked worktree of shop'],
      ['../project', "its path isn't absolute"],
      ['--force', "its path isn't absolute"],
      [world.box.path('plain'), 'is not a linked worktree of shop'],
      [`${world.box.root}/\u001b[2Jgone\nx`, "x doesn't exist"],
      [foreign, 'is not a linked worktree of shop'],
      [detached, 'has no branch checked out'],
      [world.box.path('copy'), 'points to another directory'],
      [odd.path, `its branch can't be used: it starts with "-"`],
    ]
    for (const [path] of paths) await environment(path)
    const report = await imported()
    expect(report.environments).toMatchObject({ taken: 0 })
    expect(report.leftOut.map(({ reason }) => reason)).toEqual(paths.map(([, why]) => expect.stringContaining(why)))
    expect(await list()).toEqual([])
    const { out } = await world.run('/', 'import', 'archon', archon.address)
    expect(out).toContain('?[2Jgone?x')
    expect(out).not.toContain('\u001b')
  })

  test('a directory that is no repository, and one that leads to another', async () => {
    mkdirSync(join(repo.path, 'sub'))
    mkdirSync(world.box.path('plain'))
    world.box.raw(world.box.root, 'init', '-q', 'empty')
    const linked = world.box.repo('second').worktree('linked', '-b', 'linked').path
    const rows = [join(repo.path, 'sub'), world.box.path('plain'), '/nowhere', 'project', '-x', '/etc/passwd']
    for (const path of [...rows, world.box.path('empty'), linked]) {
      await archon.insert('codebases', { name: `\u0007${path}`, default_cwd: path })
    }
    const dry = await imported('--dry-run')
    const report = await imported()
    expect(reasons(dry)).toEqual(reasons(report))
    expect(report.leftOut.map(({ reason }) => reason)).toEqual([
      expect.stringContaining("isn't its root"),
      expect.stringContaining('is not in a git repository'),
      "/nowhere doesn't exist",
      'its directory is not an absolute path',
      'its directory is not an absolute path',
      '/etc/passwd is not a directory',
      expect.stringContaining('has no commits yet'),
    ])
    // The worktree leads to the repository that it is one of.
    const codebases = await world.json<{ name: string; repository: string }[]>('/', 0, 'codebase', 'list')
    expect(codebases.map(({ name, repository }) => `${name} ${repository}`).sort()).toEqual([
      `linked ${world.box.path('second/.git')}`,
      `shop ${repo.commonDir}`,
    ])
  })

  test('ids that could not be ids', async () => {
    const tree = await environment(repo.worktree('x', '-b', 'x').path)
    const bound = { isolation_env_id: tree }
    await conversation('C\u001b]0;title\u0007', bound)
    await conversation('a\nb')
    await conversation('x'.repeat(501))
    await conversation('fine', { ...bound, platform_type: 'sl ack; rm' })
    const good = await conversation('good', bound)
    const option = await conversation('option', bound)
    const foreign = await conversation('foreign', bound)
    const session = { ai_assistant_type: 'claude', active: 1 }
    await archon.insert('sessions', { ...session, conversation_id: option, assistant_session_id: '--resume' })
    await archon.insert('sessions', {
      ...session,
      conversation_id: foreign,
      ai_assistant_type: 'gemini',
      assistant_session_id: '1',
    })
    await archon.insert('sessions', {
      ...session,
      conversation_id: good,
      assistant_session_id: '0e1f-a.b:c_d'.replace('_', '-'),
    })
    const report = await imported()
    expect(report).toMatchObject({ conversations: { taken: 3 }, sessions: { taken: 1 } })
    expect(reasons(report)).toEqual([
      'conversation slack:C?]0;title?: its ID is empty, too long or has control characters',
      'conversation slack:a?b: its ID is empty, too long or has control characters',
      expect.stringMatching(/^conversation slack:x{294}: its ID is empty, too long/),
      'conversation sl ack; rm:fine: its platform name is invalid',
      "session of slack:option: its ID isn't a valid session ID",
      'session of slack:foreign: unknown agent "gemini"',
    ])
  })

  test('two rows for one worktree or for one work are one', async () => {
    const first = repo.worktree('first', '-b', 'first').path
    const second = repo.worktree('second', '-b', 'second').path
    symlinkSync(first, world.box.path('alias'))
    await environment(first, { workflow_type: 'issue', workflow_id: '1' })
    const twin = await environment(world.box.path('alias'), { branch_name: 'twin' })
    await environment(second, { workflow_type: 'issue', workflow_id: 'issue-1', branch_name: 'second' })
    await conversation('of the twin', { isolation_env_id: twin })
    const dry = await imported('--dry-run')
    const report = await imported()
    expect(reasons(report)).toEqual([`environment second: issue #1 already has a worktree: ${first}`])
    expect(reasons(dry)).toEqual(reasons(report))
    const [only] = await list()
    expect(only).toMatchObject({ path: first, work: { type: 'issue', id: '1' } })
    const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
    expect((await store.conversations.find('slack', 'of the twin'))?.environmentId).toBe(only?.id)
    await store.close()
  })

  test('what Archon has destroyed, what is no worktree, and what it made for itself stay behind', async () => {
    const tree = repo.worktree('x', '-b', 'x').path
    await environment(tree, { status: 'destroyed', branch_name: 'x' })
    await environment(tree, { provider: 'container', branch_name: 'y' })
    await conversation('worker', { hidden: 1 })
    await conversation('dangling', { isolation_env_id: '7b0c' })
    expect(reasons(await imported())).toEqual([
      'environment x: its status in Archon is destroyed',
      'environment y: its provider is container; only worktrees can be imported',
      "environment 7b0c: its path isn't absolute",
      'conversation slack:worker: Archon created it for one of its own workers',
    ])
    expect(await list()).toEqual([])
  })
})

describe('what is there already', () => {
  test('a closed conversation stays closed, lets go of its tree and has no session', async () => {
    const tree = await environment(repo.worktree('x', '-b', 'x').path)
    const id = await conversation('closed', { isolation_env_id: tree, deleted_at: '2026-01-05 00:00:00' })
    await archon.insert('sessions', {
      conversation_id: id,
      ai_assistant_type: 'claude',
      assistant_session_id: 's',
      active: 1,
    })
    expect(reasons(await imported())).toEqual(['session of slack:closed: its conversation is closed'])
    const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
    expect(await store.conversations.find('slack', 'closed')).toMatchObject({
      closedAt: Date.parse('2026-01-05T00:00:00Z'),
      environmentId: undefined,
    })
    await store.close()
  })

  test('linked works find the tree, except where they have one of their own', async () => {
    const metadata = JSON.stringify({ related_issues: [42, 7, -1, 'x'], related_prs: [99], keywords: ['y'] })
    await environment(repo.worktree('x', '-b', 'x').path, { workflow_type: 'pr', workflow_id: '50', metadata })
    await environment(repo.worktree('issue-7', '-b', 'issue-7').path, { workflow_type: 'issue', workflow_id: '7' })
    await environment(repo.worktree('z', '-b', 'z').path, { workflow_id: 'z', metadata: 'not json' })
    expect(await imported()).toMatchObject({ environments: { taken: 3 }, leftOut: [] })
    const found = async (...args: string[]): Promise<string> =>
      (await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', ...args)).branch
    expect(await found('--issue', '42')).toBe('x')
    expect(await found('--issue', '7')).toBe('issue-7')
    expect(await found('--pr', '99')).toBe('x')
  })

  test('an environment of ours is not taken again, and a work that has one keeps it', async () => {
    const own = await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', '--issue', '42')
    await environment(own.path, { workflow_type: 'pr', workflow_id: '1' })
    const theirs = repo.worktree('theirs', '-b', 'theirs').path
    await environment(theirs, { workflow_type: 'issue', workflow_id: '42', branch_name: 'theirs' })
    const report = await imported()
    expect(report.environments).toMatchObject({ taken: 0, known: 1 })
    expect(reasons(report)).toEqual([`environment theirs: issue #42 already has a worktree: ${own.path}`])
    expect(await list()).toMatchObject([{ id: own.id, owned: true, work: { type: 'issue', id: '42' } }])
  })

  test('a session that was ended here does not begin again', async () => {
    const tree = await environment(repo.worktree('x', '-b', 'x').path)
    const id = await conversation('c', { isolation_env_id: tree })
    await archon.insert('sessions', {
      conversation_id: id,
      ai_assistant_type: 'claude',
      assistant_session_id: 's',
      active: 1,
    })
    await imported()
    const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
    const ours = (await store.conversations.find('slack', 'c'))?.id ?? ''
    await store.sessions.end(ours, 'reset', Date.now())
    expect(reasons(await imported())).toEqual(['session of slack:c: it has already ended here'])
    expect(await store.sessions.live(ours)).toBeUndefined()
    await store.close()
  })

  test('a conversation that somebody has spoken in here since is not led back', async () => {
    const path = world.box.path('x')
    const tree = await environment(path)
    await conversation('c', { isolation_env_id: tree, last_activity_at: '2026-01-01 00:00:00' })
    await conversation('silent', { isolation_env_id: tree, last_activity_at: '2026-01-01 00:00:00' })
    await imported()
    const store = await openStore({ sqliteFile: join(world.home, 'coppice.db') })
    const ours = await store.conversations.find('slack', 'c')
    await store.conversations.update(ours?.id ?? '', { lastActivityAt: Date.now() })
    repo.worktree('x', '-b', 'x')
    expect(await imported()).toMatchObject({ environments: { taken: 1 }, conversations: { taken: 1, known: 1 } })
    expect((await store.conversations.find('slack', 'c'))?.environmentId).toBeUndefined()
    expect((await store.conversations.find('slack', 'silent'))?.environmentId).toBeDefined()
    await store.close()
  })

  test('a repository that has moved is recognised by its address', async () => {
    repo.git('remote', 'add', 'origin', 'https://github.com/acme/shop.git')
    await world.json('/', 0, 'codebase', 'add', repo.path)
    const moved = await archon.insert('codebases', {
      name: 'acme/shop',
      default_cwd: '/workspace/shop',
      repository_url: 'https://token@github.com/acme/shop',
    })
    await conversation('there', { codebase_id: moved })
    expect(await imported()).toMatchObject({
      codebases: { taken: 0, known: 2 },
      conversations: { taken: 1 },
      leftOut: [],
    })
  })

  test('what fills the limit is said before anything is imported', async () => {
    await environment(repo.worktree('issue-1', '-b', 'issue-1').path)
    world.env['MAX_WORKTREES_PER_CODEBASE'] = '1'
    const dry = await world.run('/', 'import', 'archon', archon.address, '--dry-run')
    const said = "shop will have 1 worktree, and the limit is 1: you can't create new ones until 1 is removed."
    expect(dry.out).toContain(said)
    const { out } = await world.run('/', 'import', 'archon', archon.address)
    expect(out.indexOf(said)).toBe(0)
    expect(out).toContain('shop has 1 worktree, and the limit is 1')
  })

  test('removing what was taken over lets go of it and deletes nothing', async () => {
    const tree = repo.worktree('issue-1', '-b', 'issue-1').path
    await environment(tree, { workflow_type: 'issue', workflow_id: '1' })
    await imported()
    await world.json(repo.path, 0, 'worktree', 'remove', 'issue-1', '--force')
    expect(await list()).toEqual([])
    expect(readFileSync(join(tree, 'README'), 'utf8')).toBe('hello\n')
    expect(repo.git('branch', '--list', 'issue-1')).toContain('issue-1')
  })
})

describe('which database', () => {
  const given = async (input: string, ...args: string[]): Promise<CliResult> => {
    const child = spawn(process.execPath, [main, 'import', 'archon', ...args], { cwd: world.box.root, env: world.env })
    child.stdin.end(input)
    return ended(child)
  }
  const named = (...args: string[]): Promise<CliResult> => world.run(world.box.root, 'import', 'archon', ...args)

  test('a file, by a path from where one stands, a variable, or standard input', async () => {
    const relative = await named('archon.db', '--json')
    expect(JSON.parse(relative.out)).toMatchObject({ codebases: { taken: 1 } })
    expect((await given(`${archon.address}\nmore`, '-')).out).toBe(
      'Nothing new to import\nAlready imported: 1 repository\n',
    )
    world.env['ARCHON_DATABASE_URL'] = archon.address
    expect((await named()).out).toContain('Already imported: 1 repository')
  })

  test('none, or something else, is wrong usage or one sentence', async () => {
    expect(await named()).toMatchObject({ code: 2, err: expect.stringContaining('ARCHON_DATABASE_URL is not set') })
    expect(await given('', '-')).toMatchObject({ code: 2, err: expect.stringContaining('standard input is empty') })
    const other = await named('mysql://root:hunter2@db/archon')
    expect(other).toMatchObject({ code: 2, err: expect.stringContaining('not a file or a postgres:// URL') })
    expect(other.err).not.toContain('hunter2')
    const missing = await named('nothing.db')
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('no such file') })
    expect(await named('a', 'b')).toMatchObject({ code: 2 })
    const map = await named('archon.db', '--map', '/.archon')
    expect(map).toMatchObject({ code: 2, err: expect.stringContaining('invalid --map "/.archon"') })
    expect((await named('--help')).out).toContain('ARCHON_DATABASE_URL')
  })

  test('a password is never shown, whatever goes wrong', async () => {
    const unreachable = 'postgres://archon:hunter2@127.0.0.1:1/archon'
    for (const args of [[unreachable], [unreachable, '--verbose'], [unreachable, '--json']]) {
      const result = await named(...args)
      expect(result.code).toBe(1)
      expect(result.out + result.err).toContain("can't use the PostgreSQL database")
      expect(result.out + result.err).not.toContain('hunter2')
    }
  })

  test('PostgreSQL on both sides, with a password on the command line only against advice', async () => {
    const server = await startPostgres()
    try {
      const theirs = await archonOnPostgres(await server.freshDatabase(), 'latest')
      const id = await theirs.insert('codebases', { name: 'shop', default_cwd: repo.path })
      await theirs.insert('conversations', { platform_type: 'web', platform_conversation_id: 'w', codebase_id: id })
      world.env['COPPICE_DATABASE_URL'] = await server.freshDatabase()
      const direct = await named(theirs.address)
      expect(direct.err).toContain("don't put passwords on the command line")
      expect(direct.out).toBe('Imported 1 repository and 1 conversation\n  shop: agent claude\n')
      const piped = await given(theirs.address, '-')
      expect(piped).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Already imported') })
      const password = new URL(theirs.address).password
      expect(direct.out + direct.err + piped.out).not.toContain(password)
      // A table in another schema of the same name is not mixed in.
      await theirs.exec('create schema other; create table other.remote_agent_codebases (id int, surprise int)')
      expect((await given(theirs.address, '-')).code).toBe(0)
      expect(await server.connections(theirs.address)).toBe(1)
      // Reading alone could write there, were it not for the transaction.
      await theirs.exec(`
        alter table remote_agent_sessions rename to s; create table log (at text);
        create function note() returns uuid language sql volatile as 'insert into log values (1) returning null::uuid';
        create view remote_agent_sessions as select note() as conversation_id from s;
        insert into s (ai_assistant_type) values ('claude')`)
      expect((await given(theirs.address, '-')).err).toContain('read-only transaction')
      await theirs.close()
    } finally {
      await server.stop()
    }
  })
})
