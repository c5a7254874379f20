import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toBranchName } from '../../src/domain/names.ts'
import type { LeftOut } from '../../src/domain/removal/restore-point.ts'
import { findRestorePoint } from '../../src/isolation/find.ts'
import { createRepositoryLock } from '../../src/isolation/lock/lock.ts'
import { expireRestorePoints } from '../../src/isolation/reconcile.ts'
import { discardRestorePoint } from '../../src/isolation/providers/checkout/restore-point/restore-point.ts'
import { writeIn } from '../helpers/repo.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import {
  branchExists,
  fingerprint,
  type Inside,
  inside,
  issue,
  messageOf,
  remove,
  removed,
  resolved,
  thereAndBack,
} from './scene.ts'
import { inWords } from '../helpers/words.ts'

const day = 24 * 60 * 60 * 1000

const start = async (options: WorldOptions = {}) => {
  const world = await makeWorld(options)
  const environment = await issue(world, 42)
  return { world, environment, tree: inside(world, environment) }
}

describe('a restore brings back, byte for byte, after `git gc --prune=now`,', () => {
  let world: World
  /** With changes of every kind, staged and not. */
  let changed: Inside
  let status = ''
  let onlyInReflog = ''
  /** In the middle of a merge. */
  let conflicted: Inside
  let stages = ''
  /** Clean, on its branch again. */
  const dropped: string[] = []
  /** With refs of its own. */
  let referring: Inside
  let refs: [string, string][] = []
  let named: string[] = []
  let undo = ''
  /** With repositories inside, on a detached HEAD. */
  let detached: Inside
  let stood = ''
  let detachedAt = ''

  const binary = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256))
  const crlf = 'one\r\ntwo\nthree\r\n'
  const oddNames = [Buffer.from([0x6f, 0xff, 0xfe]), Buffer.from('new\nline'), Buffer.from([0x69, 0x67, 0x6e, 0xff])]
  const at = (directory: string, name: Buffer): Buffer => Buffer.concat([Buffer.from(`${directory}/`), name])
  const nested = ['begun', 'ignored/deep']

  const change = (tree: Inside): void => {
    onlyInReflog = tree.commit('draft', 'draft\n')
    tree.git('reset', '-q', '--hard', 'HEAD~1')
    tree.write('README', 'staged\n')
    tree.git('add', 'README')
    tree.write('README', 'unstaged\n')
    tree.write('new.md', 'new\n')
    rmSync(join(tree.path, 'a'))
    tree.git('rm', '-q', '--cached', 'b')
    tree.git('mv', 'c', 'moved')
    chmodSync(join(tree.path, 'tool'), 0o755)
    symlinkSync('/nowhere/at/all', join(tree.path, 'dangling'))
    symlinkSync('README', join(tree.path, 'link'))
    tree.write('blob.bin', binary)
    tree.write('mixed.txt', crlf)
    for (const name of oddNames) writeFileSync(at(tree.path, name), `in ${name.toString('hex')}`)
    tree.git('add', 'new\nline')
    tree.write('later.md', 'not yet\n')
    tree.git('add', '-N', 'later.md')
    rmSync(join(tree.path, 'f'))
    tree.write('f/b', 'now a directory\n')
    rmSync(join(tree.path, 'd'), { recursive: true })
    tree.write('d', 'now a file\n')
    status = tree.git('status', '--short', '-z')
  }

  const conflict = (tree: Inside): void => {
    tree.commit('README', 'ours\n')
    world.repo.commit('README', 'theirs\n')
    tree.tryGit('merge', 'main')
    stages = tree.git('ls-files', '-u')
  }

  const drop = (tree: Inside): void => {
    const branch = tree.git('symbolic-ref', '--short', 'HEAD')
    dropped.push(tree.commit('a', 'a\n'))
    tree.git('reset', '-q', '--hard', 'HEAD~1')
    tree.git('switch', '-q', '-c', 'short-lived')
    dropped.push(tree.commit('b', 'b\n'))
    tree.git('switch', '-q', branch)
    tree.git('branch', '-D', 'short-lived')
  }

  const refer = (tree: Inside): void => {
    const branch = tree.git('symbolic-ref', '--short', 'HEAD')
    const commit = (message: string): string => tree.git('commit-tree', '-m', message, 'HEAD^{tree}', '-p', 'HEAD')
    const tagOf = (target: string): string => {
      tree.git('tag', '-f', '-a', '-m', `of ${target}`, 'temporary', target)
      const tag = tree.git('rev-parse', 'temporary')
      tree.git('tag', '-d', 'temporary')
      return tag
    }
    tree.write('note', 'a file that only a ref holds\n')
    const blob = tree.git('hash-object', '-w', 'note')
    rmSync(join(tree.path, 'note'))
    tree.git('update-index', '--add', '--cacheinfo', `100644,${blob},in/a/tree`)
    const directory = tree.git('write-tree')
    tree.git('reset', '-q', '--hard')
    named = [commit('tagged'), commit('deep'), commit('picked')]
    const [tagged = '', deep = '', picked = ''] = named
    const tag = tagOf(tagged)
    refs = [
      ['refs/worktree/tag', tag],
      ['refs/worktree/tag-of-tag', tagOf(tag)],
      ['refs/worktree/tag-of-blob', tagOf(blob)],
      ['refs/worktree/blob', blob],
      ['refs/worktree/tree', directory],
      ['refs/worktree/a/b/c/d/e/f/g/h', deep],
    ]
    for (const [name, sha] of refs) tree.git('update-ref', name, sha)
    writeIn(tree.git('rev-parse', '--absolute-git-dir'), 'sequencer/todo', `pick ${picked.slice(0, 8)} picked\n`)
    // A conflict whose resolution is staged: its three stages are in no tree any more.
    tree.commit('README', 'ours\n')
    tree.git('checkout', '-q', '-b', 'theirs', 'HEAD~1')
    tree.commit('README', 'theirs, too\n')
    tree.git('checkout', '-q', branch)
    tree.tryGit('merge', 'theirs')
    tree.write('README', 'both\n')
    tree.git('add', 'README')
    undo = tree.git('ls-files', '--resolve-undo')
  }

  const detach = (tree: Inside): void => {
    stood = tree.git('rev-parse', 'HEAD')
    tree.git('switch', '-q', '--detach')
    detachedAt = tree.commit('a', 'a\n')
    for (const name of nested) {
      mkdirSync(join(tree.path, name), { recursive: true })
      world.box.raw(join(tree.path, name), 'init', '-q')
      tree.write(`${name}/draft`, name)
    }
  }

  beforeAll(async () => {
    world = await makeWorld({
      prepare: (repo) => {
        repo.write('.gitattributes', '*.txt text eol=lf\n')
        repo.write('.gitignore', 'ign*\n')
        for (const name of ['a', 'b', 'c', 'f', 'd/x', 'd/y', 'tool']) repo.write(name, `content of ${name}\n`)
        repo.git('add', '-A')
        repo.git('commit', '-q', '-m', 'files')
      },
    })
    const given = async (number: number, arrange: (tree: Inside) => void, force = true) => {
      const environment = await issue(world, number)
      arrange(inside(world, environment))
      return (await removed(world, environment, { force })).restorePoint
    }
    const points = [await given(42, change), await given(43, conflict), await given(45, refer), await given(46, detach)]
    await given(44, drop, false)
    world.repo.git('branch', '-D', 'theirs')
    world.repo.git('reflog', 'expire', '--expire=now', '--all')
    world.repo.git('gc', '-q', '--prune=now')
    const back: Inside[] = []
    for (const point of points) back.push(inside(world, (await world.provider.restore(point)).environment))
    ;[changed, conflicted, referring, detached] = back as [Inside, Inside, Inside, Inside]
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test('staged and unstaged changes of one file apart', () => {
    expect(changed.git('show', ':README')).toBe('staged')
    expect(changed.read('README')).toBe('unstaged\n')
    expect(changed.git('status', '--short', 'README')).toBe('MM README')
    expect(changed.read('new.md')).toBe('new\n')
  })

  test('the status of every file', () => {
    expect(changed.git('status', '--short', '-z')).toBe(status)
  })

  test('deleted, staged-deleted and renamed files', () => {
    expect([changed.has('a'), changed.has('b'), changed.has('c')]).toEqual([false, true, false])
    expect(changed.read('moved')).toBe('content of c\n')
  })

  test('mode changes and symbolic links, also those that lead nowhere', () => {
    expect(lstatSync(join(changed.path, 'tool')).mode & 0o111).not.toBe(0)
    expect(readlinkSync(join(changed.path, 'dangling'))).toBe('/nowhere/at/all')
    expect(readlinkSync(join(changed.path, 'link'))).toBe('README')
  })

  test('binary content, and CRLF as raw bytes where git would convert them', () => {
    expect(readFileSync(join(changed.path, 'blob.bin'))).toEqual(binary)
    expect(changed.read('mixed.txt')).toBe(crlf)
  })

  test('file names that are not UTF-8 or hold a newline, tracked, untracked and ignored', () => {
    for (const name of oddNames) {
      expect(readFileSync(at(changed.path, name), 'utf8')).toBe(`in ${name.toString('hex')}`)
    }
    expect(changed.git('status', '--short', '-z')).toContain('A  new\nline')
  })

  test('an intent to add', () => {
    expect(changed.git('status', '--short', 'later.md')).toBe(' A later.md')
    expect(changed.read('later.md')).toBe('not yet\n')
  })

  test('a file that became a directory, and a directory that became a file', () => {
    expect(changed.read('f/b')).toBe('now a directory\n')
    expect(changed.read('d')).toBe('now a file\n')
  })

  test('an unmerged conflict with all its stages', () => {
    expect(stages.split('\n')).toHaveLength(3)
    expect(conflicted.git('ls-files', '-u')).toBe(stages)
    expect(conflicted.git('show', ':3:README')).toBe('theirs')
    expect(conflicted.read('README')).toContain('<<<<<<<')
  })

  test('commits that only its reflog reaches, of HEAD and of a branch that is gone', () => {
    const types = [onlyInReflog, ...dropped].map((sha) => world.repo.git('cat-file', '-t', sha))
    expect(types).toEqual(['commit', 'commit', 'commit'])
  })

  test("everything that only a ref or a list in git's record names", () => {
    for (const [name, sha] of refs) expect([name, referring.git('rev-parse', name)]).toEqual([name, sha])
    expect(named.map((sha) => referring.tryGit('cat-file', '-t', sha))).toEqual(['commit', 'commit', 'commit'])
    expect(referring.git('for-each-ref', '--format=%(objecttype)', 'refs/worktree')).toBe(
      'commit\nblob\ntag\ntag\ntag\ntree',
    )
    expect(referring.git('ls-files', '--resolve-undo')).toBe(undo)
    expect(undo).not.toBe('')
  })

  test('the branch where it stood, although HEAD was detached elsewhere', () => {
    expect(detached.git('rev-parse', 'HEAD')).toBe(detachedAt)
    expect(world.repo.git('rev-parse', 'issue-46')).toBe(stood)
  })

  test('an empty nested repository and one inside an ignored directory', () => {
    for (const name of nested) {
      expect(detached.read(`${name}/draft`)).toBe(name)
      expect(world.box.raw(join(detached.path, name), 'status', '--short')).toBe('?? draft')
    }
  })

  test('every object that they need, for the next `git gc` as well', () => {
    expect(changed.git('fsck', '--connectivity-only')).not.toContain('missing')
    world.repo.git('gc', '-q')
  })
})

