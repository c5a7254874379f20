import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runScheduledCleanup, type SweepOptions } from '../../src/cleanup/sweep.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import type { RestorePoint } from '../../src/domain/removal/restore-point.ts'
import { listWithFacts } from '../../src/isolation/facts.ts'
import { findEnvironment } from '../../src/isolation/find.ts'
import { acquireLease } from '../../src/isolation/lease.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import type { RemoveOptions, RemoveOutcome } from '../../src/isolation/remove-outcome.ts'
import type { Conversation } from '../../src/store/store.ts'
import type { Sandbox } from '../helpers/repo.ts'
import { makeWorld, type World, type WorldOptions } from '../helpers/world.ts'
import {
  branchExists,
  conversation,
  fingerprint,
  type Inside,
  inside,
  issue,
  messageOf,
  program,
  refusal,
  remove,
  removed,
  resolved,
} from './scene.ts'
import { untilSleeps } from '../helpers/shell.ts'
import { inWords, said } from '../helpers/words.ts'

const hour = 60 * 60 * 1000
const day = 24 * hour

const start = async (options: WorldOptions = {}) => {
  const world = await makeWorld(options)
  const environment = await issue(world, 42)
  return { world, environment, tree: inside(world, environment) }
}

test('removal that reports success while the directory is still there: it looks again, and says so', async () => {
  let path = ''
  const failpoint = async (name: string): Promise<void> => {
    if (name === 'remove.recorded') mkdirSync(join(path, 'again'), { recursive: true })
  }
  await using world = await makeWorld({ context: { failpoint } })
  const environment = await issue(world, 42)
  path = environment.path
  const notices = expect.arrayContaining([{ kind: 'path-exists-again', path }])
  expect(await remove(world, environment)).toMatchObject({ outcome: 'removed', notices })
  expect(existsSync(join(path, 'again'))).toBe(true)
})

const sweepOf = (world: World, options?: SweepOptions) =>
  runScheduledCleanup(world.context, world.provider, world.codebase, options)

const config = (text: string): NonNullable<WorldOptions['prepare']> => {
  return (repo) => {
    repo.commit('.coppice/config.yaml', text)
  }
}

