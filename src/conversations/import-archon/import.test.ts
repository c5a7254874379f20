import { cpSync, mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ArchonFixture, archonOnSqlite } from '../../../test/helpers/archon.ts'
import { chatContext } from '../../../test/helpers/chat.ts'
import { handleOne } from '../../../test/helpers/send.ts'
import { makeWorld, type World } from '../../../test/helpers/world.ts'
import { runScheduledCleanup } from '../../cleanup/sweep.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { taskWork, toWork, type Work } from '../../domain/work.ts'
import { baseAndConfig } from '../../isolation/codebases/base-and-config.ts'
import { findEnvironment } from '../../isolation/find.ts'
import { knownPlatforms } from '../../platforms/capabilities.ts'
import { readArchon } from '../../store/archon/archon.ts'
import { importArchon } from './import.ts'
import type { PathMap } from './path-map.ts'
import type { ImportReport } from './report.ts'

let world: World
let archon: ArchonFixture
let codebase: string
/** Archon's home directory. */
let home: string

/** A repository whose history is from the first of January, and Archon's database beside it. */
beforeEach(async () => {
  world = await makeWorld({ context: { ownEnvironment: {} }, settings: { worktreesPerCodebase: 3 } })
  world.box.env['GIT_COMMITTER_DATE'] = '2026-01-01T00:00:00Z'
  world.repo.git('commit', '-q', '--amend', '--no-edit')
  home = join(world.box.home, '.archon')
  mkdirSync(home)
  Object.assign(world.context.ownEnvironment ?? {}, { HOME: world.box.home })
  archon = await archonOnSqlite(join(home, 'archon.db'), 'latest')
  codebase = await archon.insert('codebases', { name: 'acme/project', default_cwd: world.repo.path })
})
afterEach(async () => {
  await archon.close()
  await world[Symbol.asyncDispose]()
})

type Options = { readonly own?: boolean; readonly map?: PathMap; readonly dryRun?: boolean }

const run = async ({ own = false, map = [], dryRun = false }: Options): Promise<ImportReport> => {
  const { context, provider: environments } = world
  const found = await readArchon({ sqliteFile: archon.address }, context.home)
  const signal = new AbortController().signal
  const databaseDirectory = dirname(archon.address)
  const parts = { context, environments, platforms: knownPlatforms }
  return importArchon(parts, found, { dryRun, own, map, databaseDirectory, signal })
}

/** The dry run has to say what the import then does, word for word. */
const imported = async (options: Options = {}): Promise<ImportReport> => {
  const announced = await run({ ...options, dryRun: true })
  const done = await run(options)
  expect({ ...announced, dryRun: false }).toEqual(done)
  return done
}