describe.concurrent('a restore brings back, byte for byte,', () => {
  test('what the repository would borrow from another one that has dropped it since', async () => {
    const kept = (world: World): string[] =>
      readdirSync(join(world.repo.commonDir, 'objects/pack')).filter((name) => name.endsWith('.keep'))
    await using world = await makeWorld()
    const lender = world.box.repo('lender')
    writeFileSync(join(world.repo.commonDir, 'objects/info/alternates'), `${lender.commonDir}/objects\n`)
    const [dirty, clean] = [await issue(world, 42), await issue(world, 43)]
    const tree = inside(world, dirty)
    lender.commit('big', 'content that the lender has, too\n')
    tree.write('mine', 'content that the lender has, too\n')
    lender.commit('staged', 'staged\n')
    tree.write('index-only', 'staged\n')
    tree.git('add', 'index-only')
    tree.write('index-only', 'lies there\n')
    const committed = inside(world, clean).commit('committed', 'committed\n')
    for (const branch of ['issue-42', 'issue-43']) tree.git('push', '-q', lender.path, branch)
    const points = [
      (await removed(world, dirty, { force: true })).restorePoint,
      (await removed(world, clean, { force: true })).restorePoint,
    ]
    expect(kept(world)).toHaveLength(2)
    world.repo.git('branch', '-D', 'issue-43')
    lender.git('gc', '-q')
    world.repo.git('gc', '-q', '--prune=now')
    lender.git('reset', '-q', '--hard', 'HEAD~2')
    lender.git('branch', '-D', 'issue-42', 'issue-43')
    lender.git('reflog', 'expire', '--expire=now', '--all')
    lender.git('gc', '-q', '--prune=now')
    world.repo.git('gc', '-q', '--prune=now')
    const [first, second] = [await world.provider.restore(points[0]!), await world.provider.restore(points[1]!)]
    expect([first.notices, second.notices]).toEqual([[], []])
    const back = inside(world, first.environment)
    expect(back.read('mine')).toBe('content that the lender has, too\n')
    expect(back.git('show', ':index-only')).toBe('staged')
    expect(inside(world, second.environment).git('rev-parse', 'HEAD')).toBe(committed)
    for (const { id } of points) await discardRestorePoint(world.context, world.codebase, id)
    expect(kept(world)).toEqual([])
    expect(readdirSync(join(world.context.home, 'restore'))).toEqual([])
  })

  test('ignored files smallest first up to the cap, and names what it left out', async () => {
    const { world, environment, tree } = await start({
      prepare: (repo) => repo.commit('.gitignore', '*.dat\nnode_modules/\ntarget/\n'),
      settings: { restoreIgnoredBytes: 3000 },
    })
    await using _ = world
    tree.write('small.dat', 'x'.repeat(500))
    tree.write('medium.dat', 'y'.repeat(2000))
    tree.write('large.dat', 'z'.repeat(4000))
    tree.write('node_modules/a/index.js', 'made again')
    tree.write('sub/target/app', 'made again')
    const { restorePoint, leftOut } = await removed(world, environment)
    expect(leftOut.map(({ path }) => path).sort()).toEqual(['large.dat', 'node_modules/', 'sub/target/'])
    const { environment: back, notices } = inWords(await world.provider.restore(restorePoint))
    const there = inside(world, back)
    expect([there.has('small.dat'), there.has('medium.dat'), there.has('large.dat')]).toEqual([true, true, false])
    expect(notices.join('\n')).toContain('large.dat')
    expect(there.has('node_modules')).toBe(false)
  })

  test('no FIFO, socket or device, and names each before and after', async () => {
    const { world, environment, tree } = await start({
      prepare: (repo) => {
        repo.commit('.gitignore', 'ign/\nnode_modules/\n')
        repo.commit('tracked', 'tracked\n')
      },
    })
    await using _ = world
    const fifo = (path: string): void => {
      mkdirSync(dirname(join(tree.path, path)), { recursive: true })
      execFileSync('mkfifo', [join(tree.path, path)])
    }
    for (const path of ['pipe', 'new/deep/pipe', 'ign/pipe', 'node_modules/pipe']) fifo(path)
    const server = createServer().listen(join(tree.path, 'socket'))
    await once(server, 'listening')
    const names = (leftOut: readonly LeftOut[]): string[] =>
      leftOut.map(({ path, reason }) => `${path}: ${reason}`).sort()
    const all = [
      'ign/pipe: a FIFO',
      'new/deep/pipe: a FIFO',
      'node_modules/pipe: a FIFO',
      'pipe: a FIFO',
      'socket: a socket',
    ]
    const asked = await remove(world, environment, { dryRun: true })
    expect(asked.outcome === 'would-remove' ? names(asked.leftOut) : asked).toEqual(all)

    // In place of a tracked file it is a change: refused, and told before it is forced.
    rmSync(join(tree.path, 'tracked'))
    fifo('tracked')
    const refused = await remove(world, environment)
    expect(refused.outcome === 'refused' ? names(refused.notKept ?? []) : refused).toEqual([...all, 'tracked: a FIFO'])
    const { leftOut, restorePoint } = await removed(world, environment, { force: true })
    server.close()
    const kept = all.filter((one) => !one.startsWith('node_modules'))
    expect(names(leftOut)).toEqual([...kept, 'node_modules/: can be regenerated', 'tracked: a FIFO'].sort())
    const { environment: back, notices } = inWords(await world.provider.restore(restorePoint))
    expect(notices).toContain('not restored: new/deep/pipe (a FIFO)')
    expect(inside(world, back).git('status', '--short')).toBe(' D tracked')
  })

  const fileModes = ['true', 'false']
  test.for(fileModes)('permissions of all files and directories, with core.fileMode=%s', async (fileMode) => {
    const { world, environment, tree } = await start({
      prepare: (repo) => {
        repo.commit('plain', 'made executable\n')
        repo.write('tool', 'not executable any more\n')
        chmodSync(join(repo.path, 'tool'), 0o755)
        repo.git('add', 'tool')
        repo.git('commit', '-q', '-m', 'tool')
        repo.git('config', 'core.fileMode', fileMode)
        repo.commit('secrets/key', 'tracked and clean\n')
        repo.commit('run.sh', 'echo\n')
        repo.commit('.gitignore', '*.local\nign/\nnode_modules/\n')
        repo.commit('.coppice/config.yaml', 'worktree:\n  copy: ["env.local", "env.copied"]\n')
        repo.write('env.local', 'KEY=1\n')
        repo.write('env.copied', 'KEY=2\n')
        chmodSync(join(repo.path, 'env.copied'), 0o600)
      },
    })
    await using _ = world
    tree.write('new/draft', 'untracked\n')
    tree.write('ign/a/b', 'ignored\n')
    tree.write('node_modules/private', 'not kept\n')
    mkdirSync(join(tree.path, 'empty/inner'), { recursive: true })
    const modes: [string, number][] = [
      ['secrets', 0o700],
      ['secrets/key', 0o600],
      ['run.sh', 0o700],
      ['plain', 0o755],
      ['tool', 0o644],
      ['README', 0o664],
      ['env.local', 0o400],
      ['env.copied', 0o600],
      ['new', 0o750],
      ['new/draft', 0o640],
      ['ign/a', 0o711],
      ['ign/a/b', 0o604],
      ['empty/inner', 0o1700],
    ]
    for (const [path, mode] of modes) chmodSync(join(tree.path, path), mode)
    const before = fingerprint(tree.path, (path) => /\/(?:\.git|node_modules)$/.test(path))
    const back = await thereAndBack(world, environment)
    expect(back.path).toBe(tree.path)
    expect(fingerprint(back.path, (path) => path.endsWith('/.git'))).toBe(before)
  })

  test('permissions of an environment that was made and is restored under different umasks', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    // One umask for the whole process: the files are given what another one would have made of them.
    chmodSync(join(tree.path, 'README'), 0o600)
    const { restorePoint } = await removed(world, environment, { force: true })
    const { contents } = restorePoint
    const permissions = { umask: 0o077, emptyDirectories: ['private'] }
    const point = { ...restorePoint, contents: { ...contents, permissions, modes: {} } }
    const back = inside(world, (await world.provider.restore(point)).environment)
    const modeOf = (path: string): number => lstatSync(join(back.path, path)).mode & 0o777
    expect([modeOf('README'), modeOf('private')]).toEqual([0o600, 0o700])
  })
})