describe.concurrent('each gate by itself', () => {
  /** What is in the way, how to take it away again, and what is said about it, also against --force. */
  type Obstacle = (
    world: World,
    environment: IsolatedEnvironment,
  ) => Promise<{ readonly says: RegExp; readonly undo: () => unknown }>
  const inRoot = (world: World): string => join(world.context.worktreesBase, '.coppice-root')
  const obstacles: Record<string, Obstacle> = {
    'ours: a directory outside a managed root': async (world) => {
      const content = readFileSync(inRoot(world))
      rmSync(inRoot(world))
      return {
        says: /^ours no: .* is outside the directories that Coppice manages/,
        undo: () => writeFileSync(inRoot(world), content),
      }
    },
    "ours: a root that another host manages is not this host's": async (world) => {
      const content = readFileSync(inRoot(world))
      writeFileSync(inRoot(world), 'another-host\n')
      return { says: /^ours no: /, undo: () => writeFileSync(inRoot(world), content) }
    },
    'ours: a directory that a link in the way has taken elsewhere': async (world) => {
      const project = join(world.context.worktreesBase, 'project')
      renameSync(project, world.box.path('moved'))
      symlinkSync(world.box.path('moved'), project)
      return {
        says: /^ours no: /,
        undo: () => {
          rmSync(project)
          renameSync(world.box.path('moved'), project)
        },
      }
    },
    'not in use: a live lease': async (world, environment) => {
      const lease = await acquireLease(world.context, world.codebase, environment, { purpose: 'agent run for slack' })
      return {
        says: new RegExp(`^not-in-use no: in use: agent run for slack \\(process ${process.pid}\\)$`),
        undo: lease.release,
      }
    },
    "not in use: another host's lease cannot be judged": async (world, environment) => {
      await world.context.store.leases.insert({
        id: 'elsewhere',
        host: 'another-host',
        environmentId: environment.id,
        purpose: 'agent run',
        holder: world.context.self,
        createdAt: 1,
      })
      return { says: /^not-in-use cannot-tell: /, undo: () => world.context.store.leases.remove('elsewhere') }
    },
    "not in use: another tool's lock": async (world, { path }) => {
      world.repo.git('worktree', 'lock', '--reason', 'on a removable disk', path)
      return {
        says: /^not-in-use no: locked by another tool: on a removable disk$/,
        undo: () => world.repo.git('worktree', 'unlock', path),
      }
    },
  }

  test('holds whatever is forced, and no longer than it has to', async () => {
    const { world, environment } = await start()
    await using _ = world
    for (const [what, obstacle] of Object.entries(obstacles)) {
      const { says, undo } = await obstacle(world, environment)
      const [first = '', ...others] = await refusal(world, environment, { force: true }).catch((error: unknown) => [
        String(error),
      ])
      expect([what, first]).toEqual([what, expect.stringMatching(says)])
      expect([what, ...(what.startsWith('ours') ? [] : others)]).toEqual([what])
      await undo()
    }
    // That of a dead process does not hold.
    await world.context.store.leases.insert({
      id: 'dead',
      host: world.context.host,
      environmentId: environment.id,
      purpose: 'agent run',
      holder: { ...world.context.self, startTime: 'long ago' },
      createdAt: 1,
    })
    expect((await remove(world, environment)).outcome).toBe('removed')
  })

  test('nothing uncommitted: staged, changed and untracked files are counted', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.write('README', 'changed\n')
    tree.write('staged', 'staged\n')
    tree.git('add', 'staged')
    tree.write('new', 'new\n')
    expect(await refusal(world, environment)).toEqual([
      'nothing-uncommitted no: 2 files changed',
      'nothing-uncommitted no: 1 untracked',
    ])
  })

  test('no kept files: a listed ignored file that differs from its source holds, the same one does not', async () => {
    const { world, environment, tree } = await start({
      prepare: (repo) => {
        repo.commit('.gitignore', '.env\nnotes/\n')
        repo.commit('.coppice/config.yaml', 'worktree:\n  copy: [".env"]\n  keep: ["notes/**"]\n')
        repo.write('.env', 'A=1\n')
      },
    })
    await using _ = world
    expect(tree.read('.env')).toBe('A=1\n')
    expect((await remove(world, environment, { dryRun: true })).outcome).toBe('would-remove')
    tree.write('.env', 'A=2\n')
    tree.write('notes/today', 'only here\n')
    expect(await refusal(world, environment)).toEqual([
      'no-kept-files no: .env differs from its source',
      'no-kept-files no: notes/today differs from its source',
    ])
    const { restorePoint } = await removed(world, environment, { force: true })
    const back = inside(world, (await world.provider.restore(restorePoint)).environment)
    expect([back.read('.env'), back.read('notes/today')]).toEqual(['A=2\n', 'only here\n'])
  })

  test('all of them together: every reason is listed at once, and nothing changes', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.git('switch', '-q', '--detach')
    tree.commit('lost', 'lost\n')
    tree.write('new', 'new\n')
    world.repo.git('worktree', 'lock', environment.path)
    await conversation(world, { environmentId: environment.id })
    const before = fingerprint(environment.path)
    const reasons = await refusal(world, environment)
    expect(reasons.map((reason) => reason.split(' ')[0])).toEqual([
      'not-in-use',
      'nobody-elses',
      'nothing-uncommitted',
      'nothing-unreachable',
    ])
    expect(fingerprint(environment.path)).toBe(before)
    expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
    expect(await world.context.store.journal.open('this-host')).toEqual([])
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
  })
})

test('a gate whose question cannot be answered refuses, also against --force', async () => {
  const damaged: [string, string, (record: string) => unknown][] = [
    ['an index that cannot be read', 'nothing-uncommitted', (record) => writeFileSync(join(record, 'index'), 'x')],
    ['a HEAD that makes no sense', 'nothing-unreachable', (record) => writeFileSync(join(record, 'HEAD'), '?')],
    [
      "a record that is not git's any more",
      'ours',
      (record) => {
        rmSync(join(record, 'gitdir'))
        mkdirSync(join(record, 'gitdir'))
      },
    ],
    ['a lock that is not a file', 'not-in-use', (record) => mkdirSync(join(record, 'locked'))],
  ]
  const { world, environment } = await start()
  await using _ = world
  const record = join(world.repo.path, '.git/worktrees/issue-42')
  cpSync(record, world.box.path('record'), { recursive: true })
  for (const [what, gate, damage] of damaged) {
    damage(record)
    const reasons = await refusal(world, environment, { force: true })
    const reason = reasons.find((one) => one.startsWith(gate))
    expect([what, reason]).toEqual([what, expect.stringMatching(/^\S+ cannot-tell: /)])
    rmSync(record, { recursive: true })
    cpSync(world.box.path('record'), record, { recursive: true })
  }
})

