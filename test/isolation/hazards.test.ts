import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toBranchName } from '../../src/domain/names.ts'
import { toWork } from '../../src/domain/work.ts'
import { onConversationClosed } from '../../src/cleanup/closed.ts'
import { runScheduledCleanup } from '../../src/cleanup/sweep.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { makeContext, makeWorld, type World } from '../helpers/world.ts'
import {
  branchExists,
  conversation,
  fingerprint,
  hasBlob,
  type Inside,
  inside,
  issue,
  messageOf,
  program,
  refusal,
  remove,
  removed,
  resolved,
  thereAndBack,
} from './scene.ts'

/** Two branches that conflict in README: `theirs`, and whatever is checked out in the tree. */
const conflicting = async (world: World) => {
  const environment = await issue(world, 42)
  const tree = inside(world, environment)
  world.repo.git('branch', 'theirs', 'main')
  tree.git('switch', '-q', 'theirs')
  tree.commit('README', 'theirs\n', 'theirs')
  tree.git('switch', '-q', 'issue-42')
  tree.commit('README', 'ours\n', 'ours')
  return { environment, tree }
}

describe.concurrent('what git does not protect', () => {
  test('ignored files are in the restore point and come back', async () => {
    await using world = await makeWorld({ prepare: (repo) => repo.commit('.gitignore', '*.log\nout/\n') })
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.write('run.log', 'ignored bytes\n')
    tree.write('out/deep/x.bin', Buffer.from([0, 255, 10, 13]))
    const { restorePoint, leftOut } = await removed(world, environment)
    expect(leftOut).toEqual([])
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(back.read('run.log')).toBe('ignored bytes\n')
    expect(readFileSync(join(back.path, 'out/deep/x.bin'))).toEqual(Buffer.from([0, 255, 10, 13]))
  })

  test('commits on a detached HEAD keep the tree, and with --force come back', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.git('switch', '-q', '--detach')
    const lost = tree.commit('detached.txt', 'only here\n')
    expect(await refusal(world, environment)).toEqual([
      'nothing-unreachable no: 1 commit on a detached HEAD that no branch has',
    ])
    const { restorePoint } = await removed(world, environment, { force: true })
    world.repo.git('gc', '-q', '--prune=now')
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect(back.git('rev-parse', 'HEAD')).toBe(lost)
    expect(back.tryGit('symbolic-ref', '-q', 'HEAD')).toContain('Error')
  })

  test('a merge in progress keeps the tree and comes back half done', async () => {
    await using world = await makeWorld()
    const { environment, tree } = await conflicting(world)
    tree.tryGit('merge', '-q', 'theirs')
    const before = tree.git('ls-files', '-s')
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: a merge is in progress')
    const back = await thereAndBack(world, environment)
    expect(back.git('ls-files', '-s')).toBe(before)
    expect(back.read('README')).toContain('<<<<<<<')
    back.write('README', 'both\n')
    back.git('add', 'README')
    back.git('commit', '-q', '-m', 'merged')
    expect(back.git('log', '-1', '--format=%P').split(' ')).toHaveLength(2)
  })

  test('a rebase in progress keeps the tree and can be finished after a restore', async () => {
    await using world = await makeWorld()
    const { environment, tree } = await conflicting(world)
    tree.tryGit('rebase', '-q', 'theirs')
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: a rebase is in progress')
    const back = await thereAndBack(world, environment)
    back.write('README', 'both\n')
    back.git('add', 'README')
    back.git('-c', 'core.editor=true', 'rebase', '--continue')
    expect(back.git('log', '--format=%s', '-2').split('\n')).toEqual(['ours', 'theirs'])
    expect(back.git('symbolic-ref', '--short', 'HEAD')).toBe('issue-42')
  })

  test('a cherry-pick in progress keeps the tree and comes back', async () => {
    await using world = await makeWorld()
    const { environment, tree } = await conflicting(world)
    tree.tryGit('cherry-pick', 'theirs')
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: a cherry-pick is in progress')
    const back = await thereAndBack(world, environment)
    back.git('cherry-pick', '--abort')
    expect(back.read('README')).toBe('ours\n')
  })

  test('a revert in progress keeps the tree and comes back', async () => {
    await using world = await makeWorld()
    const { environment, tree } = await conflicting(world)
    tree.commit('README', 'again\n', 'again')
    tree.tryGit('revert', '--no-edit', 'HEAD~1')
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: a revert is in progress')
    const back = await thereAndBack(world, environment)
    back.git('revert', '--abort')
    expect(back.read('README')).toBe('again\n')
  })

  test('an am in progress keeps the tree and comes back', async () => {
    await using world = await makeWorld()
    const { environment, tree } = await conflicting(world)
    const patch = world.box.path('theirs.patch')
    writeFileSync(patch, `${tree.git('format-patch', '-1', '--stdout', 'theirs')}\n`)
    tree.tryGit('am', '-q', patch)
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: an am is in progress')
    const back = await thereAndBack(world, environment)
    back.git('am', '--abort')
    expect(back.read('README')).toBe('ours\n')
  })

  test('a bisect in progress keeps the tree and can be continued after a restore', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    for (const n of [1, 2, 3, 4]) tree.commit('n', `${n}\n`)
    tree.git('bisect', 'start', 'HEAD', 'main')
    expect(await refusal(world, environment)).toContain('nothing-uncommitted no: a bisect is in progress')
    const back = await thereAndBack(world, environment)
    expect(back.git('bisect', 'log')).toContain('git bisect start')
    expect(back.tryGit('bisect', 'good')).toMatch(/Bisecting|first bad commit/)
    back.git('bisect', 'reset')
    expect(back.git('symbolic-ref', '--short', 'HEAD')).toBe('issue-42')
  })

  test('a merge of notes in progress keeps the tree, and the text resolved by hand comes back', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.git('notes', 'add', '-m', 'base')
    tree.git('update-ref', 'refs/notes/other', 'refs/notes/commits')
    tree.git('notes', 'append', '-m', 'mine')
    tree.git('notes', '--ref', 'other', 'append', '-m', 'theirs')
    tree.tryGit('notes', 'merge', 'other')
    const recordOf = (one: Inside): string => one.git('rev-parse', '--absolute-git-dir')
    const note = `NOTES_MERGE_WORKTREE/${tree.git('rev-parse', 'HEAD')}`
    writeFileSync(join(recordOf(tree), note), 'both\n')
    writeFileSync(join(recordOf(tree), 'COMMIT_EDITMSG'), 'a message that was never used\n')
    writeFileSync(join(recordOf(tree), 'MERGE_RR.lock'), '')
    expect(await refusal(world, environment)).toEqual(['nothing-uncommitted no: a notes merge is in progress'])
    const back = await thereAndBack(world, environment)
    expect(readFileSync(join(recordOf(back), note), 'utf8')).toBe('both\n')
    back.git('notes', 'merge', '--commit')
    expect(back.git('notes', 'show')).toBe('both')

    const { restorePoint } = await removed(world, await issue(world, 42))
    const record = recordOf(inside(world, (await world.provider.restore(restorePoint)).environment))
    expect(readFileSync(join(record, 'COMMIT_EDITMSG'), 'utf8')).toBe('a message that was never used\n')
    expect(existsSync(join(record, 'MERGE_RR.lock'))).toBe(false)
  })

  test('untracked files count although status.showUntrackedFiles=no or core.excludesFile hides them, and so do edits behind --assume-unchanged and --skip-worktree', async () => {
    await using world = await makeWorld({ prepare: (repo) => repo.commit('skipped', 'hello\n') })
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    world.repo.git('config', 'status.showUntrackedFiles', 'no')
    tree.write('draft.txt', 'work\n')
    writeFileSync(world.box.path('excludes'), 'hidden.txt\n')
    tree.git('config', 'core.excludesFile', world.box.path('excludes'))
    tree.write('hidden.txt', 'work\n')
    tree.git('update-index', '--assume-unchanged', 'README')
    tree.git('update-index', '--skip-worktree', 'skipped')
    for (const name of ['README', 'skipped']) tree.write(name, 'hidden edit\n')
    expect(tree.git('status', '--short')).toBe('')
    expect(await refusal(world, environment)).toEqual([
      'nothing-uncommitted no: 2 untracked',
      'nothing-uncommitted no: 2 files changed, but hidden by assume-unchanged, skip-worktree or timestamps: README, skipped',
    ])
    const back = await thereAndBack(world, environment)
    expect([back.read('draft.txt'), back.read('hidden.txt')]).toEqual(['work\n', 'work\n'])
    expect([back.read('README'), back.read('skipped')]).toEqual(['hidden edit\n', 'hidden edit\n'])
  })

  test("a live process's current directory, or a file that a process holds open, keeps the tree, also against --force", async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    mkdirSync(join(environment.path, 'deep'))
    const held = (pid: number, name: string): string[] => [`not-in-use no: process ${pid} (${name}) is inside it`]
    {
      using sleeper = await program('sleep', ['600'], { cwd: join(environment.path, 'deep') })
      expect(await refusal(world, environment)).toEqual(held(sleeper.pid, 'sleep'))
      expect(await refusal(world, environment, { force: true })).toEqual(held(sleeper.pid, 'sleep'))
    }
    {
      using holder = await program('tail', ['-f', join(environment.path, 'README')], { env: world.box.env })
      const open = () => readdirSync(`/proc/${holder.pid}/fd`).map((fd) => readlinkSync(`/proc/${holder.pid}/fd/${fd}`))
      await expect.poll(open).toContain(join(environment.path, 'README'))
      expect(await refusal(world, environment, { force: true })).toEqual(held(holder.pid, 'tail'))
    }
    expect((await remove(world, environment)).outcome).toBe('removed')
  })

  test.runIf(process.platform === 'linux')('a file that is only mapped into memory keeps the tree', async () => {
    await using world = await makeWorld({ prepare: (repo) => repo.commit('.gitignore', '*.so\n') })
    const environment = await issue(world, 42)
    const library = /\/\S*\/libm\.so[.\d]*/.exec(readFileSync('/proc/self/maps', 'utf8'))?.[0]
    if (library === undefined) throw new Error('this Node maps no libm')
    const mapped = join(environment.path, 'mapped.so')
    copyFileSync(library, mapped)
    using sleeper = await program('sleep', ['600'], { env: { ...world.box.env, LD_PRELOAD: mapped } })
    const maps = () => readFileSync(`/proc/${sleeper.pid}/maps`, 'utf8')
    await expect.poll(maps).toContain(mapped)
    expect(await refusal(world, environment, { force: true })).toEqual([
      `not-in-use no: process ${sleeper.pid} (sleep) is inside it`,
    ])
  })

  test("what somebody else's SIGKILLed `git worktree add` left is left alone, and others go on beside it", async () => {
    await using world = await makeWorld({ prepare: (repo) => repo.commit('.gitattributes', 'x.slow filter=slow\n') })
    world.repo.commit('x.slow', 'x\n')
    const at = join(world.context.worktreesBase, 'project', 'issue-42')
    mkdirSync(join(at, '..'), { recursive: true })
    // The smudge filter kills its whole process group: git dies in the middle of the checkout.
    const args = ['-c', 'filter.slow.smudge=kill -9 0', 'worktree', 'add', '-q', '-b', 'issue-42', at]
    const env = { ...world.box.env, GIT_CONFIG_NOSYSTEM: '1' }
    const killed = spawn('git', args, { cwd: world.repo.path, env, detached: true, stdio: 'ignore' })
    await once(killed, 'exit')
    expect(killed.signalCode).toBe('SIGKILL')
    const record = join(world.repo.path, '.git/worktrees/issue-42')
    expect(readFileSync(join(record, 'locked'), 'utf8').trim()).toBe('initializing')
    const before = [fingerprint(record), fingerprint(at)]
    await reconcile(world.context, world.codebase)
    await runScheduledCleanup(world.context, world.provider, world.codebase)
    expect((await issue(world, 7)).status).toBe('active')
    expect([fingerprint(record), fingerprint(at)]).toEqual(before)
    expect(branchExists(world, 'issue-42')).toBe(true)
  })

  test('of 16 parallel creations from two processes none fails and none is doubled', async () => {
    await using world = await makeWorld({ settings: { worktreesPerCodebase: 50 }, remote: true })
    const second = await makeContext(world.box, {}, { settings: { worktreesPerCodebase: 50 } })
    const other = { ...world, context: second }
    const made = await Promise.all(
      Array.from({ length: 16 }, (_, i) => issue(i % 2 === 0 ? world : other, 1 + Math.floor(i / 2) * 2 + (i % 2))),
    )
    await second.store.close()
    expect(new Set(made.map(({ path }) => path)).size).toBe(16)
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(17)
    expect(world.repo.git('for-each-ref', 'refs/heads/issue-*').split('\n')).toHaveLength(16)
    expect(await world.context.store.journal.open('this-host')).toEqual([])
  })

  test('of two parallel creations of one existing branch exactly one has it', async () => {
    await using world = await makeWorld()
    for (const n of [1, 2, 3]) {
      world.repo.git('branch', `taken-${n}`)
      const branch = toBranchName(`taken-${n}`)
      const answers = await Promise.allSettled([
        resolved(world, 'task', `a${n}`, { branch }),
        resolved(world, 'task', `b${n}`, { branch }),
      ])
      expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      const holders = world.repo.git('worktree', 'list', '--porcelain').split(`branch refs/heads/taken-${n}\n`)
      expect(holders.length).toBeLessThanOrEqual(2)
    }
    expect(await world.context.store.journal.open('this-host')).toEqual([])
  })

  test('a branch that is checked out in a worktree (`+ ` in git branch --merged) is seen as merged', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    inside(world, environment).commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42')
    expect(world.repo.git('branch', '--merged', 'main')).toContain('+ issue-42')
    const gone = await removed(world, environment)
    expect(gone).toMatchObject({ branchDeleted: true, branchNote: 'merged: ancestor of main' })
  })

  test('a branch without commits is empty, not merged: a sweep leaves it', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const report = await runScheduledCleanup(world.context, world.provider, world.codebase)
    expect(report.removed).toEqual([])
    expect(existsSync(environment.path)).toBe(true)
    expect((await removed(world, environment)).branchNote).toBe('no commits of its own')
  })

  test('a squash of several commits is seen as merged', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    for (const n of [1, 2, 3]) tree.commit(`file-${n}`, `${n}\n`)
    world.repo.git('merge', '-q', '--squash', 'issue-42')
    world.repo.git('commit', '-q', '-m', 'squashed')
    world.repo.commit('file-1', 'went on\n')
    const gone = await removed(world, environment)
    expect(gone.branchDeleted).toBe(true)
    expect(gone.branchNote).toMatch(/^merged: /)
  })

  test('refs/stash is shared: a stash made in an environment outlives it', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.write('README', 'stashed\n')
    tree.git('stash', '-q')
    await removed(world, environment)
    expect(world.repo.git('stash', 'show', '-p', 'stash@{0}')).toContain('+stashed')
  })

  test('a rewritten .git file is not followed: nothing is removed, here or there', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const victim = await issue(world, 7)
    inside(world, victim).write('draft.txt', 'work\n')
    copyFileSync(join(victim.path, '.git'), join(environment.path, '.git'))
    const reasons = await refusal(world, environment, { force: true })
    expect(reasons[0]).toMatch(/^ours no: /)
    expect(inside(world, victim).read('draft.txt')).toBe('work\n')
    await expect(resolved(world, 'issue', 42)).rejects.toMatchObject({ code: 'isolation-blocked' })
  })

  test('what a mirror push would publish never holds an ignored file; a nested repository comes back with its unpushed commits', async () => {
    await using world = await makeWorld({ prepare: (repo) => repo.commit('.gitignore', '.env\nsecrets/\n') })
    const environment = await issue(world, 42)
    const tree = inside(world, environment)
    tree.write('.env', 'TOKEN=very-secret-1\n')
    tree.write('secrets/key', 'very-secret-2\n')
    const nested = inside(world, { path: join(environment.path, 'vendor/lib') })
    mkdirSync(nested.path, { recursive: true })
    nested.git('init', '-q')
    const commit = nested.commit('lib.c', 'int x;\n')
    nested.write('draft.c', 'int y;\n')
    expect(await refusal(world, environment)).toEqual([
      'no-repository-inside no: it contains a repository: vendor/lib (1 commit on no remote)',
    ])
    tree.write('draft.txt', 'not a secret\n')
    tree.write('README', 'changed\n')
    const { restorePoint } = await removed(world, environment, { force: true })
    expect(hasBlob(world, 'not a secret\n')).toBe(true)
    expect(hasBlob(world, 'TOKEN=very-secret-1\n')).toBe(false)
    expect(hasBlob(world, 'very-secret-2\n')).toBe(false)
    const saved = fingerprint(join(world.context.home, 'restore'))
    expect(saved).toContain('ignored/.env')
    expect(saved.split('\n')[0]).toContain('40700')
    const { environment: back } = await world.provider.restore(restorePoint)
    const again = inside(world, { path: join(back.path, 'vendor/lib') })
    expect(again.git('rev-parse', 'HEAD')).toBe(commit)
    expect(again.git('status', '--short')).toBe('?? draft.c')
  })
})

