import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { examineCodebase, examineHome } from '../../src/cli/doctor/records.ts'
import { findRestorePoint, restorablePoints } from '../../src/isolation/find.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { resolveIsolation } from '../../src/isolation/resolve/resolve.ts'
import { removeCodebase } from '../../src/isolation/codebases/remove.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { taskWork } from '../../src/domain/work.ts'
import type { Git } from '../../src/git/door.ts'
import { toBranchName } from '../../src/domain/names.ts'
import { type Sandbox, type TestRepo, writeIn } from '../helpers/repo.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import {
  branchExists,
  fingerprint,
  hasBlob,
  type Inside,
  inside,
  issue,
  messageOf,
  refusal,
  removed,
  resolved,
  thereAndBack,
} from './scene.ts'

const start = async (options: WorldOptions = {}) => {
  const world = await makeWorld(options)
  const environment = await issue(world, 42)
  return { world, environment, tree: inside(world, environment) }
}

test('repositories inside a tree keep it, whatever shape they have, and come back whole', async () => {
  const { world, environment, tree } = await start({ prepare: (repo) => repo.commit('d/file', 'x\n') })
  await using _ = world
  const repository = (path: string): Inside => inside(world, { path: join(tree.path, path) })
  mkdirSync(join(tree.path, 'vendor/x'), { recursive: true })
  // In the index, without .gitmodules.
  const vendored = repository('vendor/x')
  vendored.git('init', '-q')
  const vendoredCommit = vendored.commit('code', 'precious\n')
  tree.git('add', 'vendor/x')
  tree.git('commit', '-q', '-m', 'vendor')
  // Made in a tracked directory.
  repository('d').git('init', '-q')
  const innerCommit = repository('d').commit('file', 'x\n')
  // Merely called .git.
  tree.write('x/.git/gold', 'gold\n')
  const contains = 'no-repository-inside no: it contains a repository:'
  expect(await refusal(world, environment)).toEqual([
    `${contains} d/.git (1 commit on no remote)`,
    `${contains} vendor/x (1 commit on no remote)`,
    expect.stringContaining(`${contains} x/.git (unknown: `),
  ])
  const back = await thereAndBack(world, environment)
  expect(inside(world, { path: join(back.path, 'vendor/x') }).git('rev-parse', 'HEAD')).toBe(vendoredCommit)
  expect(inside(world, { path: join(back.path, 'd') }).git('rev-parse', 'HEAD')).toBe(innerCommit)
  expect(back.read('x/.git/gold')).toBe('gold\n')
})