describe.concurrent('holds of conversations', () => {
  test('a conversation holds for 14 days after its last message, and not for the one who asks', async () => {
    let now = Date.now()
    const { world, environment } = await start({ context: { clock: () => now } })
    await using _ = world
    const holder = await conversation(world, { environmentId: environment.id })
    now += 13.9 * day
    expect(await refusal(world, environment)).toEqual([`nobody-elses no: slack:${holder.conversationId} is using it`])
    expect((await remove(world, environment, { askedBy: holder.id, dryRun: true })).outcome).toBe('would-remove')
    now += 0.2 * day
    expect((await remove(world, environment, { dryRun: true })).outcome).toBe('would-remove')
  })

  test('a conversation holds while a message of it waits or runs, however long ago and closed', async () => {
    const { world, environment } = await start()
    await using _ = world
    const { inbox } = world.context.store
    const holder = await conversation(world, { environmentId: environment.id, lastActivityAt: 1, closedAt: 2 })
    const { platform, conversationId } = holder
    const words = { kind: 'message', text: 'go on', details: {}, lane: 'turn', acceptedAt: 1 } as const
    await inbox.accept([{ ...words, id: 'm', platform, conversationId, deliveryId: 'd' }])
    const held = [`nobody-elses no: slack:${conversationId} is using it`]
    expect(await refusal(world, environment)).toEqual(held)
    await inbox.claim({ lane: 'turn', holder: { host: world.context.host, process: world.context.self } })
    expect(await refusal(world, environment)).toEqual(held)
    expect((await remove(world, environment, { askedBy: holder.id, dryRun: true })).outcome).toBe('would-remove')
    await inbox.transition('m', 'running', 'done')
    expect((await remove(world, environment, { dryRun: true })).outcome).toBe('would-remove')
  })

  test('for merged work a conversation holds one hour', async () => {
    let now = Date.now()
    const { world, environment, tree } = await start({ context: { clock: () => now } })
    await using _ = world
    await conversation(world, { environmentId: environment.id })
    tree.commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42')
    now += 0.9 * hour
    expect(await refusal(world, environment, { trigger: 'merged' })).toHaveLength(1)
    now += 0.2 * hour
    expect((await remove(world, environment, { trigger: 'merged', dryRun: true })).outcome).toBe('would-remove')
  })

  test("a persistent platform's environment goes by no automation, ever, but by its user's command", async () => {
    let now = Date.now()
    const { world, environment, tree } = await start({ context: { clock: () => now } })
    await using _ = world
    const chat = await conversation(world, { platform: 'telegram', environmentId: environment.id, persistent: true })
    tree.commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42')
    now += 1000 * day
    const triggers = ['merged', 'stale', 'room', 'fleet', 'closed'] as const
    for (const trigger of triggers) expect(await refusal(world, environment, { trigger })).toHaveLength(1)
    // Wherever the chat works now, and whoever asks for a cleanup: it was its user's, and its user may come back.
    const other = await issue(world, 43)
    await world.context.store.conversations.update(chat.id, { environmentId: other.id })
    await world.context.store.conversations.update(chat.id, { environmentId: undefined })
    for (const one of [environment, other]) {
      for (const trigger of triggers) {
        expect(await refusal(world, one, { trigger, askedBy: chat.id })).toEqual([
          'nobody-elses no: it belongs to a chat whose worktrees are removed only by name',
        ])
      }
    }
    // Also after it was removed and restored.
    const { restorePoint } = await removed(world, other)
    const { environment: back } = await world.provider.restore(restorePoint)
    expect(await refusal(world, back, { trigger: 'stale' })).toHaveLength(1)
    expect((await remove(world, environment, { trigger: 'command', dryRun: true })).outcome).toBe('would-remove')
  })

  test('a chat that asks for a cleanup itself loses the worktree that it works in, and no other chat does', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    const chat = await conversation(world, { platform: 'telegram', environmentId: environment.id, persistent: true })
    const slack = await conversation(world, { environmentId: environment.id, lastActivityAt: 1 })
    tree.commit('a', 'a\n')
    world.repo.git('merge', '-q', '--no-ff', '-m', 'land', 'issue-42')
    const asks = (trigger: RemoveOptions['trigger'], askedBy: string): Promise<RemoveOutcome> =>
      remove(world, environment, { trigger, askedBy, dryRun: true })
    for (const trigger of ['merged', 'stale'] as const) {
      expect((await asks(trigger, chat.id)).outcome).toBe('would-remove')
      // It may work there too, but it isn't the chat that keeps it.
      expect((await asks(trigger, slack.id)).outcome).toBe('refused')
      expect((await asks(trigger, 'no-such-conversation')).outcome).toBe('refused')
    }
    for (const trigger of ['room', 'fleet', 'closed'] as const) {
      expect((await asks(trigger, chat.id)).outcome).toBe('refused')
    }
    // Two chats in one worktree: neither removes the other's.
    const second = await conversation(world, {
      platform: 'telegram',
      environmentId: environment.id,
      persistent: true,
      lastActivityAt: 1,
    })
    expect((await asks('merged', chat.id)).outcome).toBe('refused')
    const { conversations } = world.context.store
    await conversations.update(second.id, { environmentId: undefined })
    // The chat has left and may come back; the thread that works there now can't answer for it.
    await conversations.update(chat.id, { environmentId: undefined })
    for (const { id } of [chat, slack]) expect((await asks('merged', id)).outcome).toBe('refused')
    await conversations.update(chat.id, { environmentId: environment.id })
    expect((await remove(world, environment, { trigger: 'merged', askedBy: chat.id })).outcome).toBe('removed')
  })

  test('with --force the others are let go of and named, so that they can be told', async () => {
    const { world, environment } = await start()
    await using _ = world
    const asker = await conversation(world, { environmentId: environment.id })
    const other = await conversation(world, { environmentId: environment.id })
    const gone = await removed(world, environment, { force: true, askedBy: asker.id })
    expect(gone.detachedConversations.map(({ id }) => id)).toEqual([other.id])
    for (const { platform, conversationId } of [asker, other]) {
      const after = await world.context.store.conversations.find(platform, conversationId)
      expect(after?.environmentId).toBeUndefined()
    }
    expect(await toldTo(world, other)).toEqual([
      expect.stringContaining('Worktree `issue-42` was removed (on request)'),
    ])
    expect(await toldTo(world, asker)).toEqual([])
  })

  test('they are told once also when the removal is interrupted and recovery finishes it', async () => {
    const { world, environment } = await start()
    await using _ = world
    const other = await conversation(world, { environmentId: environment.id })
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'remove.forgotten') throw new Error('interrupted')
    }
    const interrupted = createEnvironments({ ...world.context, failpoint })
    await interrupted.destroy(environment, { trigger: 'command', force: true }).catch(() => undefined)
    await reconcile(world.context, world.codebase)
    expect((await world.context.store.environments.get(environment.id))?.status).toBe('removed')
    expect(await toldTo(world, other)).toHaveLength(1)
  })
})

