import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { markerProgram, writeIn } from '../helpers/repo.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { said } from '../helpers/words.ts'
import { everyCase } from '../helpers/every-case.ts'
import { ask, type Inside, inside } from './scene.ts'

/*
 * A pull request's head moves to a commit that a stranger chose. What the tree holds beyond its commits stays. One world:
 * each row has a pull request of its own.
 */

let world: World
let fork: Inside
beforeAll(async () => {
  world = await makeWorld({
    remote: true,
    settings: { worktreesPerCodebase: 100 },
    prepare: (repo, box) => {
      box.repo('lib').commit('.gitignore', '*.log\n')
      for (const name of ['lib', 'lib2']) repo.git('submodule', '--quiet', 'add', box.path('lib'), name)
      for (const name of ['pkg', 'pkg1', 'pkg2', 'pkg3']) repo.write(`${name}/f`, 'f\n')
      const config = (key: string, value: string) => box.raw(repo.path, 'config', '--global', key, value)
      config('filter.strip.clean', 'head -n 1')
      config('filter.up.clean', 'tr A-Z a-z')
      config('filter.up.smudge', 'tr a-z A-Z')
      repo.write('.gitignore', 'ign/\nign[1-4]/\nlink\n*.log\n')
      repo.write(
        '.gitattributes',
        '/nb/** filter=strip\n/books/** filter=strip\n*.up filter=up\n*.txt text eol=crlf\n*.bin filter=lfs\n',
      )
      const notebooks = ['n', 'caf\u00e9', 'version', 'gone', 'mode', 'renamed', 'linked', 'directory', 'sub']
      const files = [...notebooks.map((name) => `nb/${name}`), 'books/n', 'a.up', 'crlf.txt']
      for (const path of files) repo.write(path, 'one\n')
      repo.git('add', '-A')
      repo.git('commit', '-q', '-m', 'files')
    },
  })
  world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), world.box.path('fork'))
  fork = inside(world, { path: world.box.path('fork') })
})
afterAll(() => world[Symbol.asyncDispose]())

let pulls = 0
/** A review of a new pull request, and what becomes of it when the head moves. */
const review = async () => {
  const number = (pulls += 1)
  const push = (): string => {
    fork.git('push', '-q', '--force', 'origin', `HEAD:refs/pull/${number}/head`)
    return fork.git('rev-parse', 'HEAD')
  }
  const askAbout = async (prSha: string, { context = world.context, signal }: Asking = {}) => {
    const answer = await ask({ ...world, context }, 'pr', number, {
      hints: { isForkPR: true, prBranch: 'x', prSha },
      ...(signal && { signal }),
    })
    if (answer.outcome !== 'resolved') throw new Error(`not resolved: ${JSON.stringify(answer)}`)
    return answer
  }
  fork.git('reset', '-q', '--hard', 'origin/main')
  fork.commit('one', `${number}\n`)
  const first = push()
  const { environment } = await askAbout(first)
  const tree = inside(world, environment)
  const move = async (how: How, change: (fork: Inside) => void, asking?: Asking) => {
    if (how === 'rewritten') fork.git('reset', '-q', '--hard', 'origin/main')
    change(fork)
    const target = push()
    const answer = await askAbout(target, asking)
    const head = tree.git('rev-parse', 'HEAD')
    const notices = said(answer.notices)
    return { facts: answer.notices, notices: notices.join(), isMoved: head === target, isLeft: head === first }
  }
  return { tree, move, number, id: environment.id, branch: environment.branch }
}

type Asking = { readonly context?: World['context']; readonly signal?: AbortSignal }

const hows = ['moved on', 'rewritten'] as const
type How = (typeof hows)[number]

/** Tracks a file there, whatever was. */
const fileAt =
  (path: string) =>
  (at: Inside): void => {
    const [top = ''] = path.split('/')
    at.git('rm', '-rq', '--cached', '--ignore-unmatch', top)
    rmSync(join(at.path, top), { recursive: true, force: true })
    at.commit(path, 'theirs\n')
  }

type Row = {
  readonly lay: (tree: Inside) => void
  readonly kept: string
  /** Where the notice says it is. */
  readonly reported: string
  /** Staged by the pull request. */
  readonly change: (fork: Inside) => unknown
}
const ignored = (path: string) => (tree: Inside) => tree.write(path, 'precious\n')

