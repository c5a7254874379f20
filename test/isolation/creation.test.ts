import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Codebase } from '../../src/domain/environment.ts'
import { toBranchName, toCodebaseId } from '../../src/domain/names.ts'
import { taskWork } from '../../src/domain/work.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { writeIn } from '../helpers/repo.ts'
import { makeContext, makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import { branchExists, fingerprint, type Inside, inside, issue, messageOf, removed, resolved } from './scene.ts'

const approve = { approve: () => Promise.resolve(true) }
const config = (
  text: string,
  more: (repo: Parameters<NonNullable<WorldOptions['prepare']>>[0]) => void = () => undefined,
) =>
  ({
    prepare: (repo) => {
      repo.commit('.coppice/config.yaml', text)
      more(repo)
    },
    context: approve,
  }) satisfies WorldOptions

/** Nothing of a creation is left: no worktree, no branch, no row, no intent, no directory. */
const expectNothingLeft = async (world: World, branch: string): Promise<void> => {
  expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(1)
  expect(branchExists(world, branch)).toBe(false)
  expect(await world.context.store.environments.live(world.codebase.id)).toEqual([])
  expect(await world.context.store.journal.open('this-host')).toEqual([])
  expect(await world.context.store.ports.taken('this-host')).toEqual([])
  expect(existsSync(join(world.context.worktreesBase, 'project', branch))).toBe(false)
}

describe.concurrent('branch and path of', () => {
  test('an issue, a task, a thread and an agent', async () => {
    await using world = await makeWorld({ context: { clock: () => 1_700_000_000_000 } })
    const thread = createHash('sha256').update('C123:1712.34').digest('hex').slice(0, 8)
    const branches = [
      (await issue(world, 42)).branch,
      (await resolved(world, 'task', taskWork('Add dark mode').id)).environment.branch,
      (await resolved(world, 'thread', 'C123:1712.34')).environment.branch,
      (await resolved(world, 'agent', 'rust')).environment.branch,
    ]
    const time = (1_700_000_000_000).toString(36)
    expect(branches).toEqual(['issue-42', 'task-add-dark-mode', `thread-${thread}`, `agent/rust-${time}`])
    expect(existsSync(join(world.context.worktreesBase, 'project', `agent-rust-${time}`, 'README'))).toBe(true)
    expect(readFileSync(join(world.repo.path, '.git/config'), 'utf8')).not.toContain('[branch')
  })

  const crossed: [there: string, wanted: string, spares: number][] = [
    ['feature/x', 'feature', 0],
    ['feature', 'feature/x', 0],
    ['feature/x', 'feature', 1],
    ['feature', 'feature/x/y', 1],
  ]
  test.for(crossed)(
    'with a branch %s in the way, %s is a clear error (spares: %d)',
    async ([there, wanted, spares]) => {
      await using world = await makeWorld({ settings: { spares } })
      await keepSpares(world.context, world.codebase)
      world.repo.git('branch', there)
      world.repo.git('pack-refs', '--all')
      const create = resolved(world, 'task', 'x', { branch: toBranchName(wanted) })
      await expect(create).rejects.toMatchObject({
        code: 'name-invalid',
        message: `couldn't create branch ${wanted}: branch ${there} is in the way`,
        remedy: expect.stringContaining(`rename ${there}`) as string,
      })
      await expectNothingLeft(world, wanted)
      expect(branchExists(world, there)).toBe(true)
    },
  )

  test('`create <branch>` is taken verbatim, and a branch that exists is used as it is', async () => {
    await using world = await makeWorld()
    world.repo.git('switch', '-q', '-c', 'feature/Login_v2')
    const tip = world.repo.commit('a', 'a\n')
    world.repo.git('switch', '-q', 'main')
    const branch = toBranchName('feature/Login_v2')
    const { environment } = await resolved(world, 'task', branch, { branch })
    expect(environment).toMatchObject({ branch, branchOrigin: 'existing', startSha: undefined })
    expect(environment.path.endsWith('/project/feature-Login_v2')).toBe(true)
    expect(inside(world, environment).git('rev-parse', 'HEAD')).toBe(tip)
  })

  test('`feature/x` and `feature-x` never share a directory', async () => {
    await using world = await makeWorld()
    const paths = []
    for (const name of ['feature/x', 'feature-x']) {
      paths.push((await resolved(world, 'task', name, { branch: toBranchName(name) })).environment.path)
    }
    expect(new Set(paths).size).toBe(2)
    expect(paths.every((path) => existsSync(join(path, 'README')))).toBe(true)
  })

  test('two codebases with one basename never share a directory', async () => {
    await using world = await makeWorld()
    const other = world.box.repo('elsewhere/project')
    const second: Codebase = {
      ...world.codebase,
      id: toCodebaseId('second'),
      name: 'project-2',
      repoPath: other.commonDir,
      checkoutPath: other.path,
    }
    await world.context.store.codebases.insert(second)
    const one = await issue(world, 42)
    const two = (await resolved(world, 'issue', 42, { codebase: second })).environment
    expect(one.path).not.toBe(two.path)
    expect(inside(world, two).git('rev-parse', '--git-common-dir')).toBe(other.commonDir)
  })

  test('a name too long for one directory entry gets a directory all the same', async () => {
    await using world = await makeWorld()
    const name = `${'語'.repeat(66)}/${'語'.repeat(66)}`
    const branch = toBranchName(name)
    const { environment } = await resolved(world, 'task', 'long', { branch })
    expect(existsSync(join(environment.path, 'README'))).toBe(true)
  })
})

describe.concurrent('a new branch starts from', () => {
  test.for(['master', 'trunk', 'development'])('the canonical branch without a remote: %s', async (name) => {
    await using world = await makeWorld({ prepare: (repo) => void repo.git('branch', '-m', 'main', name) })
    const tip = world.repo.commit('a', 'a\n')
    const environment = await issue(world, 42)
    expect(environment).toMatchObject({ baseBranch: name, startSha: tip })
  })

  test("the remote's HEAD, freshly fetched, not from a stale local branch", async () => {
    await using world = await makeWorld({ remote: true })
    const other = world.box.path('other')
    world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), other)
    writeIn(other, 'new', 'new\n')
    world.box.raw(other, 'add', 'new')
    world.box.raw(other, 'commit', '-q', '-m', 'new')
    world.box.raw(other, 'push', '-q', 'origin', 'main')
    const environment = await issue(world, 42)
    expect(environment.startSha).toBe(world.box.raw(other, 'rev-parse', 'HEAD'))
    expect(inside(world, environment).tryGit('rev-parse', '@{upstream}')).toContain('Error')
  })

  test('`worktree.base` of the configuration, and `--base` over it', async () => {
    await using world = await makeWorld(
      config('worktree:\n  base: develop\n', (repo) => {
        repo.git('branch', 'release')
        repo.git('switch', '-q', '-c', 'develop')
        repo.commit('d', 'd\n')
        repo.git('switch', '-q', 'main')
      }),
    )
    expect(await issue(world, 1)).toMatchObject({ baseBranch: 'develop', startSha: world.repo.sha('develop') })
    const { environment } = await resolved(world, 'issue', 2, { base: 'release' })
    expect(environment).toMatchObject({ baseBranch: 'release', startSha: world.repo.sha('release') })
    await expect(resolved(world, 'issue', 3, { base: 'nowhere' })).rejects.toMatchObject({ code: 'base-not-found' })
    expect(branchExists(world, 'issue-3')).toBe(false)
  })

  test('what is here when the remote cannot be reached, and says so', async () => {
    await using world = await makeWorld({ remote: true })
    renameSync(world.box.path('origin.git'), world.box.path('offline.git'))
    const { environment, notices } = await resolved(world, 'issue', 42)
    expect(existsSync(environment.path)).toBe(true)
    expect(notices.join()).toMatch(/couldn't fetch .*using the local copy/)
  })

  test('a bare codebase, whose HEAD is checked out nowhere', async () => {
    await using world = await makeWorld({ remote: true })
    world.box.raw(world.box.root, 'clone', '-q', '--bare', world.box.path('origin.git'), world.box.path('bare.git'))
    const bare: Codebase = {
      ...world.codebase,
      id: toCodebaseId('bare'),
      name: 'bare',
      repoPath: world.box.path('bare.git'),
      checkoutPath: undefined,
    }
    await world.context.store.codebases.insert(bare)
    const { environment } = await resolved(world, 'issue', 42, { codebase: bare })
    expect(inside(world, environment).read('README')).toBe('hello\n')
    expect(environment.startSha).toBe(world.repo.sha('main'))
  })

  test('nothing where there is no commit: one clear sentence and nothing changed', async () => {
    await using world = await makeWorld()
    const empty = world.box.bare('empty.git')
    const codebase = { ...world.codebase, id: toCodebaseId('empty'), name: 'empty', repoPath: empty.path }
    await world.context.store.codebases.insert({ ...codebase, checkoutPath: undefined })
    await expect(resolved(world, 'issue', 1, { codebase })).rejects.toMatchObject({ code: 'no-commits' })
  })
})