describe.concurrent('files that git would not bring back', () => {
  const bom = Buffer.from('\ufeffdéjà\n', 'utf16le')
  const rot = 'tr a-z n-za-m'
  const mixed = { committed: 'one\ntwo\n', edited: 'one\r\ntwo\n' }
  const sameAs = (text: string | Buffer) => ({ committed: text, edited: text })
  type Conversion = {
    readonly committed: string | Buffer
    readonly edited: string | Buffer
    /** Of its own directory. */
    readonly attributes?: string
  }
  /** In a directory each, beside each other in one worktree that git calls clean. */
  const clean: Record<string, Conversion> = {
    "a filter of the user's": {
      attributes: '*.txt filter=strip\n',
      committed: 'code OUT\n',
      edited: 'code OUT precious\n',
    },
    'a filter of the repository': {
      attributes: '*.txt filter=own\n',
      committed: 'code OUT\n',
      edited: 'code OUT precious\n',
    },
    'text=auto': { attributes: '* text=auto\n', ...mixed },
    'text in a directory': { attributes: '* text\n', ...mixed },
    'text, and what looks binary': { attributes: '* text\n', committed: '\0\n', edited: '\0\r\n' },
    "the user's own attributes file": mixed,
    'a filter that keeps the size': { attributes: '*.txt filter=rot\n', ...sameAs('one\n') },
    'attributes that came after the removal': sameAs('one\n'),
    "a filter of the user's that came after the removal": sameAs('one\n'),
    'an encoding that keeps the size, and is gone after the removal': {
      attributes: '*.txt working-tree-encoding=UTF-16LE\n',
      ...sameAs(Buffer.from('дом', 'utf16le')),
    },
    ident: { attributes: '*.txt ident\n', committed: '$Id$\n', edited: '$Id: precious words $\n' },
    'an encoding': {
      attributes: '*.txt working-tree-encoding=UTF-16\n',
      committed: Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from('déjà\n', 'utf16le').swap16()]),
      edited: bom,
    },
  }
  const directoryOf = (what: string): string => `c${Object.keys(clean).indexOf(what)}`
  /** As somebody edits a file and stages it, and git calls it unchanged. */
  const stage = (tree: Inside, path: string, content: string | Buffer): void => {
    tree.write(path, content)
    // Older than the index: git does not read it again.
    utimesSync(join(tree.path, path), 1_500_000_000, 1_500_000_000)
    tree.git('add', path)
  }

  test('because git converts them come back with their own bytes, whatever says so', async () => {
    const { world, environment, tree } = await start({
      prepare: (repo, box) => {
        const config = (where: string, key: string, value: string) => box.raw(repo.path, 'config', where, key, value)
        for (const [where, name] of [
          ['--global', 'strip'],
          ['--local', 'own'],
        ] as const) {
          config(where, `filter.${name}.clean`, 'sed s/OUT.*/OUT/')
          config(where, `filter.${name}.smudge`, 'cat')
        }
        config('--global', 'filter.rot.clean', rot)
        writeIn(box.home, '.config/git/attributes', `${directoryOf("the user's own attributes file")}/*.txt text\n`)
        for (const [what, { attributes, committed }] of Object.entries(clean)) {
          if (attributes !== undefined) repo.write(`${directoryOf(what)}/.gitattributes`, attributes)
          repo.write(`${directoryOf(what)}/a.txt`, committed)
        }
        repo.git('add', '-A')
        repo.git('commit', '-q', '-m', 'files')
      },
    })
    await using _ = world
    for (const [what, { edited }] of Object.entries(clean)) stage(tree, `${directoryOf(what)}/a.txt`, edited)
    expect(tree.git('status', '--short')).toBe('')
    const { restorePoint } = await removed(world, environment)
    world.box.raw(world.repo.path, 'config', '--global', 'filter.later.smudge', rot)
    const later = {
      'attributes that came after the removal': 'text eol=crlf',
      "a filter of the user's that came after the removal": 'filter=later',
      'an encoding that keeps the size, and is gone after the removal': '-working-tree-encoding',
    }
    const info = Object.entries(later).map(([what, attribute]) => `${directoryOf(what)}/*.txt ${attribute}\n`)
    writeIn(world.repo.commonDir, 'info/attributes', info.join(''))
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    const bytes = (what: string): Buffer => readFileSync(join(back.path, directoryOf(what), 'a.txt'))
    const other = Object.entries(clean).filter(([what, { edited }]) => !bytes(what).equals(Buffer.from(edited)))
    expect(other.map(([what]) => [what, bytes(what).toString('hex')])).toEqual([])
  })

  test('because of untracked or foreign attributes, or of settings, come back with their own bytes', async () => {
    await using world = await makeWorld({
      prepare: (repo) => {
        for (const name of ['untracked', 'gone', 'elsewhere', 'setting']) repo.write(`${name}/a.txt`, 'one\ntwo\n')
        repo.commit('crlf/.gitattributes', '* text\n')
        repo.commit('crlf/a.txt', 'one\n')
        repo.git('add', '-A')
        repo.git('commit', '-q', '-m', 'files')
      },
    })
    const backFrom = async (number: number, lay: (tree: Inside) => void, force: boolean): Promise<Inside> => {
      const environment = await issue(world, number)
      const tree = inside(world, environment)
      lay(tree)
      expect(tree.git('status', '--short', '-uno')).toBe('')
      const { restorePoint } = await removed(world, environment, { force })
      return inside(world, (await world.provider.restore(restorePoint)).environment)
    }
    const foreign = world.box.path('attributes')
    const attributed = await backFrom(
      1,
      (tree) => {
        for (const name of ['untracked', 'gone']) tree.write(`${name}/.gitattributes`, '* text\n')
        writeFileSync(foreign, 'elsewhere/* text\n')
        tree.git('config', 'core.attributesFile', foreign)
        for (const name of ['untracked', 'gone', 'elsewhere']) stage(tree, `${name}/a.txt`, mixed.edited)
        rmSync(join(tree.path, 'gone/.gitattributes'))
      },
      true,
    )
    const read = ['untracked', 'gone', 'elsewhere'].map((name) => [name, attributed.read(`${name}/a.txt`)])
    expect(read).toEqual(['untracked', 'gone', 'elsewhere'].map((name) => [name, mixed.edited]))
    world.repo.git('config', '--unset', 'core.attributesFile')
    const settings: [key: string, value: string, path: string, edited: string][] = [
      ['core.autocrlf', 'input', 'setting/a.txt', mixed.edited],
      ['core.autocrlf', 'true', 'setting/a.txt', mixed.committed],
      ['core.eol', 'crlf', 'crlf/a.txt', 'one\n'],
    ]
    for (const [i, [key, value, path, edited]] of settings.entries()) {
      world.repo.git('config', key, value)
      const back = await backFrom(2 + i, (tree) => stage(tree, path, edited), false)
      expect([key, value, back.read(path)]).toEqual([key, value, edited])
      world.repo.git('config', '--unset', key)
    }
  })

  /** Git LFS as it works: `clean` puts the content into its store and prints a pointer, `smudge` the other way round. */
  const lfs = (repo: TestRepo, box: Sandbox): void => {
    const store = join(repo.commonDir, 'lfs/objects')
    const script = (name: string, text: string): void => {
      writeFileSync(box.path(name), `#!/bin/sh\n${text}`)
      chmodSync(box.path(name), 0o755)
      repo.git('config', `filter.lfs.${name}`, box.path(name))
    }
    script(
      'clean',
      `f=$(mktemp); cat > $f; o=$(sha256sum $f | cut -c1-64); s=$(wc -c < $f)
d=${store}/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4); mkdir -p $d; mv $f $d/$o
printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $o $s\n`,
    )
    script('smudge', `o=$(sed -n 's/^oid sha256://p'); cat ${store}/*/*/$o\n`)
    repo.commit('.gitattributes', '*.bin filter=lfs\n')
    for (const name of ['one.bin', 'same.bin', 'two.bin', 'lost.bin']) {
      repo.commit(name, `content of ${name.replace('same', 'one')}\n`)
    }
  }

  test('because Git LFS has their content come back from there, whoever set it up and whatever it prunes', async () => {
    const { world, environment, tree } = await start({ prepare: lfs })
    await using _ = world
    const names = ['one.bin', 'same.bin', 'lost.bin']
    const store = join(world.repo.commonDir, 'lfs/objects')
    const content = (name: string): string => `content of ${name.replace('same', 'one')}\n`
    // Our own checkout runs no filter of the repository's: these are what a person's `git checkout` lays.
    for (const name of names) rmSync(join(tree.path, name))
    tree.git('checkout', '--', ...names)
    // Older than the index: git does not read them again.
    for (const name of names) utimesSync(join(tree.path, name), 1_500_000_000, 1_500_000_000)
    tree.git('add', ...names)
    expect(names.map((name) => tree.read(name))).toEqual(names.map(content))
    const pointer = tree.read('two.bin')
    expect(pointer).toContain('oid sha256:')
    const gone = createHash('sha256').update(content('lost.bin')).digest('hex')
    rmSync(join(store, gone.slice(0, 2), gone.slice(2, 4), gone))
    const { restorePoint } = await removed(world, environment)
    expect([hasBlob(world, content('one.bin')), hasBlob(world, content('lost.bin'))]).toEqual([false, true])
    rmSync(store, { recursive: true })
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(names.map((name) => back.read(name))).toEqual(names.map(content))
    expect(back.read('two.bin')).toBe(pointer)
  })

  test('in a clean submodule come back with their own bytes', async () => {
    const { world, environment, tree } = await start({
      prepare: (repo, box) => {
        box.repo('lib').commit('lib.sh', 'one\n')
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
        repo.git('commit', '-q', '-m', 'lib')
      },
    })
    await using _ = world
    const lib = inside(world, { path: join(tree.path, 'lib') })
    lib.git('config', 'core.autocrlf', 'true')
    expect((await thereAndBack(world, environment)).read('lib/lib.sh')).toBe('one\n')
    lib.write('lib.sh', 'one\r\n')
    lib.git('add', 'lib.sh')
    expect(lib.git('status', '--short')).toBe('')
    const { restorePoint } = await removed(world, await issue(world, 42))
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(back.read('lib/lib.sh')).toBe('one\r\n')
  })

  test('with names that git drops without a word, or that only their owner may read, come back so', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    const names = ['git~1', '.git ', '.Git/y', 'plain']
    for (const name of names) tree.write(name, `${name}\n`)
    tree.write('secret', 'x\n')
    chmodSync(join(tree.path, 'secret'), 0o600)
    const back = await thereAndBack(world, environment)
    for (const name of names) expect(back.read(name)).toBe(`${name}\n`)
    expect(lstatSync(join(back.path, 'secret')).mode & 0o777).toBe(0o600)
  })

  test('in a directory that cannot be listed keep the tree: that is not clean', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.write('d/priv/gold', 'gold\n')
    // As root every directory can be listed; a status that warns is what an ordinary user gets.
    const warning = "warning: could not open directory 'd/priv/': Permission denied\n"
    const git: Git = {
      ...world.context.git,
      run: async (request) => {
        const result = await world.context.git.run(request)
        if (request.operation !== 'status') return result
        const { exitCode, stdoutBytes, stdout } = result
        return { exitCode, stdoutBytes, stdout, stderr: warning }
      },
    }
    const outcome = await createEnvironments({ ...world.context, git }).destroy(environment, {
      trigger: 'command',
      force: true,
    })
    expect(outcome).toMatchObject({
      outcome: 'refused',
      reasons: ['nothing-uncommitted', 'no-worktree-inside', 'no-repository-inside'].map((gate) => ({
        gate,
        answer: 'cannot-tell',
      })),
    })
    expect(tree.read('d/priv/gold')).toBe('gold\n')
  })
})