/** What was recorded to be said there. */
const toldTo = async (world: World, key: Conversation): Promise<string[]> =>
  (await world.context.store.outbox.ofConversation(key, 10)).map(({ text }) => text)

describe.concurrent('the branch', () => {
  test('that was there before the environment stays', async () => {
    await using world = await makeWorld()
    world.repo.git('branch', 'issue-42')
    const gone = await removed(world, await issue(world, 42))
    expect(gone).toMatchObject({ branchDeleted: false, branchNote: 'it existed before the worktree' })
    expect(branchExists(world, 'issue-42')).toBe(true)
  })

  test('is judged by the fetched remote base, not by a stale local one', async () => {
    await using world = await makeWorld({ remote: true })
    const environment = await issue(world, 42)
    const tip = inside(world, environment).commit('a', 'a\n')
    world.repo.git('push', '-q', 'origin', `${tip}:main`)
    world.repo.git('update-ref', 'refs/remotes/origin/main', world.repo.sha('main'))
    expect(world.repo.sha('main')).not.toBe(tip)
    const gone = await removed(world, environment, { trigger: 'closed' })
    expect(gone).toMatchObject({ branchDeleted: true, branchNote: 'merged: ancestor of origin/main' })
    expect(world.repo.git('ls-remote', 'origin', 'main')).toContain(tip)
  })

  test('that moved, or that somebody checks out elsewhere, between the proof and its end stays', async () => {
    let meanwhile: (() => void) | undefined
    await using world = await makeWorld({
      context: {
        failpoint: async (name) => {
          if (name === 'remove.forgotten') meanwhile?.()
        },
      },
    })
    const [moves, isTaken] = [await issue(world, 42), await issue(world, 43)]
    const tips = [moves, isTaken].map((environment) => inside(world, environment).commit(environment.branch, 'a\n'))
    for (const { branch } of [moves, isTaken]) world.repo.git('merge', '-q', '--no-ff', '-m', 'land', branch)
    const other = world.repo.commit('b', 'b\n')
    meanwhile = () => world.repo.git('update-ref', 'refs/heads/issue-42', other)
    expect(await removed(world, moves)).toMatchObject({
      branchDeleted: false,
      branchNote: 'it moved while its worktree was being removed',
    })
    expect(world.repo.git('rev-parse', 'issue-42')).toBe(other)
    meanwhile = () => void world.repo.worktree('elsewhere', 'issue-43')
    const branchNote = `it is checked out in ${world.box.path('elsewhere')} now`
    expect(await removed(world, isTaken)).toMatchObject({ branchDeleted: false, branchNote })
    expect(world.box.raw(world.box.path('elsewhere'), 'rev-parse', 'HEAD')).toBe(tips[1])
  })

  test('of an environment that started elsewhere and has nothing of its own goes, and says so', async () => {
    await using world = await makeWorld()
    world.repo.git('switch', '-q', '-c', 'release')
    world.repo.commit('r', 'r\n')
    world.repo.git('switch', '-q', 'main')
    const { environment } = await resolved(world, 'issue', 42, { base: 'release' })
    expect(await removed(world, environment)).toMatchObject({
      branchDeleted: true,
      branchNote: 'no commits of its own',
    })
  })
})