describe.concurrent('restore', () => {
  /** As if it had never been restored, without asking Coppice to remove it. */
  const takeAway = async (world: World, { id, path, branch }: IsolatedEnvironment): Promise<void> => {
    world.repo.git('worktree', 'remove', '-f', '-f', path)
    world.repo.git('branch', '-q', '-D', branch)
    const { environments } = world.context.store
    await environments.transition(id, 'active', 'removing')
    await environments.transition(id, 'removing', 'removed')
  }

  test('takes a name of its own when the branch is checked out elsewhere or has moved on', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    const mine = tree.commit('a', 'a\n')
    tree.write('README', 'changed\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    const elsewhere = world.repo.worktree('elsewhere', 'issue-42')
    const first = await world.provider.restore(restorePoint)
    expect(first.environment.branch).toBe('issue-42-restored')
    expect(world.box.raw(elsewhere.path, 'symbolic-ref', '--short', 'HEAD')).toBe('issue-42')
    await takeAway(world, first.environment)
    world.repo.git('worktree', 'remove', elsewhere.path)
    world.repo.git('branch', '-f', 'issue-42', 'main')
    const restored = inWords(await world.provider.restore(restorePoint))
    expect(restored.environment.branch).toBe('issue-42-restored')
    expect(restored.notices.join()).toContain('restored as issue-42-restored')
    expect(inside(world, restored.environment).git('rev-parse', 'HEAD')).toBe(mine)
    expect(inside(world, restored.environment).read('README')).toBe('changed\n')
    expect(world.repo.git('rev-parse', 'issue-42')).toBe(world.repo.git('rev-parse', 'main'))
  })

  const names: [name: string, rows: [what: string, others: string[], expected: string][]][] = [
    [
      'feature',
      [
        ['one below its name', ['feature/x'], 'feature-restored'],
        ['one below its name, and one below the next', ['feature/x', 'feature-restored/y'], 'feature-restored-2'],
        ['one of a similar name', ['features', 'featur'], 'feature'],
      ],
    ],
    ['feature/x', [['one that is a directory of its name', ['feature'], 'feature-x-restored']]],
    ['a/b/c', [['one far up in its name', ['a', 'a-b-c-restored'], 'a-b-c-restored-2']]],
  ]
  test.for(names)('takes a free name beside branches that are in the way of %s', async ([name, rows]) => {
    await using world = await makeWorld()
    const { environment } = await resolved(world, 'task', 'x', { branch: toBranchName(name) })
    const tip = inside(world, environment).commit('a', 'a\n')
    const { restorePoint } = await removed(world, environment)
    expect((await findRestorePoint(world.context, world.codebase, 'x', '/')).id).toBe(restorePoint.id)
    world.repo.git('branch', '-D', name)
    for (const [what, others, expected] of rows) {
      for (const other of others) world.repo.git('branch', other)
      world.repo.git('pack-refs', '--all')
      world.repo.git('tag', expected)
      const { environment: back, notices } = inWords(await world.provider.restore(restorePoint))
      expect([what, back.branch]).toEqual([what, expected])
      expect(notices.join()).toBe(
        name === expected ? '' : `branch ${name} can't exist beside ${others[0]}: restored as ${expected}`,
      )
      expect(inside(world, back).git('rev-parse', 'HEAD', `refs/heads/${expected}`)).toBe(`${tip}\n${tip}`)
      await takeAway(world, back)
      world.repo.git('branch', '-q', '-D', ...others)
      world.repo.git('tag', '-d', expected)
    }
  })

  test('comes back from a branch whose name git keeps for itself', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    const tip = tree.commit('a', 'a\n')
    tree.git('update-ref', 'refs/heads/HEAD', tip)
    tree.git('symbolic-ref', 'HEAD', 'refs/heads/HEAD')
    tree.commit('b', 'b\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    const { environment: back } = await world.provider.restore(restorePoint)
    expect(inside(world, back).read('b')).toBe('b\n')
    expect(back.branch).toBe('issue-42-restored')
  })

  test('comes back on a fresh path when a stranger has the old one, once: a second time only after it is gone', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.write('draft', 'draft\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    mkdirSync(environment.path)
    writeFileSync(join(environment.path, 'stranger'), 'x')
    const first = await world.provider.restore(restorePoint)
    expect(first.environment.path).not.toBe(environment.path)
    expect(readFileSync(join(environment.path, 'stranger'), 'utf8')).toBe('x')
    expect(await messageOf(world.provider.restore(restorePoint))).toContain('it already has a worktree again')
    await removed(world, first.environment, { force: true })
    const second = await world.provider.restore(restorePoint)
    expect(inside(world, second.environment).read('draft')).toBe('draft\n')
    expect(second.environment.id).not.toBe(first.environment.id)
  })

  test('is a task of its own if a link has moved its work to another worktree', async () => {
    await using world = await makeWorld()
    const { environments } = world.context.store
    const environment = await issue(world, 42)
    const { restorePoint } = await removed(world, environment)
    const shared = (await resolved(world, 'thread', 'C1:1')).environment
    await environments.moveWork(shared.id, world.codebase.id, environment.work, 1)
    const restored = inWords(await world.provider.restore(restorePoint))
    expect(restored.environment).toMatchObject({ branch: 'issue-42', work: { type: 'task', id: 'issue-42' } })
    expect(restored.notices).toContain(
      `issue #42 now uses ${shared.branch}, so this worktree is restored as a separate task`,
    )
    expect((await issue(world, 42)).id).toBe(shared.id)
  })

  test('is found by either identity again, and by the branch', async () => {
    await using world = await makeWorld()
    const { environment } = await resolved(world, 'issue', 42, { hints: { linkedPRs: [99] } })
    const { restorePoint } = await removed(world, environment)
    const restored = inWords(await world.provider.restore(restorePoint))
    expect((await resolved(world, 'pr', 99)).environment.id).toBe(restored.environment.id)
    expect((await resolved(world, 'issue', 42)).environment.id).toBe(restored.environment.id)
  })

  test("brings a pull request's branch back with its upstream, so that a push still updates it", async () => {
    await using world = await makeWorld({ remote: true })
    world.repo.git('push', '-q', 'origin', 'main:feature/x')
    const { environment } = await resolved(world, 'pr', 7, { hints: { prBranch: 'feature/x' } })
    const { restorePoint, branchDeleted } = await removed(world, environment)
    expect(branchDeleted).toBe(true)
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(back.git('rev-parse', '--abbrev-ref', '@{upstream}')).toBe('origin/feature/x')
  })

  test("brings back the branch's own settings, also under another name", async () => {
    await using world = await makeWorld({ remote: true })
    const environment = await issue(world, 42)
    const set = (key: string, value: string): string =>
      world.repo.git('config', '--add', `branch.issue-42.${key}`, value)
    set('description', 'two\nlines')
    set('remote', 'origin')
    set('merge', 'refs/heads/elsewhere')
    set('merge', 'refs/heads/second')
    const { restorePoint, branchDeleted } = await removed(world, environment)
    expect(branchDeleted).toBe(true)
    const settings = (branch: string): string =>
      world.repo.git('config', '--get-regexp', `^branch\\.${branch}\\.`).replaceAll(branch, 'it')
    const expected =
      'branch.it.description two\nlines\nbranch.it.remote origin\nbranch.it.merge refs/heads/elsewhere\nbranch.it.merge refs/heads/second'
    world.repo.git('branch', 'issue-42', 'main')
    world.repo.git('commit', '-q', '--allow-empty', '-m', 'moved on')
    world.repo.git('branch', '-f', 'issue-42', 'main')
    const { environment: back } = await world.provider.restore(restorePoint)
    expect(back.branch).toBe('issue-42-restored')
    expect(settings('issue-42-restored')).toBe(expected)
    world.repo.git('branch', '-D', 'issue-42')
    const again = await removed(world, back)
    const { environment: twice } = await world.provider.restore(again.restorePoint)
    expect(settings(twice.branch)).toBe(expected)
  })

  test("brings back the environment's own branch with its settings, although HEAD was on another; one that fails leaves nothing behind and can be tried again", async () => {
    let broken = ''
    const { world, environment, tree } = await start({
      context: {
        failpoint: async (name) => {
          if (name === broken) throw new Error(`cut at ${name}`)
        },
      },
    })
    await using _ = world
    const { repo } = world
    repo.git('config', 'branch.issue-42.description', 'mine')
    tree.git('switch', '-q', '-c', 'other')
    tree.commit('a', 'a\n')
    tree.write('draft', 'draft\n')
    repo.git('config', 'branch.other.description', 'of the other')
    const { restorePoint, branchDeleted } = await removed(world, environment, { force: true })
    expect({ branchDeleted, there: branchExists(world, 'issue-42') }).toEqual({ branchDeleted: true, there: false })
    for (broken of ['restore.files', 'restore.own-branch']) {
      expect(await messageOf(world.provider.restore(restorePoint))).toContain(`cut at ${broken}`)
      expect(repo.git('worktree', 'list').split('\n')).toHaveLength(1)
      expect([branchExists(world, 'issue-42'), branchExists(world, 'other')]).toEqual([false, true])
    }
    broken = ''
    const { environment: back, notices } = inWords(await world.provider.restore(restorePoint))
    expect(notices).toEqual(['also restored branch issue-42'])
    expect(inside(world, back).git('symbolic-ref', '--short', 'HEAD')).toBe('other')
    expect(inside(world, back).read('draft')).toBe('draft\n')
    expect(repo.git('rev-parse', 'issue-42')).toBe(repo.git('rev-parse', 'main'))
    expect(repo.git('config', 'branch.issue-42.description')).toBe('mine')
    expect(repo.git('config', 'branch.other.description')).toBe('of the other')
  })

  test('points live 30 days: then ref, directory and row go, and not a day before', async () => {
    let now = Date.now()
    const { world, environment, tree } = await start({ context: { clock: () => now } })
    await using _ = world
    tree.write('draft', 'draft\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    const directory = join(world.context.home, 'restore', restorePoint.id)
    const look = () => expireRestorePoints(world.context, world.codebase)
    for (let days = 1; days < 30; days += 1) {
      now += day
      expect(await look()).toBe(0)
    }
    expect(existsSync(directory)).toBe(true)
    now += day
    expect(await look()).toBe(1)
    expect(existsSync(directory)).toBe(false)
    expect(world.repo.git('for-each-ref', 'refs/coppice')).toBe('')
    expect(await world.context.store.restorePoints.get(restorePoint.id)).toBeUndefined()
  })

  test('points outlive a clock that was wrong when they were written, and one that is wrong now', async () => {
    const right = Date.now()
    let now = right - 60 * day
    const { world, environment, tree } = await start({ context: { clock: () => now } })
    await using _ = world
    tree.write('draft', 'draft\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    for (const days of [0, 0.25, 4000, 0.5]) {
      now = right + days * day
      expect(await expireRestorePoints(world.context, world.codebase)).toBe(0)
    }
    const { environment: back } = await world.provider.restore(restorePoint)
    expect(inside(world, back).read('draft')).toBe('draft\n')
  })

  test.for(['restore.files', 'restore.record'])(
    'of a point whose time is over meanwhile (%s) brings everything back',
    async (place) => {
      let isOver = false
      let armed = false
      const expire = async (): Promise<void> => {
        armed = false
        isOver = true
        expired.push(await expireRestorePoints(world.context, world.codebase))
      }
      const expired: number[] = []
      const { world, environment, tree } = await start({
        settings: { restoreDays: 1 },
        prepare: (repo) => repo.commit('.gitignore', '*.log\n'),
        context: {
          clock: () => Date.now() + (isOver ? 2 * day : 0),
          failpoint: async (name) => (armed && name === place ? expire() : undefined),
        },
      })
      await using _ = world
      tree.write('only.log', 'nowhere else\n')
      tree.write('draft', 'draft\n')
      const { restorePoint } = await removed(world, environment, { force: true })
      armed = true
      const { environment: back, notices } = inWords(await world.provider.restore(restorePoint))
      expect(notices).toEqual([])
      expect(inside(world, back).read('only.log')).toBe('nowhere else\n')
      expect(inside(world, back).read('draft')).toBe('draft\n')
      expect([...expired, await expireRestorePoints(world.context, world.codebase)]).toEqual([0, 1])
      if (place === 'restore.files') return
      await removed(world, back, { force: true })
      expect(await messageOf(world.provider.restore(restorePoint))).toBe('that restore point has expired')
    },
  )

  test('of a damaged point names each file that is missing, and fails where a whole part is missing', async () => {
    const { world, environment, tree } = await start({ prepare: (repo) => repo.commit('.gitignore', '*.log\n') })
    await using _ = world
    tree.write('README', 'changed\n')
    tree.write('mine', 'only here\n')
    tree.write('copy', 'only here\n')
    tree.write('other', 'other\n')
    tree.write('a.log', 'a\n')
    tree.write('b.log', 'b\n')
    world.box.raw(environment.path, 'init', '-q', 'nested')
    const blobs = ['mine', 'README'].map((file) => tree.git('hash-object', file))
    const { restorePoint } = await removed(world, environment, { force: true })
    for (const sha of blobs) rmSync(join(world.repo.commonDir, 'objects', sha.slice(0, 2), sha.slice(2)))
    const directory = join(world.context.home, 'restore', restorePoint.id)
    rmSync(join(directory, 'ignored/a.log'))
    const { environment: back, notices } = inWords(await world.provider.restore(restorePoint))
    const gone = 'its content is missing from the repository'
    expect([...notices].sort()).toEqual(
      [`README (${gone})`, 'a.log (missing from the restore point)', `copy (${gone})`, `mine (${gone})`].map(
        (line) => `not restored: ${line}`,
      ),
    )
    expect(inside(world, back).read('other')).toBe('other\n')
    expect(inside(world, back).read('b.log')).toBe('b\n')
    await removed(world, back, { force: true })
    for (const part of ['ignored', 'nested/nested', 'admin']) {
      renameSync(join(directory, part), join(directory, 'away'))
      expect(await messageOf(world.provider.restore(restorePoint))).toBe(
        `the restore point is incomplete: ${join(directory, part)} is missing`,
      )
      renameSync(join(directory, 'away'), join(directory, part))
    }
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(1)
  })

  test('that waits while the work is taken up and removed again can choose anew', async () => {
    let meanwhile = async (): Promise<void> => undefined
    const real = createRepositoryLock({ clock: Date.now, random: Math.random })
    const { world, environment, tree } = await start({
      context: {
        lock: {
          ...real,
          withRepositoryLock: async (repo, options, work) => {
            if (options.purpose.startsWith('restoring')) await meanwhile()
            return real.withRepositoryLock(repo, options, work)
          },
        },
      },
    })
    await using _ = world
    tree.write('draft', 'older\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    meanwhile = async () => {
      const anew = await issue(world, 42)
      inside(world, anew).write('draft', 'newer\n')
      await removed(world, anew, { force: true })
    }
    const lookAgain = () => findRestorePoint(world.context, world.codebase, 'issue-42', '/')
    const back = inside(world, (await world.provider.restore(restorePoint, lookAgain)).environment)
    expect(back.read('draft')).toBe('newer\n')
  })

  test('of a missing environment whose record was saved brings HEAD and index back', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.write('staged.txt', 'staged\n')
    tree.git('add', 'staged.txt')
    const tip = tree.commit('a', 'a\n')
    tree.write('later.txt', 'later\n')
    tree.git('add', 'later.txt')
    renameSync(environment.path, world.box.path('away'))
    const anew = await resolved(world, 'issue', 42)
    expect(anew.how).toBe('created')
    expect(inside(world, anew.environment).git('rev-parse', 'HEAD')).toBe(tip)
    const points = await world.context.store.restorePoints.list(world.codebase.id)
    const point = points.find(({ environmentId }) => environmentId === environment.id)
    if (point === undefined) throw new Error('no restore point of the missing one')
    await removed(world, anew.environment)
    const back = inside(world, (await world.provider.restore(point)).environment)
    expect(back.git('rev-parse', 'HEAD')).toBe(tip)
    expect(back.git('show', ':later.txt')).toBe('later')
  })
})