describe.concurrent("a worktree's own state", () => {
  const rm = (tree: Inside, ...paths: string[]): void => {
    for (const path of paths) rmSync(join(tree.path, path), { recursive: true })
  }
  const sparse = (tree: Inside, ...flags: string[]): void => void tree.git('sparse-checkout', 'set', ...flags, 'in')
  const shapes: [string, (tree: Inside, world: World) => void][] = [
    ['a sparse checkout', (tree) => sparse(tree)],
    [
      'a sparse checkout with changes, also outside of it',
      (tree) => {
        sparse(tree)
        tree.write('in/a', 'changed\n')
        tree.write('in/staged', 'staged\n')
        tree.git('add', 'in/staged')
        tree.write('out/new', 'untracked\n')
        tree.write('out/b', 'edited\n')
      },
    ],
    ['a sparse checkout without a cone', (tree) => sparse(tree, '--no-cone')],
    ['a sparse index', (tree) => sparse(tree, '--sparse-index')],
    [
      'a sparse checkout with a split index',
      (tree) => {
        sparse(tree)
        tree.git('update-index', '--split-index')
      },
    ],
    [
      'files that are skipped and there, or assumed unchanged',
      (tree) => {
        tree.git('update-index', '--skip-worktree', 'out/b')
        tree.git('update-index', '--assume-unchanged', 'in/a')
      },
    ],
    [
      'files that are skipped and not there, one of them behind a link that leads out of the tree',
      (tree, world) => {
        tree.git('update-index', '--skip-worktree', 'out/b', 'far/b')
        rm(tree, 'out', 'far')
        symlinkSync(world.box.path('elsewhere'), join(tree.path, 'far'))
      },
    ],
    // The last two: they change what all worktrees share.
    [
      'a full checkout beside a sparse main working tree',
      (_, { repo }) => void repo.git('sparse-checkout', 'set', 'in'),
    ],
    [
      'a full checkout with changes beside a sparse main working tree',
      (tree) => {
        tree.write('out/b', 'changed\n')
        rm(tree, 'in/a')
      },
    ],
  ]
  test('comes back file by file and flag by flag', async () => {
    await using world = await makeWorld({
      prepare: (repo) => {
        for (const path of ['in/a', 'out/b', 'far/b']) repo.write(path, `${path}\n`)
        repo.git('add', '-A')
        repo.git('commit', '-q', '-m', 'files')
        repo.git('config', 'extensions.worktreeConfig', 'true')
      },
    })
    const state = (one: Inside): string[] => [
      one.git('status', '--short'),
      one.git('ls-files', '-v'),
      one.tryGit('sparse-checkout', 'list').split('\n')[0] ?? '',
      one.git('config', '--worktree', 'foo.bar'),
      fingerprint(one.path, (path) => path.endsWith('/.git')),
    ]
    for (const [number, [what, shape]] of shapes.entries()) {
      const environment = await issue(world, number + 1)
      const tree = inside(world, environment)
      writeIn(world.box.path('elsewhere'), 'b', 'gold\n')
      tree.git('config', '--worktree', 'foo.bar', '1')
      shape(tree, world)
      const before = state(tree)
      rmSync(world.box.path('elsewhere/b'))
      const { restorePoint } = await removed(world, environment, { force: true })
      writeIn(world.box.path('elsewhere'), 'b', 'gold\n')
      const back = inside(world, (await world.provider.restore(restorePoint)).environment)
      expect([what, ...state(back)]).toEqual([what, ...before])
      expect(readFileSync(world.box.path('elsewhere/b'), 'utf8')).toBe('gold\n')
    }
  })

  test('a branch without a commit comes back with what was staged, and with what was not', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.git('switch', '-q', '--orphan', 'fresh')
    tree.write('new', 'staged\n')
    tree.git('add', 'new')
    tree.write('second', 'untracked\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    world.repo.git('gc', '-q', '--prune=now')
    const restored = await world.provider.restore(restorePoint)
    const back = inside(world, restored.environment)
    expect(restored.environment.branch).toBe('issue-42')
    expect(back.git('symbolic-ref', 'HEAD')).toBe('refs/heads/fresh')
    expect([back.git('status', '--short'), back.has('README')]).toEqual(['A  new\n?? second', false])
    expect([back.read('new'), back.read('second')]).toEqual(['staged\n', 'untracked\n'])
  })

  test('a repository with SHA-256 ids is removed by force and restored', async () => {
    const { world, environment, tree } = await start({
      prepare: (repo) => {
        rmSync(join(repo.path, '.git'), { recursive: true })
        repo.git('init', '-q', '--object-format=sha256', '-b', 'main')
        repo.commit('README', 'x\n')
      },
    })
    await using _ = world
    rmSync(join(tree.path, 'README'))
    tree.write('other', 'o\n')
    const back = await thereAndBack(world, environment)
    expect([back.has('README'), back.read('other')]).toEqual([false, 'o\n'])
  })
})