describe.concurrent('a branch that was renamed in its environment', () => {
  /** What somebody did, which branch the record follows, and whether that one may be deleted once it is merged. */
  const stories: [string, (tree: Inside, branch: string) => void, string, boolean][] = [
    ['to one below its own name', ({ git }, was) => git('branch', '-m', `${was}/x`), 'issue-1/x', true],
    [
      'and packed',
      ({ git }, was) => {
        git('branch', '-m', `${was}/x`)
        git('pack-refs', '--all')
      },
      'issue-2/x',
      true,
    ],
    [
      'twice',
      ({ git }) => {
        git('branch', '-m', 'a')
        git('branch', '-m', 'a/b')
      },
      'a/b',
      true,
    ],
    [
      'while another took its name',
      ({ git }, was) => {
        git('branch', '-m', 'renamed')
        git('branch', was, 'main~1')
      },
      'renamed',
      true,
    ],
    [
      'with a tag of the new name',
      ({ git }) => {
        git('branch', '-m', 'tagged')
        git('tag', 'tagged', 'main')
      },
      'tagged',
      true,
    ],
    [
      'without a reflog that says so',
      ({ git }, was) => {
        git('switch', '-q', '-c', `${was}-again`)
        git('branch', '-D', was)
      },
      'issue-6-again',
      false,
    ],
  ]
  test('is followed, told and removed, however that was done', async () => {
    await using world = await makeWorld({ prepare: (repo) => void repo.commit('second', '2\n') })
    const merged: { environment: IsolatedEnvironment; was: string; tip: string }[] = []
    for (const [i] of stories.entries()) {
      const environment = await issue(world, i + 1)
      const tip = inside(world, environment).commit(`a${i}`, 'a\n')
      merged.push({ environment, was: environment.branch, tip })
    }
    const open = (await resolved(world, 'issue', 43)).environment
    inside(world, open).commit('b', 'b\n')
    inside(world, open).git('branch', '-m', 'open/renamed')
    for (const [i, [, rename]] of stories.entries()) {
      const { environment, was, tip } = merged[i]!
      rename(inside(world, environment), was)
      world.repo.git('merge', '-q', '--no-ff', '-m', 'land', tip)
    }
    const branches = () => world.repo.git('for-each-ref', '--format=%(refname:lstrip=2)', 'refs/heads').split('\n')
    const before = branches()
    const dry = said((await sweepOf(world, { dryRun: true })).notices).join('\n')
    const facts = await listWithFacts(world.context, world.codebase)
    expect(facts.map(({ environment, ahead }) => [environment.branch, ahead])).toEqual([
      ...stories.map(([, , branch]) => [branch, 0]),
      ['open/renamed', 1],
    ])
    for (const [i, [what, , branch]] of stories.entries()) {
      const { environment, was } = merged[i]!
      expect([what, (await world.context.store.environments.get(environment.id))?.branch]).toEqual([what, was])
      expect(dry).toContain(branch)
      expect((await findEnvironment(world.context, world.codebase, branch, '/')).id).toBe(environment.id)
    }
    const points: RestorePoint[] = []
    for (const [i, [what, , branch, ours]] of stories.entries()) {
      const { environment, was } = merged[i]!
      const gone = await removed(world, environment)
      expect({ what, ...gone }).toMatchObject({ what, environment: { branch }, branchDeleted: ours })
      expect(gone.notices.join('\n')).toMatch(new RegExp(`^branch ${was} (?:was renamed to|is gone and) `))
      expect((await world.context.store.environments.get(environment.id))?.branch).toBe(branch)
      points.push(gone.restorePoint)
    }
    const kept = await removed(world, open)
    expect(kept).toMatchObject({ branchDeleted: false, branchNote: '1 commit not on main' })
    const deleted = stories.filter(([, , , ours]) => ours).map(([, , branch]) => branch)
    expect(branches()).toEqual(before.filter((name) => !deleted.includes(name)))
    for (const [i, [what, , branch, ours]] of stories.entries()) {
      const back = await world.provider.restore(points[i]!)
      expect([what, back.environment]).toMatchObject([what, { branch, branchOrigin: ours ? 'created' : 'existing' }])
      expect(inside(world, back.environment).git('rev-parse', 'HEAD')).toBe(merged[i]!.tip)
    }
  })

  test('is not one that somebody merely switched away from: the record stays', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    tree.commit('a', 'a\n')
    tree.git('switch', '-q', '-c', 'experiment')
    tree.commit('b', 'b\n')
    expect((await sweepOf(world)).notices).toEqual([])
    expect(await removed(world, environment)).toMatchObject({
      environment: { branch: 'issue-42' },
      branchDeleted: false,
    })
    expect([branchExists(world, 'issue-42'), branchExists(world, 'experiment')]).toEqual([true, true])
  })

  test("does not stop a removal when nothing is checked out and another branch took the name's directory", async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    const tip = tree.commit('a', 'a\n')
    tree.git('branch', '-m', 'issue-42/x')
    tree.git('checkout', '-q', '--detach')
    const gone = await removed(world, environment)
    expect(gone).toMatchObject({ branchDeleted: false, branchNote: 'branch issue-42 was already gone' })
    expect(world.repo.git('rev-parse', 'refs/heads/issue-42/x')).toBe(tip)
    const { environment: back, notices } = inWords(await world.provider.restore(gone.restorePoint))
    expect([back.branch, notices.join()]).toEqual([
      'issue-42-restored',
      "branch issue-42 can't exist beside issue-42/x: restored as issue-42-restored",
    ])
    expect(inside(world, back).git('rev-parse', 'HEAD')).toBe(tip)
  })
})