describe.concurrent('a pull request of the same repository', () => {
  const withPr = async (): Promise<{ world: World; head: string }> => {
    const world = await makeWorld({ remote: true })
    world.repo.git('switch', '-q', '-c', 'feature/x')
    const head = world.repo.commit('pr.txt', '1\n')
    world.repo.git('push', '-q', 'origin', 'feature/x', 'feature/x:refs/pull/7/head')
    world.repo.git('switch', '-q', 'main')
    world.repo.git('branch', '-q', '-D', 'feature/x')
    return { world, head }
  }
  const pr = (world: World, more: Record<string, unknown> = {}) =>
    resolved(world, 'pr', 7, { hints: { prBranch: 'feature/x', ...more } })

  test('gets its own branch with upstream, so that a push updates it', async () => {
    const { world, head } = await withPr()
    await using _ = world
    const { environment } = await pr(world, { prSha: head })
    expect(environment).toMatchObject({ branch: 'feature/x', prNumber: 7, prBranch: 'feature/x', trust: 'own' })
    const tree = inside(world, environment)
    const pushed = tree.commit('pr.txt', '2\n')
    tree.git('-c', 'push.default=upstream', 'push', '-q')
    expect(world.repo.git('ls-remote', 'origin', 'refs/heads/feature/x')).toContain(pushed)
  })

  test('whose local branch is behind is fast-forwarded', async () => {
    const { world, head } = await withPr()
    await using _ = world
    world.repo.git('branch', 'feature/x', 'main')
    const { environment, notices } = await pr(world)
    expect(inside(world, environment).git('rev-parse', 'HEAD')).toBe(head)
    expect(inside(world, environment).git('status', '--short')).toBe('')
    expect(notices.join()).not.toContain('diverged')
    expect(environment.branchOrigin).toBe('existing')
  })

  test('whose local branch has diverged is left as it is, and the user is told both places', async () => {
    const { world, head } = await withPr()
    await using _ = world
    world.repo.git('switch', '-q', '-c', 'feature/x', 'main')
    const mine = world.repo.commit('mine', 'mine\n')
    world.repo.git('switch', '-q', 'main')
    const { environment, notices } = await pr(world)
    expect(inside(world, environment).git('rev-parse', 'HEAD')).toBe(mine)
    expect(notices.join()).toContain(`have diverged`)
    expect(notices.join()).toContain(head.slice(0, 7))
    expect(notices.join()).toContain(mine.slice(0, 7))
  })

  test('whose branch is checked out in the main working tree gets pr-N that pushes to it', async () => {
    const { world, head } = await withPr()
    await using _ = world
    world.repo.git('switch', '-q', 'feature/x')
    const before = fingerprint(world.repo.path, (path) => path.includes('/.git'))
    const { environment, notices } = await pr(world)
    expect(environment.branch).toBe('pr-7')
    expect(inside(world, environment).git('rev-parse', 'HEAD')).toBe(head)
    expect(inside(world, environment).git('rev-parse', '--abbrev-ref', '@{upstream}')).toBe('origin/feature/x')
    expect(notices.join()).toContain('pushes to feature/x')
    expect(fingerprint(world.repo.path, (path) => path.includes('/.git'))).toBe(before)
  })

  test.each(['feature/x/old', 'feature'])(
    'is created although the tracking ref of %s, which is gone on the remote, is in the way',
    async (stale) => {
      const { world, head } = await withPr()
      await using _ = world
      world.repo.git('update-ref', '-d', 'refs/remotes/origin/feature/x')
      world.repo.git('update-ref', `refs/remotes/origin/${stale}`, 'main')
      world.repo.git('pack-refs', '--all')
      const { environment, notices } = await pr(world)
      expect(environment).toMatchObject({ branch: 'feature/x', trust: 'own' })
      expect(notices).toContain(
        `git can't create the tracking ref origin/feature/x while origin/${stale} exists. Run \`git remote prune origin\``,
      )
      const tree = inside(world, environment)
      expect(tree.git('rev-parse', 'HEAD')).toBe(head)
      // It moves on with the pull request, too.
      const next = world.repo.git('commit-tree', '-p', head, '-m', 'on', `${head}^{tree}`)
      const origin = world.box.path('origin.git')
      world.repo.git('push', '-q', origin, `${next}:refs/heads/feature/x`, `${next}:refs/pull/7/head`)
      await pr(world, { prSha: next })
      expect(tree.git('rev-parse', 'HEAD')).toBe(next)
      await removed(world, environment)
      expect(world.repo.git('for-each-ref', 'refs/coppice/pr', 'refs/coppice/pr-branch')).toBe('')
    },
  )

  test('that does not exist is one clear sentence and leaves nothing', async () => {
    const { world } = await withPr()
    await using _ = world
    const asked = resolved(world, 'pr', 8, { hints: { prBranch: 'no/such' } })
    await expect(asked).rejects.toMatchObject({ code: 'pr-not-found' })
    await expectNothingLeft(world, 'no/such')
  })
})