/** Git calls the tree clean afterwards. */
const hidden =
  (path: string, content = 'one\nprecious\n') =>
  (tree: Inside) => {
    tree.write(path, content)
    // Older than the index: git does not read it again.
    utimesSync(join(tree.path, path), 1_500_000_000, 1_500_000_000)
    tree.git('add', '--', path)
    if (tree.git('status', '--short') !== '') throw new Error(`git status shows ${path}`)
  }
const commits =
  (...commands: readonly (readonly string[])[]) =>
  (at: Inside): void => {
    for (const command of commands) at.git(...command)
    at.git('commit', '-q', '-m', 'theirs')
  }
/** In force for this tree only, whatever git has checked out already. */
const sparse = (tree: Inside, ...patterns: string[]): void => {
  tree.git('config', 'extensions.worktreeConfig', 'true')
  tree.git('config', '--worktree', 'core.sparseCheckout', 'true')
  tree.git('config', '--worktree', 'core.sparseCheckoutCone', 'false')
  writeIn(tree.git('rev-parse', '--absolute-git-dir'), 'info/sparse-checkout', `${patterns.join('\n')}\n`)
}
/** Stages a file there, whatever was. */
const stage =
  (path: string) =>
  (at: Inside): void => {
    const [top = ''] = path.split('/')
    at.git('rm', '-rq', '--cached', '--ignore-unmatch', top)
    rmSync(join(at.path, top), { recursive: true, force: true })
    at.write(path, 'theirs\n')
    at.git('add', '-f', '--', path)
  }