describe.concurrent('while it is being removed', () => {
  const changes: [string, (tree: Inside) => unknown][] = [
    ['a tracked file', (tree) => tree.write('README', 'too late\n')],
    ['a new file', (tree) => tree.write('late.txt', 'too late\n')],
    ['a file deep in an ignored directory', (tree) => tree.write('out/deep/x', 'too late\n')],
    ['a file in a nested repository', (tree) => tree.write('nested/draft', 'too late\n')],
    ['a commit', (tree) => tree.commit('late', 'late\n')],
  ]
  test('what is written or committed after it was saved brings everything back', async () => {
    let late: (() => void) | undefined
    const { world, environment, tree } = await start({
      prepare: (repo) => repo.commit('.gitignore', 'out/\n'),
      context: {
        failpoint: async (name) => {
          if (name === 'remove.saved') late?.()
        },
      },
    })
    await using _ = world
    tree.write('out/deep/x', 'early\n')
    mkdirSync(join(tree.path, 'nested'))
    world.box.raw(join(tree.path, 'nested'), 'init', '-q')
    tree.write('nested/draft', 'early\n')
    for (const [what, change] of changes) {
      let isChanged = false
      late = () => {
        change(tree)
        isChanged = true
      }
      const reasons = await refusal(world, environment, { force: true })
      expect([what, isChanged, ...reasons]).toEqual([
        what,
        true,
        'nothing-uncommitted no: it changed while it was being removed',
      ])
      expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
      expect(await world.context.store.restorePoints.list(world.codebase.id)).toEqual([])
    }
    expect(tree.git('log', '-1', '--format=%s')).toBe('change late')
    expect(['README', 'late.txt', 'out/deep/x', 'nested/draft'].map((path) => tree.read(path))).toEqual(
      Array.from({ length: 4 }, () => 'too late\n'),
    )
  })

  test('a commit, ref or operation that leaves no trace in the files brings everything back', async () => {
    let late: (() => void) | undefined
    const { world } = await start({
      prepare: (repo, box) => {
        box.repo('lib').commit('lib.c', 'int x;\n')
        repo.git('branch', 'plain')
        repo.git('submodule', '--quiet', 'add', box.path('lib'), 'lib')
        repo.git('commit', '-q', '-m', 'lib')
      },
      context: {
        // The quick second look needs directories that have been at rest for a while.
        clock: () => Date.now() + 60_000,
        failpoint: async (name) => {
          if (name === 'remove.saved') late?.()
        },
      },
    })
    await using _ = world
    const changes: Record<string, (tree: Inside, commit: string) => void> = {
      'on a detached HEAD': (tree, commit) => void tree.git('update-ref', '--no-deref', 'HEAD', commit),
      'that only the reflog has': (tree, commit) => {
        tree.git('update-ref', 'HEAD', commit)
        tree.git('update-ref', 'HEAD', `${commit}~`)
      },
      // Written as a file: git keeps a reflog that is there.
      'on a branch without a reflog': (_tree, commit) =>
        writeFileSync(join(world.repo.commonDir, 'refs/heads/on'), `${commit}\n`),
      'of a ref of its own': (tree, commit) => void tree.git('update-ref', 'refs/worktree/mine', commit),
      'that is being merged': (tree, commit) =>
        writeFileSync(join(tree.git('rev-parse', '--absolute-git-dir'), 'MERGE_HEAD'), `${commit}\n`),
      'a file of a clean submodule': (tree) => tree.write('lib/lib.c', 'int y;\n'),
      'a tag in a submodule': (tree) => void tree.git('-C', 'lib', 'tag', 'mine'),
    }
    for (const [number, [what, change]] of Object.entries(changes).entries()) {
      const hasSubmodule = what.includes('submodule')
      if (!hasSubmodule) world.repo.git('branch', `issue-${number + 1}`, 'plain')
      const environment = await issue(world, number + 1)
      const tree = inside(world, environment)
      if (!hasSubmodule && !what.includes('branch')) tree.git('checkout', '-q', '--detach')
      if (what.includes('branch')) tree.git('checkout', '-q', '-b', 'on')
      const commit = tree.git('commit-tree', '-m', 'late', '-p', 'HEAD', 'HEAD^{tree}')
      late = () => change(tree, commit)
      const reasons = await refusal(world, environment).catch((error: unknown) => [String(error)])
      expect([what, ...reasons]).toEqual([what, 'nothing-uncommitted no: it changed while it was being removed'])
    }
  })

  test('a process that comes in brings everything back', async () => {
    let late: (() => Promise<void>) | undefined
    const { world, environment } = await start({
      context: {
        failpoint: async (name) => {
          if (name === 'remove.saved') await late?.()
        },
      },
    })
    await using _ = world
    let sleeper: Awaited<ReturnType<typeof program>> | undefined
    late = async () => {
      sleeper = await program('sleep', ['600'], { cwd: environment.path })
    }
    try {
      expect(await refusal(world, environment, { force: true })).toEqual([
        `not-in-use no: process ${sleeper?.pid} (sleep) is inside it`,
      ])
    } finally {
      sleeper?.[Symbol.dispose]()
    }
  })

  test('a fault at any point leaves the environment as it was', async () => {
    let where = ''
    const { world, environment, tree } = await start({
      context: {
        failpoint: (name) => (name === where ? Promise.reject(new Error(`cut at ${name}`)) : Promise.resolve()),
      },
    })
    await using _ = world
    tree.write('draft', 'draft\n')
    const before = fingerprint(environment.path)
    for (where of ['save.archived', 'save.ref', 'remove.saved', 'remove.moved', 'remove.checked']) {
      expect(await messageOf(remove(world, environment, { force: true }))).toBe(`cut at ${where}`)
      expect(fingerprint(environment.path)).toBe(before)
      expect((await world.context.store.environments.get(environment.id))?.status).toBe('active')
      expect(world.repo.git('for-each-ref', 'refs/coppice')).toBe('')
      expect(await world.context.store.journal.open('this-host')).toEqual([])
    }
  })
})