describe.concurrent('mistakes the field has made', () => {
  test('deleting a branch with unpushed commits because the tree was clean', async () => {
    await using world = await makeWorld({ remote: true })
    const environment = await issue(world, 42)
    const tip = inside(world, environment).commit('a', 'a\n')
    const gone = await removed(world, environment)
    expect(gone).toMatchObject({ branchDeleted: false, branchNote: '1 commit not on main' })
    expect(world.repo.git('rev-parse', 'issue-42')).toBe(tip)
  })

  test('deleting the branch of a directory that was merely unmounted', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const away = world.box.path('unmounted')
    renameSync(environment.path, away)
    const report = await runScheduledCleanup(
      { ...world.context, settings: { ...world.context.settings, staleDays: 0 } },
      world.provider,
      world.codebase,
    )
    expect(report.missing.map(({ id }) => id)).toEqual([environment.id])
    expect(report.removed).toEqual([])
    expect(branchExists(world, 'issue-42')).toBe(true)
    expect(world.repo.git('worktree', 'list')).toContain('issue-42')
    expect(await remove(world, environment)).toMatchObject({ outcome: 'refused' })
    renameSync(away, environment.path)
    await reconcile(world.context, world.codebase)
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
  })

  test('resetting an existing branch on re-creation', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const tip = inside(world, environment).commit('a', 'a\n')
    await removed(world, environment)
    const again = await issue(world, 42)
    expect(again.id).not.toBe(environment.id)
    expect(inside(world, again).git('rev-parse', 'HEAD')).toBe(tip)
  })

  test('treating "not a working tree" as "already gone" and removing the directory', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    inside(world, environment).write('draft.txt', 'work\n')
    rmSync(join(environment.path, '.git'))
    const before = fingerprint(environment.path)
    expect((await refusal(world, environment, { force: true }))[0]).toMatch(/^ours no: .*no longer a git worktree/)
    await runScheduledCleanup(world.context, world.provider, world.codebase)
    expect(fingerprint(environment.path)).toBe(before)
  })

  test('destroying a worktree that a person had made', async () => {
    await using world = await makeWorld()
    const path = join(world.context.worktreesBase, 'project', 'issue-42')
    mkdirSync(join(path, '..'), { recursive: true })
    world.repo.git('worktree', 'add', '-q', '-b', 'mine', path)
    const { environment, how } = await resolved(world, 'issue', 42)
    expect({ how, owned: environment.owned, branch: environment.branch }).toEqual({
      how: 'adopted',
      owned: false,
      branch: 'mine',
    })
    const before = fingerprint(path)
    expect((await remove(world, environment, { force: true })).outcome).toBe('released')
    expect(fingerprint(path)).toBe(before)
    expect(branchExists(world, 'mine')).toBe(true)
  })

  test('a closed ticket taken as the end of use', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    const lease = await acquireLease(world.context, world.codebase, environment, { purpose: 'agent run' })
    const ticket = await conversation(world, { environmentId: environment.id })
    const closed = await onConversationClosed(world.context, world.provider, ticket)
    expect(closed).toMatchObject({ outcome: 'asked', removal: { outcome: 'refused' } })
    expect(existsSync(environment.path)).toBe(true)
    await lease.release()
  })

  test('a cleanup that hits the next owner of a recycled name', async () => {
    await using world = await makeWorld()
    const environment = await issue(world, 42)
    world.repo.git('worktree', 'remove', environment.path)
    world.repo.git('worktree', 'add', '-q', environment.path, 'issue-42')
    expect(basename(environment.path)).toBe('issue-42')
    inside(world, environment).write('theirs.txt', 'the next owner\n')
    expect((await refusal(world, environment, { force: true }))[0]).toMatch(/^ours no: .*recreated by someone else/)
    expect(inside(world, environment).read('theirs.txt')).toBe('the next owner\n')
  })

  test('a rollback that removed a directory it had not made', async () => {
    await using world = await makeWorld({
      prepare: (repo) => repo.commit('.coppice/config.yaml', 'worktree:\n  setup: ["exit 3"]\n'),
      context: { approve: () => Promise.resolve(true) },
    })
    const theirs = join(world.context.worktreesBase, 'project', 'issue-42')
    mkdirSync(theirs, { recursive: true })
    writeFileSync(join(theirs, 'precious'), 'not ours\n')
    expect(await messageOf(issue(world, 42))).toContain('setup of issue-42 failed')
    expect(readFileSync(join(theirs, 'precious'), 'utf8')).toBe('not ours\n')
    expect(world.repo.git('worktree', 'list').split('\n')).toHaveLength(1)
    expect(branchExists(world, 'issue-42')).toBe(false)
  })

  test('two works never share what the other has: a task named like an issue is told so', async () => {
    await using world = await makeWorld()
    await issue(world, 42)
    const answer = world.provider.create({
      codebase: world.codebase,
      work: toWork('task', 'issue-42'),
      branch: toBranchName('issue-42'),
      hints: {},
      createdBy: 'test',
      aliases: [],
    })
    await expect(answer).rejects.toMatchObject({ code: 'branch-in-use' })
  })
})