describe.concurrent("a fork's pull request", () => {
  const withFork = async (): Promise<{
    world: World
    first: string
    push: (content: string, force?: boolean) => string
  }> => {
    const world = await makeWorld({ remote: true })
    world.box.raw(world.box.root, 'clone', '-q', world.box.path('origin.git'), world.box.path('fork'))
    const fork = inside(world, { path: world.box.path('fork') })
    const push = (content: string, force = false): string => {
      if (force) fork.git('reset', '-q', '--hard', 'origin/main')
      const sha = fork.commit('fork.txt', content)
      fork.git('push', '-q', '--force', 'origin', 'HEAD:refs/pull/7/head')
      return sha
    }
    return { world, first: push('1\n'), push }
  }
  const fork = (world: World, prSha?: string) =>
    resolved(world, 'pr', 7, { hints: { isForkPR: true, prBranch: 'x', ...(prSha === undefined ? {} : { prSha }) } })

  test('is reviewed at its head without a SHA, in the tree that the review finds too', async () => {
    const { world, first } = await withFork()
    await using _ = world
    const { environment, notices } = await fork(world)
    expect(environment).toMatchObject({ branch: 'pr-7-review', trust: 'unproven', startSha: first })
    expect(notices).toContain(`Reviewing PR at commit \`${first.slice(0, 7)}\` (branch: \`x\`)`)
    expect((await resolved(world, 'review', 7)).environment.id).toBe(environment.id)
  })

  test('is reviewed at exactly the SHA that was named, although its head has moved on', async () => {
    const { world, first, push } = await withFork()
    await using _ = world
    push('2\n')
    const { environment } = await fork(world, first)
    expect(inside(world, environment).git('rev-parse', 'HEAD')).toBe(first)
  })

  test('a review makes the same branch, and the fork’s PR finds it', async () => {
    const { world, first } = await withFork()
    await using _ = world
    const { environment } = await resolved(world, 'review', 7)
    expect(environment).toMatchObject({ branch: 'pr-7-review', startSha: first })
    expect((await fork(world)).environment.id).toBe(environment.id)
  })

  test('runs no setup in its tree unless that is allowed', async () => {
    for (const allowed of [false, true]) {
      const { world, push } = await withFork()
      await using _ = world
      const context = { ...world.context, ...approve }
      world.repo.commit('.coppice/config.yaml', `worktree:\n  setup: ["touch ran"]\n  allowForks: ${allowed}\n`)
      world.repo.git('push', '-q', 'origin', 'main')
      world.repo.git('fetch', '-q')
      push('2\n')
      const { environment, notices } = await fork({ ...world, context, provider: createEnvironments(context) })
      expect(inside(world, environment).has('ran')).toBe(allowed)
      expect(notices.join().includes("don't run in worktrees of forks")).toBe(!allowed)
    }
  })

  test('whose head moves is followed while the tree is clean, unused and without commits of its own, and the user is told', async () => {
    const { world, first, push } = await withFork()
    await using _ = world
    const { environment } = await fork(world, first)
    const tree = inside(world, environment)
    const short = (sha: string): string => sha.slice(0, 7)
    const before = world.context.git.spawned()
    await fork(world, first)
    // A head that has not moved starts no program.
    expect(world.context.git.spawned()).toBe(before)

    const second = push('2\n')
    const forwarded = await fork(world, second)
    expect([tree.git('rev-parse', 'HEAD'), tree.read('fork.txt')]).toEqual([second, '2\n'])
    expect(forwarded.notices.join()).toContain(`fast-forwarded from \`${short(first)}\` to \`${short(second)}\``)

    let head = second
    for (const content of ['rewritten\n', 'again\n']) {
      head = push(content, true)
      await fork(world, head)
      expect([content, tree.git('rev-parse', 'HEAD')]).toEqual([content, head])
    }

    tree.write('draft', 'draft\n')
    const changed = push('3\n')
    const { notices } = await fork(world, changed)
    expect(tree.git('rev-parse', 'HEAD')).toBe(head)
    expect(notices.join()).toMatch(new RegExp(`${short(changed)}.*${short(head)}.*1 untracked`))
    rmSync(join(tree.path, 'draft'))

    const lease = await acquireLease(world.context, world.codebase, environment, { purpose: 'agent run' })
    const used = push('rewritten again\n', true)
    const inUse = await fork(world, used)
    expect(tree.git('rev-parse', 'HEAD')).toBe(head)
    expect(inUse.notices.join()).toContain(short(used))
    await lease.release()

    const mine = tree.commit('mine', 'mine\n')
    const own = await fork(world, used)
    expect(tree.git('rev-parse', 'HEAD')).toBe(mine)
    expect(own.notices.join()).toContain(short(used))
    expect(own.notices.join()).toContain(short(mine))
  })
})