describe.concurrent('removal', () => {
  test('of an adopted environment lets go of it and tells the others', async () => {
    await using world = await makeWorld()
    const tree = world.repo.worktree('mine', '-b', 'mine')
    const environment = await world.provider.adopt(world.codebase, tree.path, { createdBy: 'test', aliases: [] })
    writeFileSync(join(tree.path, 'draft'), 'draft\n')
    const other = await conversation(world, { environmentId: environment.id })
    const before = fingerprint(world.repo.path)
    const outcome = await remove(world, environment)
    expect(outcome).toMatchObject({ outcome: 'released', environment: { status: 'released' } })
    expect(outcome.outcome === 'released' && outcome.detachedConversations.map(({ id }) => id)).toEqual([other.id])
    expect(fingerprint(world.repo.path)).toBe(before)
    expect(readFileSync(join(tree.path, 'draft'), 'utf8')).toBe('draft\n')
    expect(await messageOf(remove(world, environment))).toContain('already gone')
  })

  test('runs an approved teardown in the tree first, with its ports, and names what that and setup left running elsewhere', async () => {
    const started = (name: string, box: Sandbox): string =>
      `(cd / && setsid sh -c 'echo $$ > ${box.path(name)}; exec sleep 300') </dev/null >/dev/null 2>&1 & while [ ! -s ${box.path(name)} ]; do sleep 0.01; done; ${untilSleeps(`$(cat ${box.path(name)})`)}`
    const { world, environment } = await start({
      prepare: (repo, box) => {
        const teardown = [started('two', box), `echo $COPPICE_BRANCH $WEB > ${box.path('told')}`]
        const setup = [started('one', box)]
        config(
          `worktree:\n  ports: [WEB]\n  setup: ${JSON.stringify(setup)}\n  teardown: ${JSON.stringify(teardown)}\n`,
        )(repo, box)
      },
      context: { approve: () => Promise.resolve(true) },
    })
    await using _ = world
    const outcome = await removed(world, environment)
    const [one, two] = ['one', 'two'].map((name) => Number(readFileSync(world.box.path(name), 'utf8')))
    for (const pid of [one, two]) process.kill(pid ?? 0, 'SIGKILL')
    expect(outcome.notices.slice(-2)).toEqual([
      `teardown left 1 process running: sleep (${two})`,
      `setup left 1 process running: sleep (${one})`,
    ])
    expect(readFileSync(world.box.path('told'), 'utf8')).toMatch(/^issue-42 \d+\n$/)
    expect(await world.context.store.ports.taken('this-host')).toEqual([])
  })

  test('stays away when teardown, read from base and never from the branch of the work, fails or leaves changes', async () => {
    const { world, environment, tree } = await start({
      prepare: config('worktree:\n  teardown: ["sh ../teardown"]\n'),
      context: { approve: () => Promise.resolve(true) },
    })
    await using _ = world
    tree.commit('.coppice/config.yaml', `worktree:\n  teardown: ["touch ${world.box.path('pwned')}"]\n`)
    for (const command of ['exit 4', 'echo x > left-behind']) {
      writeFileSync(join(environment.path, '../teardown'), command)
      expect(await messageOf(remove(world, environment))).toMatch(/teardown/)
      expect(existsSync(environment.path)).toBe(true)
      // It is as usable as before.
      expect((await issue(world, 42)).id).toBe(environment.id)
    }
    rmSync(join(tree.path, 'left-behind'))
    writeFileSync(join(environment.path, '../teardown'), `echo ran > ${world.box.path('ran')}`)
    await removed(world, environment)
    expect([existsSync(world.box.path('ran')), existsSync(world.box.path('pwned'))]).toEqual([true, false])
  })

  test('a dry run touches nothing; of two removals at once exactly one does it; a third says that it is gone', async () => {
    const { world, environment } = await start()
    await using _ = world
    const before = [fingerprint(environment.path), fingerprint(world.repo.path)]
    expect(await remove(world, environment, { dryRun: true })).toMatchObject({
      outcome: 'would-remove',
      merged: { value: 'empty' },
    })
    expect([fingerprint(environment.path), fingerprint(world.repo.path)]).toEqual(before)
    const both = await Promise.allSettled([remove(world, environment), remove(world, environment)])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await world.context.store.restorePoints.list(world.codebase.id)).toHaveLength(1)
    await expect(remove(world, environment)).rejects.toMatchObject({ code: 'not-found' })
  })

  test('of a missing environment is refused, and by force lets go of the record and keeps the branch', async () => {
    const { world, environment, tree } = await start()
    await using _ = world
    const tip = tree.commit('a', 'a\n')
    world.repo.git('merge', '-q', '--ff-only', 'issue-42')
    renameSync(environment.path, world.box.path('away'))
    expect(await remove(world, environment)).toMatchObject({
      outcome: 'refused',
      reasons: [{ gate: 'nothing-uncommitted', answer: 'no' }],
    })
    expect(await remove(world, environment, { force: true })).toMatchObject({
      outcome: 'removed',
      branchDeleted: false,
    })
    expect(world.repo.git('rev-parse', 'issue-42')).toBe(tip)
    expect(existsSync(world.box.path('away', 'a'))).toBe(true)
  })
})