/** A worktree where Archon puts it, and its row. */
const tree = (name: string, branch = name): string => {
  const path = join(home, 'workspaces', 'acme', 'project', 'worktrees', name)
  world.repo.git('worktree', 'add', '-q', path, '-b', branch)
  return path
}
const row = (path: string, type: string, id: string, more: Record<string, string> = {}): Promise<string> =>
  archon.insert('isolation_environments', {
    codebase_id: codebase,
    workflow_type: type,
    workflow_id: id,
    working_path: path,
    branch_name: path.replace(/^.*\/worktrees\//, ''),
    created_at: '2026-01-05 00:00:00',
    ...more,
  })
const said = (platform: string, id: string, more: Record<string, string | null> = {}): Promise<string> =>
  archon.insert('conversations', {
    platform_type: platform,
    platform_conversation_id: id,
    codebase_id: codebase,
    created_at: '2026-01-05 00:00:00',
    last_activity_at: '2026-01-06 00:00:00',
    ...more,
  })

const of = (work: Work): Promise<IsolatedEnvironment | undefined> =>
  world.context.store.environments.liveByWork(world.codebase.id, work)
const reasons = ({ leftOut }: ImportReport): string[] =>
  leftOut.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`)

describe('two active rows for one worktree, as adoption in Archon makes them', () => {
  test.each([
    ['the adopting one older', ['2026-01-01 00:00:00', '2026-01-02 00:00:00']],
    ['the adopting one younger', ['2026-01-02 00:00:00', '2026-01-01 00:00:00']],
  ])("the directory's name chooses and the others are aliases: %s", async (_, [ofPr = '', ofIssue = '']) => {
    const path = tree('archon/issue-42')
    const adopted = { created_at: ofPr, metadata: '{"adopted":true,"adopted_from":"skill"}' }
    await row(path, 'pr', '99', adopted)
    await row(path, 'issue', '42', { created_at: ofIssue })
    expect(reasons(await imported())).toEqual([])
    const environment = await of(toWork('issue', '42'))
    expect(environment).toMatchObject({ path, work: { type: 'issue', id: '42' } })
    expect(await of(toWork('pr', '99'))).toEqual(environment)
  })

  test('a work with its own worktree keeps that, and the row that loses it is named', async () => {
    const path = tree('archon/issue-42')
    await row(path, 'issue', '42')
    await row(tree('archon/issue-7'), 'issue', '7')
    const second = await archon.insert('codebases', { name: 'acme/project', default_cwd: world.repo.path })
    await row(path, 'issue', '7', { codebase_id: second, branch_name: 'twin' })
    expect(reasons(await imported())).toEqual([
      expect.stringMatching(/^environment twin: its worktree is imported for issue #42 only/),
    ])
    expect((await of(toWork('issue', '7')))?.branch).toBe('archon/issue-7')
  })
})

test('a Discord thread, which Archon knows by its own ID alone, is reached from its channel', async () => {
  const path = tree('archon/thread-1')
  const bound = { isolation_env_id: await row(path, 'thread', '900') }
  await said('discord', '900', bound)
  await imported()
  const { store } = world.context
  const context = chatContext(world)
  const hear = (kind: 'message' | 'closed') =>
    handleOne(context, {
      platform: 'discord',
      conversationId: '300:900',
      kind,
      text: kind === 'closed' ? '' : '/status',
    })
  await hear('message')
  const environment = await of(toWork('thread', '900'))
  expect(await store.conversations.find('discord', '300:900')).toMatchObject({ environmentId: environment?.id })
  expect(await store.conversations.find('discord', '900')).toBeUndefined()
  expect((await of(toWork('thread', '300:900')))?.id).toBe(environment?.id)
  const [answer] = await store.outbox.ofConversation({ platform: 'discord', conversationId: '300:900' }, 10)
  expect(answer?.text).toContain('archon/thread-1')
  // It is the same one when Archon's database is read again.
  expect((await imported()).counts.conversation).toEqual({ taken: 0, known: 1, leftOut: 0 })
  await hear('closed')
  expect((await store.conversations.find('discord', '300:900'))?.closedAt).toBeDefined()
})

describe('the age of a worktree', () => {
  const used = async (work: Work): Promise<string> => new Date((await of(work))?.lastActivityAt ?? 0).toISOString()

  test('is that of its rows, conversations, commits and uncommitted files, not of the import', async () => {
    await row(tree('archon/issue-1'), 'issue', '1')
    const second = await row(tree('archon/issue-2'), 'issue', '2')
    await said('github', 'acme/project#2', { isolation_env_id: second, last_activity_at: '2026-02-02 00:00:00' })
    const third = tree('archon/issue-3')
    world.box.env['GIT_COMMITTER_DATE'] = '2026-03-03T00:00:00Z'
    world.box.raw(third, 'commit', '-q', '--allow-empty', '-m', 'work')
    await row(third, 'issue', '3')
    const fourth = tree('archon/issue-4')
    writeFileSync(join(fourth, 'notes.txt'), 'draft\n')
    utimesSync(join(fourth, 'notes.txt'), new Date('2026-04-04T00:00:00Z'), new Date('2026-04-04T00:00:00Z'))
    await row(fourth, 'issue', '4')
    const report = await imported()
    expect(report.environments.map(({ lastActivityAt }) => new Date(lastActivityAt).toISOString())).toEqual([
      '2026-01-05T00:00:00.000Z',
      '2026-02-02T00:00:00.000Z',
      '2026-03-03T00:00:00.000Z',
      '2026-04-04T00:00:00.000Z',
    ])
    expect(await used(toWork('issue', '4'))).toBe('2026-04-04T00:00:00.000Z')
    expect((await of(toWork('issue', '1')))?.createdAt).toBe(Date.parse('2026-01-05T00:00:00Z'))
  })
})

describe('worktrees that Archon made', () => {
  test('are announced where they fill the limit, and with --own taken over and cleaned up', async () => {
    await row(tree('archon/issue-1'), 'issue', '1')
    await row(tree('archon/task-fix-login'), 'task', 'fix/login')
    await row(tree('feature', 'feature'), 'pr', '9')
    const first = await imported()
    expect(first.overLimit).toEqual([{ codebase: 'project', worktrees: 3, limit: 3, ownable: 3 }])
    expect((await of(toWork('issue', '1')))?.owned).toBe(false)
    const second = await imported({ own: true })
    expect(second).toMatchObject({ environments: [], overLimit: [] })
    expect(second.handedOver.map(({ branch, owned }) => `${branch} ${owned}`)).toEqual([
      'archon/issue-1 true',
      'archon/task-fix-login true',
      'feature true',
    ])
    expect((await imported({ own: true })).handedOver).toEqual([])
    // A person who adopts one keeps it, also when the import is repeated.
    const { path: kept } = second.handedOver[1] ?? {}
    await world.provider.adopt(world.codebase, kept ?? '', { createdBy: 'cli', aliases: [], claim: true })
    expect((await imported({ own: true })).handedOver).toEqual([])
    // What the worktrees are for is long ago, so the next sweep takes them away, with the branches that Archon made.
    const { removed, skipped, errors } = await runScheduledCleanup(world.context, world.provider, world.codebase)
    expect({ skipped, errors }).toEqual({ skipped: [], errors: [] })
    expect(
      removed.map(({ environment, branchDeleted }) => `${environment.branch} ${branchDeleted}`).toSorted(),
    ).toEqual(['archon/issue-1 true', 'feature false'])
  })

  test('are taken over at once with --own, but nothing else is: others, adopted, dirty, a persistent chat', async () => {
    const [own, other, adopted, dirty, renamed] = [
      tree('archon/issue-1'),
      world.repo.worktree('issue-2', '-b', 'issue-2').path,
      tree('archon/issue-3'),
      tree('archon/issue-4'),
      tree('archon/issue-55', 'archon/issue-55'),
    ]
    await row(own, 'issue', '1')
    await row(other, 'issue', '2')
    await row(adopted, 'issue', '3', { metadata: '{"adopted":true}' })
    writeFileSync(join(dirty, 'README'), 'changed\n')
    await row(dirty, 'issue', '4')
    // Not the name that Archon gives to this work.
    await row(renamed, 'task', 'x')
    const chat = await row(tree('archon/issue-6'), 'issue', '6')
    await said('telegram', '5550', { isolation_env_id: chat })
    const { environments } = await imported({ own: true })
    expect(environments.map(({ path, owned }) => [path, owned])).toEqual([
      [own, true],
      [other, false],
      [adopted, false],
      [dirty, false],
      [renamed, false],
      [join(dirname(own), 'issue-6'), false],
    ])
  })

  test('stay adopted where another home of Coppice has taken over', async () => {
    const path = tree('archon/issue-1')
    await row(path, 'issue', '1')
    writeFileSync(join(dirname(dirname(path)), '.coppice-root'), 'another-home\n')
    expect((await imported({ own: true })).environments).toMatchObject([{ path, owned: false }])
  })
})

describe('the names that Archon’s user knows', () => {
  const found = async (ref: string): Promise<string> =>
    (await findEnvironment(world.context, world.codebase, ref, '/')).branch

  test('a branch given to its command line and one given in a chat are found again', async () => {
    await row(tree('archon/task-fix-login'), 'task', 'fix/login')
    await row(tree('archon/task-dark'), 'task', 'task-dark')
    await imported()
    for (const ref of ['fix/login', 'fix-login', 'archon/task-fix-login', 'task-fix-login']) {
      expect(await found(ref)).toBe('archon/task-fix-login')
    }
    for (const ref of ['dark', 'task-dark']) expect(await found(ref)).toBe('archon/task-dark')
    for (const work of [toWork('task', 'fix/login'), taskWork('fix/login')]) {
      expect((await of(work))?.branch).toBe('archon/task-fix-login')
    }
  })

  test('a pull request that shared a worktree through its conversation is an alias', async () => {
    const id = await row(tree('archon/issue-42'), 'issue', '42')
    for (const number of [42, 99]) await said('github', `acme/project#${number}`, { isolation_env_id: id })
    await said('slack', 'C1:1.2', { isolation_env_id: id })
    await imported()
    for (const work of [toWork('pr', '99'), toWork('thread', 'C1:1.2')]) {
      expect((await of(work))?.branch).toBe('archon/issue-42')
    }
    expect(await of(toWork('pr', '42'))).toBeUndefined()
  })

  test('the base branch and the assistant of a repository, and of a conversation where it is another', async () => {
    world.repo.git('branch', 'develop')
    await archon.exec(`update remote_agent_codebases set default_branch = 'develop', ai_assistant_type = 'codex'`)
    await said('slack', 'C1:1.1', { ai_assistant_type: 'claude' })
    await said('slack', 'C1:2.2', { ai_assistant_type: 'codex' })
    await said('slack', 'C1:3.3', { ai_assistant_type: 'pi' })
    const { settings } = await imported()
    expect(settings).toEqual([{ codebase: 'project', base: 'develop', agent: 'codex' }])
    const { store } = world.context
    const after = await store.codebases.get(world.codebase.id)
    expect(after).toMatchObject({ base: 'develop', defaultAgent: 'codex' })
    expect(after && (await baseAndConfig(world.context, after)).base.branch).toBe('develop')
    const agents = ['C1:1.1', 'C1:2.2', 'C1:3.3'].map(
      async (id) => (await store.conversations.find('slack', id))?.agent,
    )
    expect(await Promise.all(agents)).toEqual(['claude', undefined, undefined])
    // What is set here stays.
    await archon.exec(`update remote_agent_codebases set default_branch = 'main', ai_assistant_type = 'claude'`)
    expect((await imported()).settings).toEqual([])
  })
})