describe.concurrent('a new tree is dressed', () => {
  test('with submodules, unless the configuration says no', async () => {
    await using world = await makeWorld({
      prepare: (repo, box) => {
        box.repo('lib').commit('lib.c', 'int x;\n')
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
      },
    })
    for (const [number, wanted] of [true, false].entries()) {
      world.repo.commit('.coppice/config.yaml', `worktree:\n  submodules: ${wanted}\n`)
      expect(inside(world, await issue(world, number + 1)).has('lib/lib.c')).toBe(wanted)
    }
  })

  test('a submodule that cannot be brought is a failed creation and leaves nothing', async () => {
    await using world = await makeWorld({
      prepare: (repo, box) => {
        box.repo('lib').commit('lib.c', 'int x;\n')
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
        repo.git('commit', '-q', '-m', 'lib')
        rmSync(box.path('lib'), { recursive: true })
        rmSync(join(repo.path, '.git/modules'), { recursive: true })
      },
    })
    await expect(issue(world, 42)).rejects.toMatchObject({ code: 'submodules-failed' })
    await expectNothingLeft(world, 'issue-42')
  })

  test('with copies, links into the shared area, ports, setup and the beads redirect', async () => {
    await using world = await makeWorld(
      config(
        'worktree:\n  copy: [".env", "cfg/**"]\n  link: [cache]\n  ports: [WEB, DB]\n  setup: ["echo $WEB $DB $COPPICE_BRANCH > setup.out"]\n',
        (repo) => {
          repo.commit('.gitignore', '.env\ncfg/\ncache\nsetup.out\n.beads/\n')
          repo.write('.env', 'A=1\n')
          repo.write('cfg/deep/local.json', '{}\n')
          repo.write('.beads/beads.db', 'store')
        },
      ),
    )
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    expect([tree.read('.env'), tree.read('cfg/deep/local.json')]).toEqual(['A=1\n', '{}\n'])
    const target = readlinkSync(join(tree.path, 'cache'))
    expect(target.startsWith(world.context.home)).toBe(true)
    expect(lstatSync(target).isDirectory()).toBe(true)
    const [web, db] = tree.read('setup.out').trim().split(' ')
    expect(web).not.toBe(db)
    expect(tree.read('setup.out').trim().endsWith(' issue-42')).toBe(true)
    expect(tree.read('.beads/redirect')).toBe(`${join(world.repo.path, '.beads')}\n`)
    // Nothing of it is anybody's work: the environment goes as clean as it came.
    await removed(world, environment)
  })

  test('setup that fails shows its output and leaves nothing, not even what can be made again', async () => {
    const setup = 'mkdir node_modules; echo made > node_modules/made; echo the-reason; exit 7'
    await using world = await makeWorld(
      config(`worktree:\n  ports: [WEB]\n  setup: ["${setup}"]\n`, (repo) => {
        repo.commit('.gitignore', 'node_modules/\n')
      }),
    )
    const message = await messageOf(issue(world, 42))
    expect(message).toContain('the-reason')
    expect(message).toContain('exit code 7')
    await expectNothingLeft(world, 'issue-42')
    expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
  })

  test('setup that nobody approved does not run, and is told', async () => {
    await using world = await makeWorld({ ...config('worktree:\n  setup: ["touch ran"]\n'), context: {} })
    const { environment, notices } = await resolved(world, 'issue', 42)
    expect(inside(world, environment).has('ran')).toBe(false)
    expect(notices.join()).toContain('coppice codebase trust project')
  })

  test('setup is read from base, never from the branch of the work', async () => {
    await using world = await makeWorld({ context: approve })
    world.repo.git('switch', '-q', '-c', 'issue-42')
    world.repo.commit('.coppice/config.yaml', 'worktree:\n  setup: ["touch pwned"]\n')
    world.repo.git('switch', '-q', 'main')
    expect(inside(world, await issue(world, 42)).has('pwned')).toBe(false)
  })

  test('a configuration with an unknown key is an error that names it, and nothing changes', async () => {
    await using world = await makeWorld(config('worktree:\n  coppy: [".env"]\n'))
    const message = await messageOf(issue(world, 42))
    expect(message).toContain('worktree.coppy')
    await expectNothingLeft(world, 'issue-42')
  })
})

