import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { AppError, toAppError } from '../../src/domain/errors.ts'
import type { ProviderName } from '../../src/domain/provider-name.ts'
import { plain } from '../../src/commands/views/view.ts'
import { runCli } from '../../src/cli/run.ts'
import { knownPlatforms } from '../../src/platforms/capabilities.ts'
import { examineCodebase, examineHome } from '../../src/cli/doctor/records.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { dropSpares, keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { makeChat } from '../helpers/chat.ts'
import { checkInvariants, checkRecoveredOnce } from '../helpers/invariants.ts'
import { type TestRepo, writeIn } from '../helpers/repo.ts'
import { resolved } from '../isolation/scene.ts'
import { takeInventory } from './inventory.ts'
import { abandon, abandonAt } from './abandon.ts'
import { temporaryOf } from './kill.ts'
import { createIssue, operations } from './operations.ts'
import { everyCase } from '../helpers/every-case.ts'
import { makeDirty, makeFive, makeScenarioWorld } from './arrange.ts'
import type { World, WorldOptions } from '../helpers/world.ts'
import { messageIn, remedyIn, said } from '../helpers/words.ts'
import { noFleet } from '../helpers/no-fleet.ts'

/** Somebody finds the half-made directory and works in it before anyone has recovered. */
const meddlings: Record<string, (path: string, git: (...args: string[]) => string) => void> = {
  'a file': (path) => writeIn(path, 'found.ts', 'a file in a half-made tree\n'),
  'an edit': (path) => writeIn(path, 'README', 'an edit in a half-made tree\n'),
  'an edit that a filter hides': (path, git) => {
    writeIn(path, 'a.nb', 'one\nhidden in a half-made tree\n')
    git('add', 'a.nb')
  },
  'an ignored file': (path) => writeIn(path, 'found.local', 'an ignored file in a half-made tree\n'),
  'a staged file': (path, git) => {
    writeIn(path, 'found.ts', 'staged in a half-made tree\n')
    git('add', 'found.ts')
  },
  'content that is only staged': (path, git) => {
    writeIn(path, 'found.ts', 'only staged in a half-made tree\n')
    git('add', 'found.ts')
    rmSync(join(path, 'found.ts'))
  },
  'a file below a submodule that was never fetched': (path) => writeIn(path, 'sub/found.ts', 'below a submodule\n'),
  'an edit in a submodule': (path) => writeIn(path, 'lib/a.txt', 'edited in a submodule\r\n'),
  'an ignored file in a submodule': (path) => writeIn(path, 'lib/found.local', 'ignored in a submodule\n'),
  'an edit in a submodule that a filter hides': (path, git) => {
    writeIn(path, 'lib/a.nb', 'one\nhidden in a submodule\n')
    git('-C', 'lib', 'add', 'a.nb')
  },
  'a commit': (path, git) => {
    writeIn(path, 'found.ts', 'committed in a half-made tree\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
  },
  'a commit on a detached HEAD': (path, git) => {
    git('checkout', '-q', '--detach')
    writeIn(path, 'found.ts', 'committed on no branch\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
  },
  'a commit that was taken back': (path, git) => {
    writeIn(path, 'found.ts', 'only in the reflog\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
    git('reset', '-q', '--hard', 'HEAD~1')
  },
  'a stranger’s own branch': (path, git) => {
    git('checkout', '-q', '-b', 'their-own')
    writeIn(path, 'found.ts', 'on a branch of their own\n')
    git('add', 'found.ts')
    git('commit', '-q', '-m', 'found')
  },
}

/** A filter drops all lines but the first, another keeps the size, and a checkout writes CRLF. */
const filtered: WorldOptions = {
  prepare: (repo, box) => {
    box.raw(repo.path, 'config', '--global', 'filter.strip.clean', 'head -n 1')
    box.raw(repo.path, 'config', '--global', 'filter.lower.clean', 'tr A-Z a-z')
    withFilters(repo)
  },
}

const withFilters = (repo: TestRepo): void => {
  repo.write('.gitattributes', '*.nb filter=strip\n*.low filter=lower\n*.txt text eol=crlf\n')
  for (const path of ['a.nb', 'a.low']) repo.write(path, 'one\n')
  repo.git('add', '-A')
  repo.commit('a.txt', 'one\ntwo\n')
}

const addSubmodule = ({ box, repo }: World): void => {
  const lib = box.repo('lib')
  lib.write('.gitignore', '*.local\n')
  withFilters(lib)
  repo.git('submodule', '--quiet', 'add', lib.path, 'lib')
  repo.git('commit', '-q', '-m', 'lib')
}

const spared: WorldOptions = { settings: { spares: 1 } }

/** A half-made worktree of its own for each, so that what one holds keeps no other. */
const makeHalf = async (world: World, kinds: readonly string[], at: string): Promise<void> => {
  for (const [i, what] of kinds.entries()) {
    await abandon(world, createIssue(i + 1), at)
    const path = join(world.context.worktreesBase, 'project', `issue-${i + 1}`)
    meddlings[what]?.(path, (...args) => world.box.raw(path, ...args))
  }
}

const ofSubmodules = Object.keys(meddlings).filter((what) => what.includes('in a submodule'))
const ofTrees = Object.keys(meddlings).filter((what) => !ofSubmodules.includes(what))

test.each([
  ['a half-made worktree', ofTrees],
  ['a half-made worktree with a submodule', ofSubmodules],
])('whatever is put into %s survives recovery', async (_where, kinds) => {
  await using world = await makeScenarioWorld({ options: filtered })
  if (kinds === ofSubmodules) addSubmodule(world)
  else {
    world.repo.commit('.coppice/config.yaml', 'worktree:\n  submodules: false\n')
    world.repo.git('update-index', '--add', '--cacheinfo', `160000,${world.repo.sha()},sub`)
    world.repo.git('commit', '-q', '-m', 'sub')
  }
  const early = await takeInventory(world)
  await makeHalf(world, kinds, kinds === ofSubmodules ? 'create.dressed' : 'create.attached')
  const before = { ...(await takeInventory(world)), branches: early.branches }
  const mayKeep = ['their-own', ...kinds.map((_what, i) => `issue-${i + 1}`)]
  const expectations = { before, mayKeep, temporary: temporaryOf(world) }
  expect((await reconcile(world.context, world.codebase)).left).toEqual([])
  expect(await checkInvariants(world, expectations)).toEqual([])
  expect(await checkRecoveredOnce(world)).toEqual([])
  // Without a commit there is nothing that the next one could meet.
  for (const [i, what] of kinds.entries()) {
    if (i === 0 || /commit|branch/.test(what)) await createIssue(i + 1)(world.context, world.codebase)
  }
  expect(await checkInvariants(world, expectations)).toEqual([])
})

test('what a checkout wrote is nobody’s work, whatever it was converted to and even if only half of it is there', async () => {
  await using world = await makeScenarioWorld({ options: filtered })
  addSubmodule(world)
  await abandonAt(world, 'create-fresh', 'create.dressed')
  const [entry] = await world.context.store.journal.open(world.context.host)
  // As if git had been killed in the middle of it.
  await world.context.store.journal.advance(entry?.id ?? '', { step: 'adding' })
  const path = join(world.context.worktreesBase, 'project', 'issue-1')
  expect(readFileSync(join(path, 'lib/a.txt'), 'utf8')).toBe('one\r\ntwo\r\n')
  expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('one\r\ntwo\r\n')
  writeIn(path, 'a.txt', 'one\r\ntw')
  expect((await reconcile(world.context, world.codebase)).left).toEqual([])
  expect(existsSync(path)).toBe(false)
  expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
})

test('a file put into a half-made spare survives recovery', async () => {
  await using world = await makeScenarioWorld({ options: spared })
  await abandonAt(world, 'spare', 'spare.token')
  const [entry] = await world.context.store.journal.open(world.context.host)
  const path = String(entry?.data['path'])
  writeIn(path, 'found.ts', 'a file in a half-made spare\n')
  const before = await takeInventory(world)
  await reconcile(world.context, world.codebase)
  expect((await checkInvariants(world, { before })).filter((problem) => problem.startsWith('G1'))).toEqual([])
})

test.each([
  ['a file', 'found.ts', 'found\n'],
  ['an edit that a filter hides', 'a.nb', 'one\nhidden\n'],
  ['an edit that a filter hides and that keeps the size', 'a.low', 'ONE\n'],
])('%s put into a waiting spare stays there, and is in no environment', async (_what, file, content) => {
  await using world = await makeScenarioWorld({ options: { ...spared, ...filtered } })
  await keepSpares(world.context, world.codebase)
  const [spare] = await world.context.store.spares.list(world.codebase.id)
  const path = spare?.path ?? ''
  writeIn(path, file, content)
  // Git shows one of another size until it is staged.
  if (file === 'a.nb') world.box.raw(path, 'add', file)
  // The spare would have to be brought to this commit.
  for (const name of ['a.nb', 'a.low']) world.repo.commit(name, 'two\n')
  await operations['create-fresh'](world.context, world.codebase)
  const made = join(world.context.worktreesBase, 'project', 'issue-1')
  expect(existsSync(join(made, 'found.ts'))).toBe(false)
  for (const name of ['a.nb', 'a.low']) expect(readFileSync(join(made, name), 'utf8')).toBe('two\n')
  expect(readFileSync(join(path, file), 'utf8')).toBe(content)
})

test('a spare that an interrupted undoing had moved to the trash comes back to where it came from', async () => {
  await using world = await makeScenarioWorld({ options: spared })
  const { context, codebase } = world
  await keepSpares(context, codebase)
  const [spare] = await context.store.spares.list(codebase.id)
  await abandonAt(world, 'create-fresh', 'create.spare-locked')
  const at = (stop: string, act: () => void) => async (name: string) => {
    if (name === stop) act()
  }
  const interrupt = at('undo.moved', () => {
    throw new Error('interrupted')
  })
  await reconcile({ ...context, failpoint: interrupt }, codebase).catch(() => undefined)
  expect(existsSync(spare?.path ?? '')).toBe(false)
  let isBack: boolean | undefined
  const look = at('undo.saved', () => (isBack = existsSync(join(spare?.path ?? '', 'README'))))
  expect((await reconcile({ ...context, failpoint: look }, codebase)).left).toEqual([])
  expect(isBack).toBe(true)
  expect(await checkRecoveredOnce(world)).toEqual([])
})

const served = (isolationProvider: ProviderName): WorldOptions => ({ settings: { isolationProvider } })

/** From these on, others can work in what an operation has not finished. */
const unlocked = {
  'create-fresh': { failpoint: 'create.dressed', leaf: 'issue-1' },
  restore: { failpoint: 'restore.filled', leaf: 'issue-5' },
} as const

/** The operation, which fails after others had their turn in its directory, and perhaps once more while it is undone. */
const failAt = async (
  { context, codebase }: World,
  operation: keyof typeof unlocked,
  turns: Record<string, (path: string) => unknown>,
): Promise<AppError> => {
  const { failpoint: last, leaf } = unlocked[operation]
  const failpoint = async (name: string): Promise<void> => {
    await turns[name]?.(join(context.worktreesBase, codebase.name, leaf))
    if (name === last) throw new AppError('setup-failed', 'injected', { remedy: 'try again' })
  }
  return operations[operation]({ ...context, failpoint }, codebase).then(
    () => expect.unreachable(),
    (error: unknown) => toAppError(error),
  )
}

/** Where `npm test` looks for each kind: 0 is a new worktree, 1 a restored one, 2 a clone. */
const placesOf = {
  'a file': [2],
  'an edit': [1],
  'an ignored file': [0],
  'a commit': [1],
  'content that is only staged': [0],
}

/** Each kind, and each operation of each kind of environment; `npm run test:every-case` takes all of them. */
const failing = (['a file', 'an edit', 'an ignored file', 'a commit', 'content that is only staged'] as const).flatMap(
  (what) =>
    [
      [what, 'create-fresh', 'worktree'] as const,
      [what, 'restore', 'worktree'] as const,
      [what, 'create-fresh', 'clone'] as const,
    ].filter((_row, i) => everyCase || placesOf[what].includes(i)),
)

test.concurrent.each(failing)(
  '%s that others put in before %s failed is kept, and the error says where (%s)',
  async (what, operation, by) => {
    await using world = await makeScenarioWorld({ options: served(by) })
    if (operation === 'restore') {
      await makeDirty(world)
      await operations['remove-forced'](world.context, world.codebase)
    }
    const early = await takeInventory(world)
    let before = early
    const failed = await failAt(world, operation, {
      [unlocked[operation].failpoint]: async (path) => {
        meddlings[what]?.(path, (...args) => world.box.raw(path, ...args))
        before = { ...(await takeInventory(world)), branches: early.branches }
      },
    })
    const expectations = { before, mayKeep: ['issue-1', 'issue-5'], temporary: temporaryOf(world) }
    expect(await checkInvariants(world, expectations)).toEqual([])
    const kept = /^try again\. .+: coppice worktree restore (\S+)$/.exec(remedyIn(failed))?.[1]
    expect({ code: failed.code, kept }).toEqual({ code: 'setup-failed', kept: expect.any(String) })
    const point = await world.context.store.restorePoints.get(kept ?? '')
    const { environment } = await world.provider.restore(point!)
    const file = join(environment.path, fileOf[what])
    const found = existsSync(file) ? readFileSync(file, 'utf8') : world.box.raw(environment.path, 'show', ':found.ts')
    expect(found).toContain('in a half-made tree')
  },
)

const fileOf = {
  'a file': 'found.ts',
  'an edit': 'README',
  'an ignored file': 'found.local',
  'a commit': 'found.ts',
  'content that is only staged': 'found.ts',
}

test.concurrent.each([
  ['content that is only staged', ':found.ts'],
  ['a commit on a detached HEAD', 'HEAD'],
  ['a commit that was taken back', 'HEAD@{1}'],
])(
  '%s is kept when the directory of a half-made environment is away, and something else is in its place',
  async (what, rev) => {
    await using world = await makeScenarioWorld({})
    let found = ''
    const failed = await failAt(world, 'create-fresh', {
      'create.dressed': (path) => {
        meddlings[what]?.(path, (...args) => world.box.raw(path, ...args))
        found = world.box.raw(path, 'rev-parse', rev)
        rmSync(path, { recursive: true })
        writeIn(path, 'new.ts', 'somebody’s\n')
      },
    })
    const path = join(world.context.worktreesBase, 'project', 'issue-1')
    expect(remedyIn(failed)).toContain('are saved: `coppice worktree restore')
    expect(remedyIn(failed)).toContain(`Not saved: ${path} (the directory was missing)`)
    expect(world.repo.git('rev-list', '--objects', '--all').split(/[ \n]/)).toContain(found)
    expect(world.repo.git('worktree', 'list')).not.toContain(path)
    expect(readFileSync(join(path, 'new.ts'), 'utf8')).toBe('somebody’s\n')
    expect(await world.context.store.journal.open(world.context.host)).toEqual([])
  },
)

test('a spare whose directory is away leaves its record to whoever committed or staged there', async () => {
  await using world = await makeScenarioWorld({ options: { settings: { spares: 3 } } })
  const { context, codebase } = world
  await keepSpares(context, codebase)
  const [committed, staged, untouched] = (await context.store.spares.list(codebase.id)).map(({ path }) => path)
  const kept = [
    [committed, 'HEAD'],
    [staged, ':found.ts'],
  ].map(([path = '', rev = '']) => {
    writeIn(path, 'found.ts', `${rev}\n`)
    world.box.raw(path, 'add', 'found.ts')
    if (rev === 'HEAD') world.box.raw(path, 'commit', '-q', '-m', 'found')
    return world.box.raw(path, 'rev-parse', rev)
  })
  for (const path of [committed, staged, untouched]) rmSync(path ?? '', { recursive: true })
  await dropSpares(context, codebase)
  world.repo.git('gc', '-q', '--prune=now')
  expect(kept.map((sha) => world.repo.git('cat-file', '-t', sha))).toEqual(['commit', 'blob'])
  const listed = world.repo.git('worktree', 'list')
  expect([committed, staged, untouched].map((path = '') => listed.includes(path))).toEqual([true, true, false])
})

test('a file that is too large to compare or to keep is no obstacle, and the error says that it is not saved', async () => {
  await using world = await makeScenarioWorld({})
  const failed = await failAt(world, 'create-fresh', {
    'create.dressed': (path) => {
      writeIn(path, 'data.local/model.bin', '')
      truncateSync(join(path, 'data.local/model.bin'), 600 * 1024 * 1024)
    },
  })
  expect(remedyIn(failed)).toMatch(
    /worktree restore \S+\. Not saved: data\.local\/model\.bin \(over the limit of .+\)$/,
  )
})

test.each(['undo.checked', 'undo.discarded'])(
  'an undoing that was interrupted at %s is finished when something new is at the path, which stays',
  async (at) => {
    await using world = await makeScenarioWorld({})
    await failAt(world, 'create-fresh', { [at]: interrupt })
    const path = join(world.context.worktreesBase, 'project', 'issue-1')
    writeIn(path, 'new.ts', 'new\n')
    expect((await reconcile(world.context, world.codebase)).left).toEqual([])
    expect(readFileSync(join(path, 'new.ts'), 'utf8')).toBe('new\n')
    expect(world.repo.git('worktree', 'list')).not.toContain(path)
  },
)

const interrupt = (): never => {
  throw new Error('interrupted')
}

test.each(['worktree', 'clone'] as const)(
  'what cannot be saved is left, whoever recovers is told where, and doctor names it until it is gone (%s)',
  async (by) => {
    await using world = await makeScenarioWorld({ options: served(by) })
    const { context, codebase } = world
    const put = (path: string): void => writeIn(path, 'found.ts', 'found\n')
    await failAt(world, 'create-fresh', { 'create.dressed': put, 'undo.saved': interrupt })
    const path = join(context.worktreesBase, 'project', 'issue-1')
    world.box.raw(path, 'worktree', 'add', '-q', '--detach', join(path, 'inner'))
    const { settled, left } = await reconcile(context, codebase)
    expect([said(settled), left]).toEqual([[expect.stringContaining(`holds what can't be saved (${path})`)], []])
    const named = async () => {
      const findings = [...(await examineCodebase(context, codebase)), ...(await examineHome(context, [codebase]))]
      return findings.map(({ detail }) => detail).filter((detail) => detail.startsWith(`${path} `))
    }
    expect(await named()).toHaveLength(1)
    rmSync(path, { recursive: true })
    if (by === 'worktree') world.repo.git('worktree', 'remove', '-f', path)
    expect(await named()).toEqual([])
  },
)

/** A command line in this process; what it writes for people. */
const commandLine = async ({ context, provider, codebase }: World, ...argv: string[]): Promise<string> => {
  const written: string[] = []
  const unused = () => expect.unreachable()
  await runCli({
    argv: [...argv, '--codebase', codebase.name],
    cwd: () => '/',
    env: {},
    clock: context.clock,
    signal: new AbortController().signal,
    out: (text) => written.push(text),
    err: (text) => written.push(text),
    paint: plain,
    paintErr: plain,
    isTerminal: false,
    columns: undefined,
    progress: { say: () => undefined, clear: () => undefined },
    version: () => '',
    secrets: context.secrets,
    open: async () => ({
      context: { ...context, store: { ...context.store, close: async () => undefined } },
      environments: async () => provider,
      fleet: noFleet,
      keepSpares: () => undefined,
      platforms: async () => knownPlatforms,
      databaseName: 'SQLite',
    }),
    serve: unused,
    ownEngine: unused,
    deliver: unused,
    outputClosed: new AbortController().signal,
  })
  return written.join('')
}

const tellers: Record<string, (world: World) => Promise<string>> = {
  'a message': async (world) => (await resolved(world, 'issue', 1)).notices.join(),
  'a chat command that fails': async (world) => (await makeChat(world)).say('/worktree remove issue-1'),
  'a command line that fails': (world) => commandLine(world, 'worktree', 'remove', 'issue-1'),
}

test.each(Object.entries(tellers))('%s and recovers somebody’s work says where it is', async (_who, ask) => {
  await using world = await makeScenarioWorld({})
  await abandonAt(world, 'create-fresh', 'create.dressed')
  writeIn(join(world.context.worktreesBase, 'project', 'issue-1'), 'found.ts', 'found\n')
  expect(await ask(world)).toMatch(
    /recovered from an interrupted create issue-1 \(its changes are saved: `?(?:coppice |\/)worktree restore /,
  )
})

/** Each leaves no byte that the commit doesn't have, and is a change all the same. */
const withoutNewBytes = (path: string, git: (...args: string[]) => string): void => {
  chmodSync(join(path, 'README'), 0o755)
  rmSync(join(path, 'src/code.ts'))
  writeIn(path, 'a.txt', 'one\r\n')
  writeIn(path, 'a.low', '')
  git('rm', '-q', '--cached', 'a.nb')
  git('update-index', '--chmod=+x', '.gitignore')
}
const theirChanges = [
  ' M README',
  ' D src/code.ts',
  ' M a.txt',
  ' M a.low',
  'D  a.nb',
  '?? a.nb',
  'MM .gitignore',
].toSorted()

test.concurrent.each([
  ...(everyCase ? [['create-fresh', 'worktree', 'failed'] as const] : []),
  ['create-fresh', 'clone', 'failed'] as const,
  ['create-fresh', 'worktree', 'was killed'] as const,
  ['restore', 'worktree', 'failed'] as const,
])(
  'modes, deletions and shortened files in a complete checkout are kept when %s (%s) %s',
  async (operation, by, how) => {
    await using world = await makeScenarioWorld({ options: { ...filtered, ...served(by) } })
    const { failpoint, leaf } = unlocked[operation]
    if (operation === 'restore') {
      await operations['take-up-again'](world.context, world.codebase)
      await operations['remove-forced'](world.context, world.codebase)
    }
    const change = (path: string): void => withoutNewBytes(path, (...args) => world.box.raw(path, ...args))
    if (how === 'failed') await failAt(world, operation, { [failpoint]: change })
    else {
      await abandonAt(world, operation, failpoint)
      change(join(world.context.worktreesBase, 'project', leaf))
      await reconcile(world.context, world.codebase)
    }
    const points = await world.context.store.restorePoints.list(world.codebase.id)
    const newest = points.toSorted((a, b) => a.createdAt - b.createdAt).at(-1)
    const { environment } = await world.provider.restore(newest!)
    const status = world.box.raw(environment.path, 'status', '--porcelain').split('\n')
    expect(status.toSorted()).toEqual(theirChanges)
    expect(readFileSync(join(environment.path, 'a.txt'), 'utf8')).toBe('one\r\n')
  },
)

const sparse: WorldOptions = { prepare: (repo) => void repo.git('sparse-checkout', 'set', 'docs') }
const dirtyFive = async (world: World): Promise<void> => {
  const { path } = await makeFive(world)
  writeIn(path, 'new.ts', 'new\n')
  chmodSync(join(path, 'README'), 0o755)
  rmSync(join(path, 'src/code.ts'))
  world.box.raw(path, 'rm', '-q', '--cached', 'a.nb')
  await operations['remove-forced'](world.context, world.codebase)
}

test.concurrent.each([
  ['create-fresh', 'filters', filtered, undefined],
  ['create-fresh', 'a sparse checkout', sparse, undefined],
  ['restore', 'changes', filtered, dirtyFive],
] as const)(
  'when %s fails in a repository with %s, nothing of it is taken for work',
  async (operation, _what, options, arrange) => {
    await using world = await makeScenarioWorld({ options })
    await arrange?.(world)
    const list = () => world.context.store.restorePoints.list(world.codebase.id)
    const before = await list()
    const { remedy } = await failAt(world, operation, {})
    expect([remedy, await list()]).toEqual(['try again', before])
  },
)

/** Stands in the directory until it is told to go. */
const stepInto = async (path: string): Promise<{ pid: number | undefined; leave: () => Promise<unknown> }> => {
  const visitor = spawn('cat', { cwd: path, stdio: ['pipe', 'ignore', 'ignore'] })
  await once(visitor, 'spawn')
  const ended = once(visitor, 'exit')
  return { pid: visitor.pid, leave: () => (visitor.stdin.end(), ended) }
}

test.concurrent.each([
  ['create-fresh', 'create.attached', 'worktree'],
  ['create-fresh', 'create.attached', 'clone'],
  ['spare', 'spare.token', 'worktree'],
] as const)('recovery from %s at %s leaves it to the process that works in it (%s)', async (operation, at, by) => {
  await using world = await makeScenarioWorld({ options: { settings: { ...served(by).settings, spares: 1 } } })
  await abandonAt(world, operation, at)
  const [entry] = await world.context.store.journal.open(world.context.host)
  const path = String(entry?.data['path'])
  const { pid, leave } = await stepInto(path)
  const { left } = await reconcile(world.context, world.codebase)
  expect(said(left).join()).toContain(`process ${pid} (cat) is inside it`)
  expect(existsSync(join(path, 'README'))).toBe(true)
  await leave()
  expect((await reconcile(world.context, world.codebase)).left).toEqual([])
  expect(existsSync(path)).toBe(false)
  expect(await checkRecoveredOnce(world)).toEqual([])
})

test('a failed creation is left to the process that works in it, and the next one undoes it', async () => {
  await using world = await makeScenarioWorld({})
  let visitor: Awaited<ReturnType<typeof stepInto>> | undefined
  const failed = await failAt(world, 'create-fresh', {
    'create.dressed': async (path) => void (visitor = await stepInto(path)),
  })
  const path = join(world.context.worktreesBase, 'project', 'issue-1')
  expect(messageIn(failed)).toContain(`${path}: process ${visitor?.pid} (cat) is inside it`)
  expect(existsSync(join(path, 'README'))).toBe(true)
  await visitor?.leave()
  // In the same process, which is alive and yet does not work on it any more.
  await operations['create-fresh'](world.context, world.codebase)
  expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
})

/** Written after the rest was saved, into the directory or into the trash. Answers a file and what it has to hold. */
const lateWrites: Record<string, { at: string; write: (world: World, path: string, trash: string) => string[] }> = {
  'a new file': {
    at: 'undo.saved',
    write: (_world, path) => (writeIn(path, 'late.ts', 'late\n'), ['late.ts', 'late\n']),
  },
  'another version of a saved file': {
    at: 'undo.saved',
    write: (_world, path) => (writeIn(path, 'found.ts', 'other\n'), ['found.ts', 'other\n']),
  },
  'a commit': {
    at: 'undo.saved',
    write: ({ box }, path) => {
      writeIn(path, 'late.ts', 'late\n')
      box.raw(path, 'add', 'late.ts')
      box.raw(path, 'commit', '-q', '-m', 'late')
      return ['late.ts', 'late\n']
    },
  },
  'a file in the trash': {
    at: 'undo.moved',
    write: (_world, _path, trash) => (writeIn(trash, 'src/late.ts', 'late\n'), ['src/late.ts', 'late\n']),
  },
  'a file in the trash while something else takes the path': {
    at: 'undo.moved',
    write: (_world, path, trash) => {
      writeIn(trash, 'late.ts', 'late\n')
      writeIn(path, 'theirs.ts', 'put where the environment was\n')
      return ['late.ts', 'late\n']
    },
  },
}

/** Each once; `npm run test:every-case` takes these in a worktree as well. */
const lateInClones = ['a commit', 'a file in the trash']
const late = Object.keys(lateWrites).filter((what) => everyCase || !lateInClones.includes(what))

test.concurrent.each([
  ...late.map((what) => [what, 'worktree'] as const),
  ...lateInClones.map((what) => [what, 'clone'] as const),
])('%s that comes after the rest was saved is seen, and saved when it is undone again (%s)', async (what, by) => {
  await using world = await makeScenarioWorld({ options: served(by) })
  const { store, worktreesBase } = world.context
  const { at, write } = lateWrites[what]!
  let [file, content]: string[] = []
  let trash = ''
  const failed = await failAt(world, 'create-fresh', {
    'create.dressed': (path) => writeIn(path, 'found.ts', 'found\n'),
    [at]: async (path) => {
      const [entry] = await store.journal.open(world.context.host)
      trash = join(worktreesBase, '.trash', String(entry?.environmentId))
      ;[file, content] = write(world, path, trash)
    },
  })
  expect(messageIn(failed)).toContain('The unfinished worktree is still at')
  const path = join(worktreesBase, 'project', 'issue-1')
  const isTaken = existsSync(join(path, 'theirs.ts'))
  if (isTaken) renameSync(path, world.box.path('theirs'))
  expect(readFileSync(join(isTaken ? trash : path, file ?? ''), 'utf8')).toBe(content)
  expect((await reconcile(world.context, world.codebase)).left).toEqual([])
  expect(existsSync(path)).toBe(false)
  const [point, ...others] = await store.restorePoints.list(world.codebase.id)
  expect(others).toEqual([])
  const { environment } = await world.provider.restore(point!)
  expect(readFileSync(join(environment.path, file ?? ''), 'utf8')).toBe(content)
})