describe('what an import cannot do is named, with what to do', () => {
  test('commands, configuration, a missing base branch, an unknown assistant, variables', async () => {
    const put = (path: string, text: string): void => {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
    put(join(world.repo.path, '.archon/commands/plan.md'), 'Plan $1\n')
    put(join(world.repo.path, '.archon/commands/defaults/Fix_Bug.md'), 'Fix $ARGUMENTS\n')
    put(join(world.repo.path, '.archon/commands/status.md'), 'Status\n')
    put(join(world.repo.path, '.archon/commands/done.md'), 'Done\n')
    put(join(world.repo.path, '.coppice/commands/done.md'), 'Done\n')
    put(join(world.repo.path, '.claude/commands/prime.md'), 'Prime\n')
    await archon.exec(`update remote_agent_codebases set commands = '{"prime":{"path":".claude/commands/prime.md"}}'`)
    put(
      join(world.repo.path, '.archon/config.yaml'),
      'assistant: pi\nworktree:\n  baseBranch: gone\n  copyFiles: [.env, data/, ".env.example -> .env", ../x]\n  initSubmodules: false\n  remote: upstream\nenv:\n  KEY: hunter2\n',
    )
    put(join(home, 'config.yaml'), 'defaultAssistant: codex\nconcurrency:\n  maxConversations: 4\nbotName: Bob\n')
    put(
      join(home, '.env'),
      'SLACK_BOT_TOKEN=xoxb-hunter2\nexport WEBHOOK_SECRET="hunter2"\nGITLAB_TOKEN=hunter2\nPORT=3090\nGITEA_URL=\n' +
        'GITHUB_APP_PRIVATE_KEY_PATH=/hunter2.pem\nGITHUB_ALLOWED_USERS=hunter2\nCODEX_ID_TOKEN=hunter2\nDATABASE_URL=hunter2\n',
    )
    const { advice, settings } = await imported()
    expect(settings).toEqual([])
    expect(JSON.stringify(advice)).not.toContain('hunter2')
    expect(advice).toEqual([
      { kind: 'base-missing', codebase: 'project', branch: 'gone' },
      { kind: 'unknown-agent', codebase: 'project', agent: 'pi' },
      {
        kind: 'repository-config',
        codebase: 'project',
        file: '.archon/config.yaml',
        yaml: ['worktree:', '  copy: [".env", "data"]', '  submodules: false'],
        unused: [
          'worktree.remote',
          'env.KEY',
          'worktree.copyFiles ".env.example -> .env"',
          'worktree.copyFiles "../x"',
        ],
      },
      {
        kind: 'commands',
        codebase: 'project',
        files: [
          { file: '.archon/commands/defaults/Fix_Bug.md', name: 'fix-bug', clash: false, positional: false },
          { file: '.archon/commands/plan.md', name: 'plan', clash: false, positional: true },
          { file: '.archon/commands/status.md', name: 'status', clash: true, positional: false },
          { file: '.claude/commands/prime.md', name: 'prime', clash: false, positional: false },
        ],
      },
      {
        kind: 'home-config',
        file: join(home, 'config.yaml'),
        yaml: ['agent:', '  default: "codex"', 'limits:', '  concurrentConversations: 4'],
        unused: ['botName'],
      },
      { kind: 'variable', name: 'CODEX_ID_TOKEN', use: { kind: 'login', program: 'codex' } },
      { kind: 'variable', name: 'DATABASE_URL', use: { kind: 'separate', to: 'COPPICE_DATABASE_URL' } },
      { kind: 'variable', name: 'GITHUB_ALLOWED_USERS', use: { kind: 'user-ids' } },
      {
        kind: 'variable',
        name: 'GITHUB_APP_PRIVATE_KEY_PATH',
        use: { kind: 'content', to: 'GITHUB_APP_PRIVATE_KEY' },
      },
      { kind: 'variable', name: 'GITLAB_TOKEN', use: { kind: 'no-platform', platform: 'GitLab' } },
      { kind: 'variable', name: 'PORT', use: { kind: 'option', to: '--port' } },
      { kind: 'variable', name: 'WEBHOOK_SECRET', use: { kind: 'renamed', to: 'GITHUB_WEBHOOK_SECRET' } },
      { kind: 'allow-list', platform: 'Slack', variable: 'SLACK_ALLOWED_USERS' },
    ])
  })

  test('what nothing here can reach is not counted as taken', async () => {
    await archon.exec(`update remote_agent_codebases set repository_url = 'https://github.com/acme/project'`)
    await said('gitlab', 'acme/project#1')
    await said('gitea', 'acme/project!2')
    await said('github', 'acme/other#3')
    await said('github', 'acme/project#4')
    const report = await imported()
    expect(report.counts.conversation).toEqual({ taken: 1, known: 0, leftOut: 3 })
    expect(reasons(report)).toEqual([
      "conversation gitlab:acme/project#1: Coppice doesn't support gitlab",
      "conversation gitea:acme/project!2: Coppice doesn't support gitea",
      'conversation github:acme/other#3: it is about acme/other, but project is acme/project here',
    ])
  })
})

describe('the paths of a container', () => {
  /** As on the host of a container: git's own files name the paths inside it. */
  const inContainer = (): string => {
    const inside = join(world.box.root, 'inside')
    const clone = join(inside, 'workspaces/acme/shop/source')
    mkdirSync(dirname(clone), { recursive: true })
    world.box.raw(world.box.root, 'clone', '-q', world.repo.path, clone)
    for (const name of ['issue-1', 'issue-2']) {
      world.box.raw(
        clone,
        'worktree',
        'add',
        '-q',
        join(inside, `workspaces/acme/shop/worktrees/archon/${name}`),
        '-b',
        `archon/${name}`,
      )
    }
    renameSync(inside, join(world.box.root, 'volume'))
    return inside
  }

  test('are mapped: git’s files are linked again, and a session of another directory is not resumed', async () => {
    const inside = inContainer()
    const volume = join(world.box.root, 'volume')
    const shop = await archon.insert('codebases', {
      name: 'acme/shop',
      default_cwd: `${inside}/workspaces/acme/shop/source`,
    })
    const theirs = { codebase_id: shop }
    const path = `${inside}/workspaces/acme/shop/worktrees/archon/issue-1`
    const id = await row(path, 'issue', '1', theirs)
    await row(`${inside}/workspaces/acme/shop/worktrees/archon/issue-3`, 'issue', '3', theirs)
    const conversation = await said('slack', 'C1:1.1', { ...theirs, isolation_env_id: id })
    await archon.insert('sessions', {
      conversation_id: conversation,
      ai_assistant_type: 'claude',
      assistant_session_id: 's1',
      active: 1,
    })
    expect(reasons(await run({ dryRun: true }))[0]).toContain(`codebase acme/shop: ${inside}`)
    const report = await imported({ map: [{ from: inside, to: volume }] })
    expect(reasons(report)).toEqual([
      expect.stringContaining(`${volume}/workspaces/acme/shop/worktrees/archon/issue-3 doesn't exist`),
      `session of slack:C1:1.1: it belongs to ${path}, and the agent can't resume it in another directory`,
    ])
    expect(report.environments).toMatchObject([{ path: path.replace(inside, volume), relinked: true }])
    expect(world.box.raw(path.replace(inside, volume), 'status', '--porcelain', '--branch')).toBe('## archon/issue-1')
    expect((await imported({ map: [{ from: inside, to: volume }] })).counts.environment).toMatchObject({
      taken: 0,
      known: 1,
    })
  })

  test('are named with the option that maps them', async () => {
    await archon.insert('codebases', { name: 'acme/shop', default_cwd: '/.archon/workspaces/acme/shop/not-here' })
    expect(reasons(await run({ dryRun: true }))[0]).toMatch(
      /not-here doesn't exist; if it is from Archon's container, use --map \/\.archon=<directory on this machine>$/,
    )
  })

  test.each([
    ['a link to the same directory is followed', 'link', []],
    ['a copy of it keeps its own', 'copy', ['is not a linked worktree of shop']],
    ['a copy of it that git’s record still names', 'recorded', ['points to another directory']],
  ])('are here too: %s', async (_, how, expected) => {
    const inside = inContainer()
    const volume = join(world.box.root, 'volume')
    if (how === 'link') symlinkSync(volume, inside)
    else cpSync(volume, inside, { recursive: true })
    if (how === 'recorded') {
      const record = `${volume}/workspaces/acme/shop/source/.git/worktrees/issue-1`
      writeFileSync(`${volume}/workspaces/acme/shop/worktrees/archon/issue-1/.git`, `gitdir: ${record}\n`)
    }
    const theirs = `${volume}/workspaces/acme/shop/source`
    const shop = await archon.insert('codebases', { name: 'acme/shop', default_cwd: theirs })
    await row(`${inside}/workspaces/acme/shop/worktrees/archon/issue-1`, 'issue', '1', { codebase_id: shop })
    const { environments, leftOut } = await imported({ map: [{ from: inside, to: volume }] })
    expect(environments).toHaveLength(1 - expected.length)
    expect(leftOut.map(({ reason }) => reason)).toEqual(expected.map((why) => expect.stringContaining(why)))
  })
})