describe.concurrent('warm spares', () => {
  const withSpare = async (options: WorldOptions = {}): Promise<World> => {
    const world = await makeWorld({ ...options, settings: { spares: 1 } })
    expect(await keepSpares(world.context, world.codebase)).toBe(1)
    return world
  }
  const create = (world: World, n: number) =>
    world.provider.create({
      codebase: world.codebase,
      work: { type: 'issue', id: String(n) },
      hints: {},
      createdBy: 'test',
      aliases: [],
    })

  test('serve a creation by a rename, and show up nowhere as environments', async () => {
    await using world = await withSpare()
    expect(await world.context.store.environments.live(world.codebase.id)).toEqual([])
    const made = await create(world, 42)
    if (made.outcome !== 'created') throw new Error(made.outcome)
    expect(made.fromSpare).toBe(true)
    const tree = inside(world, made.environment)
    expect(tree.git('symbolic-ref', '--short', 'HEAD')).toBe('issue-42')
    expect(tree.git('status', '--short')).toBe('')
    expect(tree.git('worktree', 'list').split('\n')).toHaveLength(2)
    await removed(world, made.environment)
  })

  test('that are behind base serve the newest base', async () => {
    await using world = await withSpare()
    const tip = world.repo.commit('newer', 'newer\n')
    const made = await create(world, 42)
    expect(made).toMatchObject({ outcome: 'created', fromSpare: true, environment: { startSha: tip } })
    if (made.outcome !== 'created') throw new Error(made.outcome)
    expect(inside(world, made.environment).read('newer')).toBe('newer\n')
  })

  test('whose directory was deleted cost nothing, and leave no record behind', async () => {
    await using world = await withSpare()
    const [spare] = await world.context.store.spares.list(world.codebase.id)
    rmSync(spare?.path ?? '', { recursive: true })
    const made = await create(world, 42)
    expect(made).toMatchObject({ outcome: 'created', fromSpare: false })
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(2)
  })

  test('in which somebody left a change never serve it to another, and cost nothing', async () => {
    await using world = await withSpare()
    const [spare] = await world.context.store.spares.list(world.codebase.id)
    writeFileSync(join(spare?.path ?? '', 'README'), 'a stranger was here\n')
    writeFileSync(join(spare?.path ?? '', 'stranger.txt'), 'a stranger was here\n')
    world.repo.commit('README', 'newer\n')
    const made = await create(world, 42)
    if (made.outcome !== 'created') throw new Error(made.outcome)
    expect(inside(world, made.environment).read('README')).toBe('newer\n')
    expect(inside(world, made.environment).has('stranger.txt')).toBe(false)
  })

  test('that cannot serve are taken away, and left if anything in them is not as we made it', async () => {
    const things: [string, (spare: Inside) => void][] = [
      ['an untracked file', (spare) => spare.write('new', 'x\n')],
      ['a changed file', (spare) => spare.write('README', 'x\n')],
      ['an ignored file', (spare) => spare.write('x.log', 'x\n')],
      [
        'a change that git status does not show',
        (spare) => (spare.git('update-index', '--assume-unchanged', 'README'), spare.write('README', 'x\n')),
      ],
      ['a commit', (spare) => void spare.commit('README', 'x\n')],
      [
        'a commit that only the reflog has',
        (spare) => (spare.commit('README', 'x\n'), spare.git('reset', '-q', '--hard', 'HEAD~1')),
      ],
      ['a branch', (spare) => void spare.git('switch', '-q', '-c', 'mine')],
      ['a ref of its own', (spare) => void spare.git('update-ref', 'refs/worktree/mine', 'HEAD')],
      ['a FIFO', (spare) => void execFileSync('mkfifo', [join(spare.path, 'pipe')])],
      [
        'a repository that git status does not show',
        (spare) => void inside(world, { path: join(spare.path, 'd') }).git('init', '-q'),
      ],
      ['nothing', () => undefined],
    ]
    await using world = await makeWorld({
      settings: { spares: things.length },
      prepare: (repo) => {
        repo.commit('.gitignore', '*.log\n')
        repo.commit('d/file', 'x\n')
      },
      context: {
        failpoint: async (name) => {
          if (name === 'create.spare-switched') throw new Error('it cannot be moved')
        },
      },
    })
    await keepSpares(world.context, world.codebase)
    const spares = await world.context.store.spares.list(world.codebase.id)
    for (const [i, [, put]] of things.entries()) put(inside(world, spares[i] ?? { path: '' }))
    for (const [i] of things.entries()) {
      const made = await create(world, i)
      if (made.outcome !== 'created') throw new Error(made.outcome)
      expect(made.fromSpare).toBe(false)
      expect(inside(world, made.environment).git('status', '--short', '--ignored')).toBe('')
    }
    expect(things.filter((_, i) => existsSync(spares[i]?.path ?? '')).map(([what]) => what)).toEqual(
      things.slice(0, -1).map(([what]) => what),
    )
  })

  test('serve no branch with submodules, which is made the ordinary way', async () => {
    await using world = await withSpare()
    world.box.repo('lib').commit('lib.c', 'int x;\n')
    world.repo.git('switch', '-q', '-c', 'issue-42')
    world.repo.git('submodule', '--quiet', 'add', world.box.path('lib'), 'lib')
    world.repo.git('commit', '-q', '-m', 'lib')
    world.repo.git('switch', '-q', 'main')
    const made = await create(world, 42)
    if (made.outcome !== 'created') throw new Error(made.outcome)
    expect(inside(world, made.environment).read('lib/lib.c')).toBe('int x;\n')
  })

  test('are not made for a repository with submodules', async () => {
    await using world = await makeWorld({
      settings: { spares: 1 },
      prepare: (repo, box) => {
        box.repo('lib').commit('lib.c', 'int x;\n')
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
        repo.git('commit', '-q', '-m', 'lib')
      },
    })
    expect(await keepSpares(world.context, world.codebase)).toBe(0)
  })

  test('are never taken twice, also by two processes', async () => {
    await using world = await makeWorld({ settings: { spares: 2 } })
    await keepSpares(world.context, world.codebase)
    const second = await makeContext(world.box, {}, { settings: { spares: 2 } })
    const other = { ...world, context: second, provider: createEnvironments(second) }
    const made = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => create(n % 2 === 0 ? world : other, n)))
    await second.store.close()
    expect(made.filter((one) => one.outcome === 'created' && one.fromSpare)).toHaveLength(2)
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(7)
  })
})