const notebook = (name: string) => ({ lay: hidden(`nb/${name}`), kept: `nb/${name}`, reported: `nb/${name}` })
const stageContent = (path: string) => (at: Inside) => {
  at.write(path, 'two\n')
  at.git('add', '--', path)
}
const asSubmodule = ['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},nb/sub`]

/** Each has a place of its own in the tree. */
const rows: Record<string, Row> = {
  'an edit that a filter hides, for another version': { ...notebook('version'), change: stageContent('nb/version') },
  'one, for no file': { ...notebook('gone'), change: (at) => at.git('rm', '-q', 'nb/gone') },
  'one, for an executable': { ...notebook('mode'), change: (at) => at.git('update-index', '--chmod=+x', 'nb/mode') },
  'one, for a file of another name': { ...notebook('renamed'), change: (at) => at.git('mv', 'nb/renamed', 'm') },
  'one, for a link': {
    ...notebook('linked'),
    change: (at) => {
      rmSync(join(at.path, 'nb/linked'))
      symlinkSync('../one', join(at.path, 'nb/linked'))
      at.git('add', 'nb/linked')
    },
  },
  'one, for a directory': {
    ...notebook('directory'),
    change: (at) => {
      at.git('rm', '-q', 'nb/directory')
      stageContent('nb/directory/inner')(at)
    },
  },
  'one, for a submodule': {
    ...notebook('sub'),
    change: (at) => {
      at.git('rm', '-q', '--cached', 'nb/sub')
      at.git(...asSubmodule)
    },
  },
  'the directory of one, for a file': {
    lay: hidden('books/n'),
    kept: 'books/n',
    reported: 'books/n',
    change: stage('books'),
  },
  'one, for a name that some disks take for the same': {
    lay: hidden('nb/caf\u00e9'),
    kept: 'nb/caf\u00e9',
    reported: 'nb/cafe\u0301',
    change: stageContent('nb/cafe\u0301'),
  },
  'an edit that a filter hides and that keeps the size': {
    lay: hidden('a.up', 'oNE\n'),
    kept: 'a.up',
    reported: 'a.up',
    change: stageContent('a.up'),
  },
  'an ignored file that it tracks': {
    lay: ignored('x.log'),
    kept: 'x.log',
    reported: 'x.log',
    change: stage('x.log'),
  },
  'a file in an ignored directory': {
    lay: ignored('ign1/a'),
    kept: 'ign1/a',
    reported: 'ign1/',
    change: stage('ign1/a'),
  },
  'an ignored directory, for another file in it': {
    lay: ignored('ign2/a'),
    kept: 'ign2/a',
    reported: 'ign2/',
    change: stage('ign2/b'),
  },
  'an ignored directory, for a file of that name': {
    lay: ignored('ign3/a'),
    kept: 'ign3/a',
    reported: 'ign3',
    change: stage('ign3'),
  },
  'a directory with an ignored file': {
    lay: ignored('data/a.log'),
    kept: 'data/a.log',
    reported: 'data',
    change: stage('data'),
  },
  'the directories above one': {
    lay: ignored('deep/b/c/a.log'),
    kept: 'deep/b/c/a.log',
    reported: 'deep/b',
    change: stage('deep/b'),
  },
  'a tracked directory with an ignored file': {
    lay: ignored('pkg1/a.log'),
    kept: 'pkg1/a.log',
    reported: 'pkg1',
    change: stage('pkg1'),
  },
  'an ignored file, for a directory of that name': {
    lay: ignored('a.log'),
    kept: 'a.log',
    reported: 'a.log',
    change: stage('a.log/inner'),
  },
  'an ignored link, for a directory of that name': {
    lay: (tree) => {
      mkdirSync(join(tree.path, 'ign'))
      tree.write('ign/a', 'precious\n')
      symlinkSync('ign', join(tree.path, 'link'))
    },
    kept: 'link/a',
    reported: 'link',
    change: stage('link/b'),
  },
  'an ignored repository': {
    lay: (tree) => {
      tree.git('init', '-q', 'ign4/pkg')
      tree.git('-C', 'ign4/pkg', 'commit', '-q', '--allow-empty', '-m', 'only here')
    },
    kept: 'ign4/pkg/.git/HEAD',
    reported: 'ign4',
    change: stage('ign4'),
  },
  'a repository in a tracked directory': {
    lay: (tree) => {
      tree.git('init', '-q', 'pkg2')
      tree.git('-C', 'pkg2', 'add', '.')
      tree.git('-C', 'pkg2', 'commit', '-q', '-m', 'only here')
    },
    kept: 'pkg2/.git/HEAD',
    reported: 'pkg2',
    change: stage('pkg2'),
  },
  'an empty repository in a tracked directory': {
    lay: (tree) => void tree.git('init', '-q', 'pkg3'),
    kept: 'pkg3/.git/HEAD',
    reported: 'pkg3',
    change: stage('pkg3'),
  },
  'a submodule with ignored files': {
    lay: (tree) => {
      tree.git('submodule', '--quiet', 'update', '--init', 'lib')
      tree.write('lib/a.log', 'precious\n')
    },
    kept: 'lib/a.log',
    reported: 'lib',
    change: stage('lib'),
  },
  'a submodule': {
    lay: (tree) => void tree.git('submodule', '--quiet', 'update', '--init', 'lib2'),
    kept: 'lib2/.git',
    reported: 'lib2',
    change: stage('lib2/inner'),
  },
}

describe('a pull request that moved on or was rewritten never replaces', () => {
  // All of them in one tree: the notice names each that is in the way.
  test.each(hows)('what git calls clean (%s)', async (how) => {
    const { tree, move } = await review()
    for (const { lay } of Object.values(rows)) lay(tree)
    const before = Object.values(rows).map(({ kept }) => tree.read(kept))
    const { facts, isLeft } = await move(how, (at) => {
      for (const { change } of Object.values(rows)) change(at)
      at.git('commit', '-q', '-m', 'theirs')
    })
    expect(isLeft).toBe(true)
    expect(Object.values(rows).map(({ kept }) => tree.read(kept))).toEqual(before)
    const paths = facts.flatMap((fact) =>
      fact.kind === 'head-not-followed' && fact.why.kind === 'in-the-way' ? fact.why.paths : [],
    )
    const missed = Object.entries(rows).filter(([, { reported }]) => !paths.includes(reported))
    expect({ missed: missed.map(([what]) => what), paths }).toEqual({ missed: [], paths })
    expect(paths).toHaveLength(Object.keys(rows).length)
  })

  test('an edit outside of a sparse checkout, for nothing', async () => {
    const { tree, move } = await review()
    hidden('nb/n')(tree)
    sparse(tree, '/*', '!/nb/')
    const { notices, isLeft } = await move('moved on', fileAt('two'))
    expect({ isLeft, kept: tree.read('nb/n') }).toEqual({ isLeft: true, kept: 'one\nprecious\n' })
    expect(notices).toContain('it would overwrite or delete nb/n')
  })
})

test.each(hows)('a pull request that was %s moves what is in nobody’s way', async (how) => {
  const { tree, move } = await review()
  for (const path of ['ign/a', 'pkg/a.log', 'data/a.log']) tree.write(path, 'mine\n')
  tree.git('submodule', '--quiet', 'update', '--init')
  tree.write('lib/a.log', 'mine\n')
  const { isMoved } = await move(how, (at) => {
    for (const path of ['pkg/f', 'data/b', 'ign5', 'two']) at.commit(path, 'theirs\n')
  })
  expect(isMoved).toBe(true)
  for (const path of ['ign/a', 'pkg/a.log', 'data/a.log', 'lib/a.log']) expect(tree.read(path)).toBe('mine\n')
  expect(tree.read('pkg/f')).toBe('theirs\n')
})

describe('while a pull request is followed', () => {
  /** What somebody does meanwhile, in a shell. */
  const acts: Readonly<Record<string, (branch: string) => string>> = {
    'a commit': (branch) =>
      `git update-ref refs/heads/${branch} $(git -c user.name=a -c user.email=a@b commit-tree -m mine -p HEAD HEAD^{tree})`,
    // Git would move the other one.
    'a branch that leads to another': (branch) =>
      `git branch led-${branch}; git symbolic-ref refs/heads/${branch} refs/heads/led-${branch}`,
    'another branch': (branch) => `git branch other-${branch}; git symbolic-ref HEAD refs/heads/other-${branch}`,
  }
  const whens = ['during the fetch', 'while files are written'] as const
  const all = hows.flatMap((how, i) =>
    whens.flatMap((when, j) =>
      Object.keys(acts).map((what, k) => ({ how, when, what, act: acts[what], turn: i + j + k })),
    ),
  )
  // Every act at every moment; how the head moved takes turns.
  const cases = all.filter(({ turn }) => everyCase || turn % 2 === 0)

  test.each(cases)('$what that appears $when stays: $how', async ({ how, when, act }) => {
    const { tree, move, branch } = await review()
    const state = `git for-each-ref --format='%(HEAD) %(refname) %(objectname)' --sort=refname refs/heads`
    const script = world.box.path(`meanwhile-${branch}`)
    const seen = `${script}-seen`
    const inTree = `cd ${tree.path}; [ -e ${seen} ] || { ${act?.(branch)}; ${state} > ${seen}; }`
    writeFileSync(
      script,
      `#!/bin/sh\nenv -i PATH="$PATH" HOME="$HOME" sh -c '${inTree.replaceAll("'", `'\\''`)}'\ncat\n`,
    )
    chmodSync(script, 0o755)
    const smudge = (value: string) => world.box.raw(world.box.root, 'config', '--global', 'filter.up.smudge', value)
    if (when === 'while files are written') smudge(script)
    const progress = (): void => {
      if (when === 'during the fetch') execFileSync(script, { env: world.box.env, input: '' })
    }
    try {
      const context = { ...world.context, progress }
      const { notices } = await move(how, (at) => void at.commit('new.up', 'theirs\n'), { context })
      expect(notices).toContain('this worktree stays at')
      expect(execFileSync('sh', ['-c', state], { cwd: tree.path, env: world.box.env, encoding: 'utf8' })).toBe(
        readFileSync(seen, 'utf8'),
      )
      expect([tree.git('status', '--short'), tree.has('new.up')]).toEqual(['', false])
    } finally {
      smudge('tr a-z A-Z')
    }
  })

  test('whoever asked can stop it, even while the remote doesn’t answer, and nothing moves', async () => {
    const { tree, move, number } = await review()
    const head = tree.git('rev-parse', 'HEAD')
    const ref = world.box.path('origin.git', 'refs/pull', String(number), 'head')
    const stop = new AbortController()
    /** Opened once the remote's git reads it; from then on that git waits. */
    const silence = async (): Promise<FileHandle> => {
      rmSync(ref)
      execFileSync('mkfifo', [ref])
      const silent = await open(ref, 'w')
      stop.abort()
      return silent
    }
    let silent: Promise<FileHandle> | undefined
    const asking = { context: { ...world.context, progress: () => void (silent ??= silence()) }, signal: stop.signal }
    try {
      await expect(move('moved on', fileAt('two'), asking)).rejects.toThrow(/abort|cancel/i)
    } finally {
      await (await silent)?.close()
      rmSync(ref, { force: true })
    }
    expect([tree.git('rev-parse', 'HEAD'), tree.git('status', '--short')]).toEqual([head, ''])
  })

  test.each(hows)('a crash after its files were written is made good by the next message: %s', async (how) => {
    const { tree, move } = await review()
    const interrupted = (at: Inside): void => {
      fileAt('two')(at)
      tree.git('fetch', '-q', at.path, 'HEAD')
      tree.git('read-tree', '-m', '-u', 'HEAD', 'FETCH_HEAD')
    }
    const withEdit = await move(how, (at) => {
      interrupted(at)
      tree.write('two', 'precious\n')
    })
    expect(withEdit).toMatchObject({ isLeft: true, notices: expect.stringContaining('changed') })
    expect(tree.read('two')).toBe('precious\n')
    tree.write('two', 'theirs\n')
    expect(await move('moved on', () => undefined)).toMatchObject({ isMoved: true })
    expect(tree.git('status', '--short')).toBe('')
  })

  test.each(['--squash', '-F'])(
    'options for git merge in the repository’s configuration change nothing: %s',
    async (option) => {
      const { tree, move, branch } = await review()
      const fifo = world.box.path(`fifo-${branch}`)
      execFileSync('mkfifo', [fifo])
      tree.git('config', `branch.${branch}.mergeOptions`, option === '-F' ? `-F ${fifo}` : option)
      expect(await move('moved on', fileAt('two'))).toMatchObject({ isMoved: true })
      expect(tree.git('status', '--short')).toBe('')
    },
  )
})

test('a file that was only touched is no change', async () => {
  const { tree, move } = await review()
  utimesSync(join(tree.path, 'pkg/f'), 1_500_000_000, 1_500_000_000)
  expect(await move('moved on', (at) => void at.commit('pkg/f', 'theirs\n'))).toMatchObject({ isMoved: true })
  expect(tree.read('pkg/f')).toBe('theirs\n')
})

test('a review that was moved on is still one without commits of its own, and follows a rewrite', async () => {
  const { tree, move, id } = await review()
  const { environments } = world.context.store
  const { startSha } = (await environments.get(id))!
  /** As after a crash between a move and its record. */
  const forget = () => environments.update(id, { startSha })
  expect(await move('moved on', fileAt('two'))).toMatchObject({ isMoved: true })
  await forget()
  expect(await move('moved on', fileAt('three'))).toMatchObject({ isMoved: true })
  await forget()
  expect(await move('rewritten', fileAt('four'))).toMatchObject({ isMoved: true })
  tree.commit('mine', 'mine\n')
  expect(await move('rewritten', fileAt('five'))).toMatchObject({ isMoved: false })
  await forget()
  expect(await move('rewritten', fileAt('five'))).toMatchObject({ isMoved: false })
  expect(tree.read('mine')).toBe('mine\n')
})

test('a review with commits of its own does not become one without when the pull request takes them in', async () => {
  const { tree, move } = await review()
  tree.commit('mine', 'mine\n')
  const taken = (at: Inside): void => void at.git('pull', '-q', '--ff-only', tree.path, 'HEAD')
  await move('moved on', (at) => {
    taken(at)
    fileAt('two')(at)
  })
  expect(await move('rewritten', fileAt('three'))).toMatchObject({ isMoved: false, isLeft: false })
  expect(tree.read('mine')).toBe('mine\n')
})

test.each(hows)('a pull request that was %s leaves repositories and worktrees in ignored directories', async (how) => {
  const { tree, move } = await review()
  tree.git('init', '-q', 'ign/pkg')
  tree.git('-C', 'ign/pkg', 'commit', '-q', '--allow-empty', '-m', 'only here')
  tree.git('worktree', 'add', '-q', '--detach', 'ign/tree')
  expect(await move(how, fileAt('two'))).toMatchObject({ isMoved: true })
  expect([tree.has('ign/pkg/.git/HEAD'), tree.has('ign/tree/one')]).toEqual([true, true])
  tree.git('init', '-q', 'new')
  tree.git('-C', 'new', 'commit', '-q', '--allow-empty', '-m', 'only here')
  expect(await move(how, fileAt('three'))).toMatchObject({
    isMoved: false,
    notices: expect.stringContaining('it contains a repository: new'),
  })
})

test('a submodule that was never fetched gives way to files', async () => {
  const { tree, move } = await review()
  expect(await move('moved on', fileAt('lib/inner'))).toMatchObject({ isMoved: true })
  expect(tree.read('lib/inner')).toBe('theirs\n')
})

/** Names that git can quote, cut or take for another, and one that is not UTF-8. */
const oddNames = [' space', 'cr\r', 'line\nfeed', '"quoted"', Buffer.from([0xff])]

test('files are compared all at once, whatever their names, and only those that the move touches', async () => {
  const { tree, move } = await review()
  const writeOdd = ({ path }: Inside, content: string): void => {
    for (const name of oddNames) writeFileSync(Buffer.concat([Buffer.from(`${path}/nb/`), Buffer.from(name)]), content)
  }
  const write = (content: string, count: number) => (at: Inside) => {
    for (let i = 0; i < count; i += 1) at.write(`crlf/${i}.txt`, content)
    writeOdd(at, content)
    commits(['add', '-A'])(at)
  }
  const processes = async (content: string, count: number): Promise<number> => {
    const before = world.context.git.spawned()
    expect(await move('moved on', write(content, count))).toMatchObject({ isMoved: true })
    return world.context.git.spawned() - before
  }
  await processes('one\n', 60)
  expect(tree.read('crlf/59.txt')).toBe('one\r\n')
  expect(await processes('two\n', 60)).toBeLessThan((await processes('three\n', 1)) + 20)
  tree.write('nb/n', 'one\nprecious\n')
  tree.git('add', '-A')
  expect(await move('moved on', write('four\n', 1))).toMatchObject({ isMoved: true })
  expect(tree.read('nb/n')).toBe('one\nprecious\n')
  writeOdd(tree, 'four\nprecious\n')
  tree.git('add', '-A')
  expect(tree.git('status', '--short')).toBe('')
  const { isMoved, notices } = await move('moved on', write('five\n', 0))
  expect(isMoved).toBe(false)
  for (const name of oddNames) expect(notices).toContain(`nb/${String(name)}`)
})

test.each(['false', 'true'])('a filter that fails (required: %s) lets nothing be replaced', async (required) => {
  const config = (key: string, value: string) => world.box.raw(world.box.root, 'config', '--global', key, value)
  const { tree, move } = await review()
  const change = (content: string) => (at: Inside) => void at.commit('a.up', content)
  expect(await move('moved on', change('two\n'))).toMatchObject({ isMoved: true })
  expect(tree.read('a.up')).toBe('TWO\n')
  config('filter.up.smudge', 'false')
  try {
    const moved = await move('moved on', (at) => {
      change('three\n')(at)
      config('filter.up.required', required)
    })
    expect(moved).toMatchObject({ isMoved: false, notices: expect.stringContaining('this worktree stays at') })
    expect(tree.read('a.up')).toBe('TWO\n')
  } finally {
    config('filter.up.smudge', 'tr a-z A-Z')
    config('filter.up.required', 'false')
  }
})

test('a file of Git LFS gives way while LFS has its content, and no server is asked for it', async () => {
  const store = join(world.repo.commonDir, 'lfs/objects')
  const clean = `f=$(mktemp); cat > $f; grep -q '^oid sha256:' $f && exec cat $f; o=$(sha256sum $f | cut -c1-64); s=$(wc -c < $f)
d=${store}/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-4); mkdir -p $d; mv $f $d/$o
printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $o $s`
  const asked = world.box.path('lfs-asked')
  const config = (key: string, value: string) => world.box.raw(world.box.root, 'config', '--global', key, value)
  config('filter.lfs.clean', markerProgram(world.box.path('lfs-clean'), world.box.path('lfs-cleaned'), clean))
  config('filter.lfs.smudge', markerProgram(world.box.path('lfs-smudge'), asked))
  const { tree, move } = await review()
  const change = (content: string) => (at: Inside) => {
    at.commit('large.bin', content)
    rmSync(asked, { force: true })
  }
  await move('moved on', change('first\n'))
  hidden('large.bin', 'first\n')(tree)
  expect(await move('moved on', change('second\n'))).toMatchObject({ isMoved: true })
  expect(tree.read('large.bin')).toContain('oid sha256:')
  hidden('large.bin', 'second\n')(tree)
  const pruned = (at: Inside): void => {
    change('third\n')(at)
    rmSync(store, { recursive: true })
  }
  expect(await move('moved on', pruned)).toMatchObject({ isMoved: false })
  expect(tree.read('large.bin')).toBe('second\n')
  expect(existsSync(asked)).toBe(false)
})