describe.concurrent('what belongs to somebody else', () => {
  test('a stacked pull request does not move the one below it', async () => {
    await using world = await makeWorld({ remote: true })
    const { repo } = world
    repo.git('switch', '-q', '-c', 'feat-a')
    const a = repo.commit('a', 'a\n')
    repo.git('switch', '-q', '-c', 'feat-b')
    const b = repo.commit('b', 'b\n')
    repo.git('push', '-q', 'origin', 'feat-a', 'feat-b')
    repo.git('switch', '-q', 'main')
    repo.git('branch', '-q', '-D', 'feat-a', 'feat-b')
    const { environment } = await resolved(world, 'pr', 7, { hints: { prBranch: 'feat-a', prSha: a } })
    const shared = await resolved(world, 'pr', 9, { hints: { prBranch: 'feat-b', prSha: b, linkedPRs: [7] } })
    expect(shared).toMatchObject({ environment: { id: environment.id }, prShaUsed: false })
    expect(inside(world, environment).git('rev-parse', 'HEAD')).toBe(a)
  })

  test('a spare that somebody worked in survives a creation that could not use it and failed', async () => {
    await using world = await makeWorld({ settings: { spares: 1 } })
    await keepSpares(world.context, world.codebase)
    const [spare] = await world.context.store.spares.list(world.codebase.id)
    if (spare === undefined) throw new Error('no spare')
    writeFileSync(join(spare.path, 'README'), 'edited\n')
    world.repo.commit('README', 'moved on\n')
    world.repo.git('branch', 'blocked')
    const request = { codebase: world.codebase, work: taskWork('x'), hints: {}, createdBy: 'test' }
    const create = resolveIsolation(world.context, world.provider, { ...request, branch: toBranchName('blocked/x') })
    expect(await messageOf(create)).toContain("couldn't create branch blocked/x: branch blocked is in the way")
    expect(inside(world, spare).git('status', '--short')).toBe(' M README')
  })

  test("a person's branch under their own worktree is not deleted when our creation fails over it", async () => {
    let stranger = ''
    const world = await makeWorld({
      context: {
        failpoint: async (name) => {
          if (name !== 'create.adding') return
          stranger = world.box.path('theirs')
          world.repo.git('worktree', 'add', '-q', '-b', 'issue-42', stranger)
        },
      },
    })
    await using _ = world
    await expect(issue(world, 42)).rejects.toThrow(/issue-42/)
    expect(branchExists(world, 'issue-42')).toBe(true)
    expect(inside(world, { path: stranger }).git('status', '--short')).toBe('')
  })
})