describe.concurrent('a work that is there already', () => {
  test('is returned, not an error', async () => {
    await using world = await makeWorld()
    const first = await issue(world, 42)
    const again = await world.provider.create({
      codebase: world.codebase,
      work: first.work,
      hints: {},
      createdBy: 'test',
      aliases: [],
    })
    expect(again).toMatchObject({ outcome: 'existing', environment: { id: first.id } })
  })

  test('that is missing is taken up anew after its record was saved, on its branch as it is', async () => {
    await using world = await makeWorld()
    const first = await issue(world, 42)
    const tree = inside(world, first)
    tree.git('switch', '-q', '--detach')
    const lost = tree.commit('lost', 'lost\n')
    tree.git('switch', '-q', 'issue-42')
    renameSync(first.path, world.box.path('away'))
    const again = await resolved(world, 'issue', 42)
    expect(again).toMatchObject({ how: 'created', environment: { branch: 'issue-42' } })
    expect((await world.context.store.environments.get(first.id))?.status).toBe('removed')
    world.repo.git('reflog', 'expire', '--expire=now', '--all')
    world.repo.git('gc', '-q', '--prune=now')
    expect(world.repo.git('cat-file', '-t', lost)).toBe('commit')
    expect(readFileSync(world.box.path('away', 'README'), 'utf8')).toBe('hello\n')
  })
})
