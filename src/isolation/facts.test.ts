import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Dressed, makeDressed } from '../../test/helpers/provisioned.ts'
import { writeIn } from '../../test/helpers/repo.ts'
import { AppError } from '../domain/errors.ts'
import { type EnvironmentId, toBranchName, toEnvironmentId } from '../domain/names.ts'
import type { Git } from '../git/door.ts'
import type { IsolationContext } from './context.ts'
import { type EnvironmentFacts, type FactsOptions, listWithFacts } from './facts.ts'
import { orphans } from './provider-of.ts'
import { spareDirectory } from './paths.ts'

let lab: Dressed
let child: ChildProcess | undefined
beforeEach(async () => {
  lab = await makeDressed()
})
afterEach(async () => {
  if (child !== undefined) {
    child.kill('SIGKILL')
    await once(child, 'exit')
    child = undefined
  }
  await lab[Symbol.asyncDispose]()
})

const list = (options?: FactsOptions, context: IsolationContext = lab.context): Promise<EnvironmentFacts[]> =>
  listWithFacts(context, lab.codebase, options)

const factsOf = async (
  branch: string,
  options?: FactsOptions,
  context?: IsolationContext,
): Promise<EnvironmentFacts> => {
  const found = (await list(options, context)).find(({ environment }) => environment.branch === branch)
  if (found === undefined) throw new Error(`no facts of ${branch}`)
  return found
}

const failing = (
  fails: Parameters<Git['run']>[0] extends infer R ? (request: R) => boolean : never,
): IsolationContext => ({
  ...lab.context,
  git: {
    ...lab.context.git,
    run: (request) =>
      fails(request) ? Promise.reject(new AppError('git-failed', 'git broke')) : lab.context.git.run(request),
  },
})