describe.concurrent('records', () => {
  test('a missing environment whose directory is back is taken up again, not made anew', async () => {
    const { world, environment } = await start()
    await using _ = world
    const { context, codebase, provider } = world
    renameSync(environment.path, `${environment.path}-away`)
    await reconcile(context, codebase)
    renameSync(`${environment.path}-away`, environment.path)
    const made = await provider.create({ codebase, work: environment.work, hints: {}, createdBy: 'test', aliases: [] })
    expect(made).toMatchObject({ outcome: 'existing', environment: { id: environment.id, status: 'active' } })
  })

  test('a restore point that the database forgot is recalled by whatever asks for restore points', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.write('new', 'x\n')
    const { context, codebase } = world
    const { restorePoint } = await removed(world, environment, { force: true })
    const asked = {
      restart: async () => (await reconcile(context, codebase), context.store.restorePoints.get(restorePoint.id)),
      'restore --list': async () => (await restorablePoints(context, codebase))[0],
      'restore issue-42': () => findRestorePoint(context, codebase, 'issue-42', '/'),
      restore: () => findRestorePoint(context, codebase, undefined, '/'),
    }
    for (const [what, ask] of Object.entries(asked)) {
      await context.store.restorePoints.remove(restorePoint.id)
      expect({ what, point: await ask() }).toEqual({ what, point: restorePoint })
    }
    // Git is not asked about those that have a row.
    const noGit: Git = { ...context.git, run: () => Promise.reject(new Error('git was started')) }
    expect(await restorablePoints({ ...context, git: noGit }, codebase)).toEqual([restorePoint])
  })

  test('a spare that the database forgot is one again after --fix, and the record of a deleted one goes', async () => {
    const world = await makeWorld({ settings: { spares: 2 } })
    await using _ = world
    const { context, codebase } = world
    await keepSpares(context, codebase)
    const problems = async () =>
      [...(await examineCodebase(context, codebase)), ...(await examineHome(context, [codebase]))].filter(
        ({ state }) => state === 'problem',
      )
    expect(await problems()).toEqual([])
    const [kept, lost] = await context.store.spares.list(codebase.id)
    if (kept === undefined || lost === undefined) throw new Error('there are no two spares')
    for (const { id } of [kept, lost]) await context.store.spares.claim(id)
    rmSync(lost.path, { recursive: true })
    expect((await problems()).map(({ remedy }) => remedy)).toEqual(['coppice doctor --fix', 'coppice doctor --fix'])
    await reconcile(context, codebase)
    expect(await problems()).toEqual([])
    expect(await context.store.spares.list(codebase.id)).toMatchObject([{ id: kept.id, sha: kept.sha }])
    expect(world.repo.git('worktree', 'list', '--porcelain')).not.toContain(lost.path)
  })

  test('a spare that somebody committed or staged in and the database forgot is theirs, also without reflog or directory', async () => {
    await using world = await makeWorld({ settings: { spares: 5 } })
    const { context, codebase } = world
    await keepSpares(context, codebase)
    const spares = await context.store.spares.list(codebase.id)
    const record = (i: number): string => join(codebase.repoPath, 'worktrees', spares[i]?.adminName ?? '')
    const commits = spares.slice(0, 3).map((spare, i) => inside(world, spare).commit('precious', `${i}\n`))
    rmSync(join(record(1), 'logs'), { recursive: true })
    rmSync(join(record(2), 'logs'), { recursive: true })
    rmSync(spares[2]?.path ?? '', { recursive: true })
    rmSync(join(record(3), 'logs'), { recursive: true })
    const staged = spares[4] ?? { path: '' }
    inside(world, staged).write('precious', 'staged\n')
    inside(world, staged).git('add', 'precious')
    const blob = inside(world, staged).git('rev-parse', ':precious')
    rmSync(staged.path, { recursive: true })
    for (const { id } of spares) await context.store.spares.claim(id)
    await reconcile(context, codebase)
    expect(await context.store.spares.list(codebase.id)).toMatchObject([{ id: spares[3]?.id, sha: spares[3]?.sha }])
    await removeCodebase(context, codebase)
    world.repo.git('gc', '-q', '--prune=now')
    const types = [...commits, blob].map((sha) => world.repo.git('cat-file', '-t', sha))
    expect(types).toEqual(['commit', 'commit', 'commit', 'blob'])
    expect(spares.map(({ path }) => existsSync(path))).toEqual([true, true, false, false, false])
    expect(existsSync(join(record(2), 'locked'))).toBe(true)
  })

  test('the record of a spare whose directory is gone stays when somebody had committed or staged in it', async () => {
    await using world = await makeWorld({ settings: { spares: 2 } })
    await keepSpares(world.context, world.codebase)
    const [first, second] = await world.context.store.spares.list(world.codebase.id)
    if (first === undefined || second === undefined) throw new Error('no spares')
    const commit = inside(world, first).commit('precious', 'precious\n')
    inside(world, second).write('staged', 'staged\n')
    inside(world, second).git('add', 'staged')
    const blob = inside(world, second).git('rev-parse', ':staged')
    for (const { path } of [first, second]) rmSync(path, { recursive: true })
    for (const number of [42, 43]) await issue(world, number)
    world.repo.git('gc', '-q', '--prune=now')
    expect([commit, blob].map((sha) => world.repo.git('cat-file', '-t', sha))).toEqual(['commit', 'blob'])
  })

  test('worktrees cannot lie inside the repository itself', async () => {
    const world = await makeWorld()
    await using _ = world
    const context = { ...world.context, worktreesBase: join(world.repo.path, 'inside') }
    const request = { codebase: world.codebase, work: taskWork('x'), hints: {}, createdBy: 'test', aliases: [] }
    await expect(createEnvironments(context).create(request)).rejects.toThrow(/inside the repository itself/)
    expect(world.repo.git('status', '--short')).toBe('')
  })
})

test('a FIFO in the place of .gitattributes or .gitignore does not hold up a removal: it cannot tell, by force neither', async () => {
  const { world, environment, tree } = await start({ prepare: (repo) => repo.commit('d/file', 'x\n') })
  await using _ = world
  tree.write('d/file', 'y\n')
  for (const name of ['.gitattributes', '.gitignore']) {
    const fifo = join(tree.path, 'd', name)
    execFileSync('mkfifo', [fifo])
    const cannotTell = `cannot-tell: cannot tell: ${fifo} is a FIFO, which would block git`
    const gates = ['nothing-uncommitted', 'no-worktree-inside', 'no-repository-inside']
    const expected = gates.map((gate) => `${gate} ${cannotTell}`)
    // The suite's own time limit is what a hanging git would run into.
    expect(await refusal(world, environment)).toEqual(expected)
    expect(await refusal(world, environment, { force: true })).toEqual(expected)
    expect(tree.read('d/file')).toBe('y\n')
    rmSync(fifo)
  }
  await removed(world, environment, { force: true })
}, 30_000)