describe('listWithFacts', () => {
  it('says nothing of a codebase without environments, and starts no git', async () => {
    const before = lab.context.git.spawned()
    await lab.context.store.environments.transition(lab.environment.id, 'active', 'released')
    expect(await list()).toEqual([])
    expect(lab.context.git.spawned()).toBe(before)
  })

  it('counts what is changed and untracked, and leaves ignored files out', async () => {
    expect(await factsOf('issue-42')).toMatchObject({ dirty: { changed: 0, untracked: 0 }, health: 'healthy' })
    writeIn(lab.tree.path, 'README', 'changed\n')
    writeIn(lab.tree.path, 'new/one', '1\n')
    writeIn(lab.tree.path, 'new/two', '2\n')
    writeIn(lab.tree.path, '.gitignore', '*.log\n')
    writeIn(lab.tree.path, 'debug.log', '\n')
    expect(await factsOf('issue-42')).toMatchObject({ dirty: { changed: 1, untracked: 3 } })
    expect(await factsOf('issue-42', { dirty: false })).toMatchObject({ dirty: undefined, health: 'healthy' })
  })

  it('sees what removal sees: commits on a detached HEAD, and changes that git status does not show', async () => {
    const git = (...args: string[]): string => lab.box.raw(lab.tree.path, ...args)
    git('checkout', '-q', '--detach')
    expect(await factsOf('issue-42')).toMatchObject({ detached: 0, merged: { value: 'empty' } })
    git('commit', '-q', '--allow-empty', '-m', 'on its own')
    git('update-index', '--skip-worktree', 'README')
    writeIn(lab.tree.path, 'README', 'changed\n')
    expect(await factsOf('issue-42')).toMatchObject({
      dirty: { changed: 0, untracked: 0, hidden: 1 },
      detached: 1,
      merged: { value: 'no', own: 1 },
    })
    git('branch', 'kept')
    git('bisect', 'start')
    expect(await factsOf('issue-42')).toMatchObject({ detached: 0, dirty: { halfDone: ['bisect'] } })
  })

  it('counts commits ahead and behind, and names the proof', async () => {
    const { tree } = await lab.another('other')
    lab.box.raw(tree.path, 'commit', '-q', '--allow-empty', '-m', 'one')
    lab.repo.commit('a', 'a\n')
    lab.repo.commit('a', 'b\n')
    lab.repo.git('merge', '-q', '--no-ff', '-m', 'merge', 'other')
    writeIn(lab.tree.path, 'mine', 'x\n')
    lab.box.raw(lab.tree.path, 'add', 'mine')
    lab.box.raw(lab.tree.path, 'commit', '-q', '-m', 'mine')
    expect(await factsOf('issue-42')).toMatchObject({ ahead: 1, behind: 4, merged: { value: 'no', own: 1 } })
    expect(await factsOf('other')).toMatchObject({ ahead: 0, behind: 3, merged: { value: 'yes', proof: 'ancestor' } })
  })

  it('marks the environment the asker stands in, also through a link and deep inside', async () => {
    await lab.another('issue-4')
    mkdirSync(join(lab.tree.path, 'deep', 'er'), { recursive: true })
    symlinkSync(lab.tree.path, lab.box.path('link'))
    for (const cwd of [lab.tree.path, join(lab.tree.path, 'deep', 'er'), lab.box.path('link', 'deep')]) {
      expect(await factsOf('issue-42', { cwd })).toMatchObject({ current: true })
      expect(await factsOf('issue-4', { cwd })).toMatchObject({ current: false })
    }
    expect(await factsOf('issue-42', { cwd: lab.repo.path })).toMatchObject({ current: false })
  })

  it('knows the newest activity: a message or a commit', async () => {
    expect((await factsOf('issue-42')).lastActivityAt).toBe(Number(lab.repo.git('log', '-1', '--format=%ct')) * 1000)
    await lab.context.store.environments.update(lab.environment.id, { lastActivityAt: 4_000_000_000_000 })
    expect((await factsOf('issue-42')).lastActivityAt).toBe(4_000_000_000_000)
  })

  it('names the conversations that point at it', async () => {
    const conversation = {
      id: 'c1',
      platform: 'slack',
      conversationId: 'C1:1.2',
      codebaseId: lab.codebase.id,
      environmentId: lab.environment.id,
      persistent: false,
      agent: undefined,
      lastActivityAt: 1,
      closedAt: undefined,
      createdAt: 1,
    }
    await lab.context.store.conversations.ensure(conversation)
    await lab.context.store.conversations.update('c1', { environmentId: lab.environment.id })
    expect((await factsOf('issue-42')).conversations).toEqual(['slack:C1:1.2'])
  })

  it('names who uses it: leases whose holder lives, and processes inside; our own git is not one', async () => {
    expect((await factsOf('issue-42')).inUse).toEqual({ by: [] })
    const lease = { host: 'here', environmentId: lab.environment.id, createdAt: 1 }
    const { self, store } = lab.context
    await store.leases.insert({ ...lease, id: 'l1', purpose: 'agent run', holder: self })
    await store.leases.insert({ ...lease, id: 'l2', purpose: 'dead', holder: { ...self, startTime: 'another' } })
    child = spawn('sleep', ['1000'], { cwd: lab.tree.path, stdio: 'ignore' })
    await once(child, 'spawn')
    expect((await factsOf('issue-42')).inUse.by).toEqual([
      `agent run (process ${self.pid})`,
      expect.stringContaining(`(process ${child.pid})`),
    ])
  })

  it('lists a missing one as missing, without looking at its files', async () => {
    renameSync(lab.tree.path, `${lab.tree.path}.unmounted`)
    expect(await factsOf('issue-42')).toMatchObject({ health: 'missing', dirty: undefined, merged: { value: 'empty' } })
  })

  it('says cannot tell of a branch that is gone', async () => {
    rmSync(lab.tree.path, { recursive: true })
    lab.repo.git('update-ref', '-d', 'refs/heads/issue-42')
    expect(await factsOf('issue-42')).toMatchObject({ merged: { value: 'cannot-tell' }, ahead: undefined })
  })

  it('says nothing of the files of another host', async () => {
    const elsewhere = { ...lab.environment, id: toEnvironmentId('elsewhere'), host: 'there', path: '/somewhere' }
    const work = { type: 'task' as const, id: 'elsewhere' }
    const branch = toBranchName('elsewhere')
    lab.repo.git('branch', branch)
    await lab.context.store.environments.insert({ ...elsewhere, work, branch }, undefined)
    expect(await factsOf('elsewhere')).toMatchObject({ health: 'cannot-tell', dirty: undefined, inUse: { by: [] } })
  })

  it('goes on when one environment cannot be looked at', async () => {
    await lab.another('fine')
    const index = join(lab.tree.gitDir, 'index')
    writeFileSync(index, 'this is no index')
    expect(await factsOf('issue-42')).toMatchObject({ dirty: undefined, merged: { value: 'empty' } })
    expect(await factsOf('fine')).toMatchObject({ dirty: { changed: 0, untracked: 0 } })
  })

  const noHistory = { merged: { value: 'cannot-tell' }, ahead: undefined, dirty: { changed: 0 } }
  it.each([
    ['for-each-ref', noHistory],
    ['merge-base', noHistory],
    ['status', { dirty: undefined, merged: { value: 'empty' }, behind: 1 }],
  ])('is a list with gaps, not a failure, when git %s fails', async (operation, gaps) => {
    lab.repo.commit('a', 'a\n')
    const broken = failing((request) => request.operation === operation)
    expect(await factsOf('issue-42', {}, broken)).toMatchObject(gaps)
  })

  it('is a list with gaps when the repository no longer says what base is', async () => {
    lab.repo.git('checkout', '-q', '--detach')
    lab.repo.git('branch', '-D', 'main')
    expect(await factsOf('issue-42')).toMatchObject({ merged: { value: 'cannot-tell' }, health: 'healthy' })
  })

  it('starts one git per worktree for its files, and as many as for one for everything else', async () => {
    const spawns = async (options: FactsOptions): Promise<number> => {
      const before = lab.context.git.spawned()
      await list(options)
      return lab.context.git.spawned() - before
    }
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) await lab.another(name)
    lab.repo.commit('x', 'x\n')
    await list()
    const few = await spawns({ dirty: false })
    for (const name of names) await lab.another(`more-${name}`)
    await list()
    expect(await spawns({ dirty: false })).toBe(few)
    expect(await spawns({})).toBe(few + 11)
  })

  it('ends when it is called off', async () => {
    await expect(list({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' })
  })
})

describe('orphans', () => {
  it('are linked worktrees that no live record knows: not the main tree, not an environment, not a spare', async () => {
    expect(await orphans(lab.context, lab.codebase)).toEqual([])
    const mine = lab.repo.worktree('by-hand', '-b', 'by-hand')
    const spare = lab.repo.worktree('spare', '--detach')
    const making = join(spareDirectory(lab.box.root), 'making')
    lab.repo.git('worktree', 'add', '-q', '--detach', making)
    await lab.context.store.spares.insert({
      id: 's1',
      host: 'here',
      codebaseId: lab.codebase.id,
      path: spare.path,
      adminName: 'spare',
      sha: lab.repo.sha(),
      createdAt: 1,
    })
    const before = lab.context.git.spawned()
    expect(await orphans(lab.context, lab.codebase)).toEqual([{ path: mine.path, branch: 'by-hand' }])
    expect(lab.context.git.spawned()).toBe(before)
  })

  it('say whether they are locked, detached or missing', async () => {
    const locked = lab.repo.worktree('locked', '--detach')
    lab.repo.git('worktree', 'lock', '--reason', 'on a stick', locked.path)
    const gone = lab.repo.worktree('gone', '-b', 'gone')
    rmSync(gone.path, { recursive: true })
    expect(await orphans(lab.context, lab.codebase)).toEqual([
      { path: gone.path, branch: 'gone', missing: true },
      { path: locked.path, branch: undefined, locked: 'on a stick' },
    ])
  })

  it('include what an environment was before it was let go of', async () => {
    const id: EnvironmentId = lab.environment.id
    await lab.context.store.environments.transition(id, 'active', 'released')
    expect(await orphans(lab.context, lab.codebase)).toEqual([{ path: lab.tree.path, branch: 'issue-42' }])
  })
})
