import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import type { IsolatedEnvironment } from '../../src/domain/environment.ts'
import { toAppError } from '../../src/domain/errors.ts'
import { toWork } from '../../src/domain/work.ts'
import { listWithFacts } from '../../src/isolation/facts.ts'
import { addCodebase } from '../../src/isolation/codebases/codebases.ts'
import { findEnvironment } from '../../src/isolation/find.ts'
import { presenceOf } from '../../src/isolation/providers/worktree/presence.ts'
import { reconcile } from '../../src/isolation/reconcile.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { keepSpares } from '../../src/isolation/providers/worktree/spare.ts'
import { openStore } from '../../src/store/open.ts'
import { makeContext, makeWorld, type World } from '../helpers/world.ts'
import { inside, issue, messageOf, remove, removed, resolved } from './scene.ts'
import { remedyIn } from '../helpers/words.ts'

const move = (world: World, { path }: IsolatedEnvironment, to: string, ...flags: string[]): string => {
  mkdirSync(dirname(to), { recursive: true })
  world.repo.git('worktree', 'move', ...flags, path, to)
  return to
}

const row = async ({ context }: World, { id }: IsolatedEnvironment): Promise<IsolatedEnvironment> => {
  const found = await context.store.environments.get(id)
  if (found === undefined) throw new Error('its row is gone')
  return found
}

const inRoot = ({ context }: World, name: string): string => join(context.worktreesBase, 'project', name)

describe('a worktree moved inside a managed root', () => {
  test('is used where it is now, and that is told once', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    const to = move(world, made, inRoot(world, 'renamed'))
    const first = await resolved(world, 'issue', 1)
    expect(first.environment).toMatchObject({ id: made.id, path: to, owned: true, status: 'active' })
    expect(first.notices).toEqual([`issue-1 was moved to ${to}: using it there`])
    expect((await resolved(world, 'issue', 1)).notices).toEqual([])
    expect((await removed(world, first.environment)).environment.path).toBe(to)
    expect(existsSync(to)).toBe(false)
  })

  test('is followed by every way of looking at it', async () => {
    await using world = await makeWorld()
    const [one, two, three] = [await issue(world, 1), await issue(world, 2), await issue(world, 3)]
    const { context, codebase } = world
    const first = move(world, one, inRoot(world, 'a'))
    const told: string[] = []
    const facts = await listWithFacts(context, codebase, {
      onMoved: (moved) => told.push(...moved.map(({ environment }) => environment.path)),
    })
    expect(facts.find(({ environment }) => environment.id === one.id)).toMatchObject({
      environment: { path: first, status: 'active' },
      health: 'healthy',
      dirty: { changed: 0 },
    })
    expect(told).toEqual([first])
    const second = move(world, two, inRoot(world, 'b'))
    expect((await findEnvironment(context, codebase, second, '/')).id).toBe(two.id)
    expect((await reconcile(context, codebase)).moved).toMatchObject([
      { environment: { path: second }, from: two.path },
    ])
    const third = move(world, three, inRoot(world, 'c'))
    expect((await removed(world, three)).environment.path).toBe(third)
  })

  test('is followed when it was moved twice, and when it is locked', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    const there = move(world, made, inRoot(world, 'a'))
    const to = move(world, { ...made, path: there }, inRoot(world, 'b'))
    world.repo.git('worktree', 'lock', '--reason', 'mine', to)
    expect((await resolved(world, 'issue', 1)).environment.path).toBe(to)
    expect(await remove(world, made, { force: true })).toMatchObject({
      outcome: 'refused',
      reasons: [{ gate: 'not-in-use', fact: { kind: 'lock', reason: 'mine' } }],
    })
  })

  test('is followed although something else lies at its old path, which is left alone', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    const to = move(world, made, inRoot(world, 'a'))
    mkdirSync(made.path)
    writeFileSync(join(made.path, 'precious'), 'theirs')
    expect((await removed(world, { ...made, path: to }, { force: true })).environment.path).toBe(to)
    expect(readFileSync(join(made.path, 'precious'), 'utf8')).toBe('theirs')
  })

  test('and another that took its place are both followed', async () => {
    await using world = await makeWorld()
    const [one, two] = [await issue(world, 1), await issue(world, 2)]
    const aside = move(world, one, inRoot(world, 'aside'))
    move(world, two, one.path)
    move(world, { ...one, path: aside }, two.path)
    expect((await resolved(world, 'issue', 1)).environment.path).toBe(two.path)
    expect((await resolved(world, 'issue', 2)).environment.path).toBe(one.path)
    expect(inside(world, await row(world, one)).git('branch', '--show-current')).toBe('issue-1')
  })

  test('onto the path that the next environment wants does not get in its way', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    move(world, made, inRoot(world, 'issue-2'))
    const next = (await resolved(world, 'issue', 2)).environment
    expect(next.path).toMatch(/issue-2-[0-9a-f]{8}$/)
    expect(next.id).not.toBe(made.id)
    expect((await resolved(world, 'issue', 1)).environment).toMatchObject({
      id: made.id,
      path: inRoot(world, 'issue-2'),
    })
  })

  test('onto the path of one that was deleted takes that path, and the other is missing', async () => {
    await using world = await makeWorld()
    const [one, two] = [await issue(world, 1), await issue(world, 2)]
    rmSync(one.path, { recursive: true })
    move(world, two, one.path, '--force')
    await reconcile(world.context, world.codebase)
    expect(await row(world, two)).toMatchObject({ path: one.path, status: 'active' })
    expect(await row(world, one)).toMatchObject({ status: 'missing' })
    expect((await remove(world, one, { force: true })).outcome).toBe('removed')
    expect(existsSync(one.path)).toBe(true)
  })
})

describe('a worktree moved out of every managed root', () => {
  test('elsewhere, into another environment, or into a directory of Coppice’s own is the user’s: removing it stops tracking it', async () => {
    await using world = await makeWorld()
    const places = [
      world.box.path('elsewhere'),
      inRoot(world, 'issue-9/inner'),
      join(world.context.worktreesBase, '.trash/mine'),
    ]
    await issue(world, 9)
    for (const [i, place] of places.entries()) {
      const made = await issue(world, i + 1)
      inside(world, made).write('precious', 'uncommitted')
      const to = move(world, made, place)
      expect(await remove(world, made, { force: true })).toMatchObject({
        outcome: 'released',
        environment: { path: to, owned: false, status: 'released' },
      })
      expect(readFileSync(join(to, 'precious'), 'utf8')).toBe('uncommitted')
      expect(world.repo.git('worktree', 'list')).toContain(to)
      expect(world.repo.git('branch', '--list', made.branch)).toContain(made.branch)
    }
    expect((await reconcile(world.context, world.codebase)).left).toEqual([])
    for (const place of places) expect([place, existsSync(place)]).toEqual([place, true])
  })

  test('is still used by its work, stays the user’s wherever it goes next, and that is told once', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    const outside = move(world, made, world.box.path('mine'))
    const first = await resolved(world, 'issue', 1)
    expect(first.environment).toMatchObject({ id: made.id, path: outside, owned: false })
    expect(first.notices.join()).toContain("Coppice no longer manages it and won't delete it")
    const back = move(world, first.environment, made.path)
    const second = await resolved(world, 'issue', 1)
    expect(second.environment).toMatchObject({ path: back, owned: false })
    expect((await remove(world, second.environment, { force: true })).outcome).toBe('released')
    expect(existsSync(back)).toBe(true)
  })
})

test('a worktree that is moved away while it is being made is left to whoever moved it', async () => {
  let taken = ''
  await using world = await makeWorld({
    context: {
      failpoint: async (name) => {
        if (name !== 'create.dressed' || taken !== '') return
        taken = world.box.path('taken')
        world.repo.git('worktree', 'move', '--force', '--force', inRoot(world, 'issue-1'), taken)
        throw new Error('setup failed')
      },
    },
  })
  await expect(resolved(world, 'issue', 1)).rejects.toThrow('setup failed')
  expect(existsSync(taken)).toBe(true)
  expect(inside(world, { path: taken }).git('branch', '--show-current')).toBe('issue-1')
  expect(await world.context.store.journal.open(world.context.host, world.codebase.id)).toEqual([])
  expect((await resolved(world, 'issue', 2)).how).toBe('created')
})

describe('a directory moved by hand', () => {
  test('is missing until git is told, and then it is followed', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    const to = inRoot(world, 'by-hand')
    renameSync(made.path, to)
    expect((await presenceOf(world.codebase, made)).state).toBe('missing')
    await reconcile(world.context, world.codebase)
    expect(await row(world, made)).toMatchObject({ status: 'missing', path: made.path })
    world.repo.git('worktree', 'repair', to)
    await reconcile(world.context, world.codebase)
    expect(await row(world, made)).toMatchObject({ status: 'active', path: to, owned: true })
  })

  test('a record that names a directory which does not name it back is not followed', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    const other = world.repo.worktree('other', '-b', 'other')
    rmSync(made.path, { recursive: true })
    writeFileSync(join(world.repo.commonDir, 'worktrees', made.adminName ?? '', 'gitdir'), `${other.path}/.git\n`)
    expect((await presenceOf(world.codebase, made)).state).toBe('missing')
  })
})

describe('adopting', () => {
  const claim = (world: World, path: string): Promise<IsolatedEnvironment> =>
    world.provider.adopt(world.codebase, path, { createdBy: 'cli', aliases: [], claim: true })

  test('an environment of ours makes it the user’s: nothing deletes it any more', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 7)
    expect(await claim(world, made.path)).toMatchObject({ id: made.id, owned: false, status: 'active' })
    const outcome = await remove(world, made, { force: true })
    expect(outcome).toMatchObject({ outcome: 'released' })
    expect(existsSync(made.path)).toBe(true)
    expect(world.repo.git('branch', '--list', 'issue-7')).toContain('issue-7')
  })

  test('one that was moved, or whose .git file is gone, works all the same', async () => {
    await using world = await makeWorld()
    const [one, two] = [await issue(world, 1), await issue(world, 2)]
    const to = move(world, one, inRoot(world, 'moved'))
    expect(await claim(world, to)).toMatchObject({ id: one.id, path: to, owned: false })
    rmSync(join(two.path, '.git'))
    expect(await claim(world, two.path)).toMatchObject({ id: two.id, owned: false })
    expect((await remove(world, two)).outcome).toBe('released')
    expect(existsSync(two.path)).toBe(true)
  })

  test('worktrees that were moved with mv, or copied, keep their branches when the advice is followed', async () => {
    await using world = await makeWorld()
    const names = ['a', 'b', 'mo ved', 'copied']
    const path = new Map(names.map((name) => [name, world.repo.worktree(name, '-b', name.replace(' ', '-')).path]))
    const at = (name: string): string => path.get(name) ?? ''
    renameSync(at('a'), world.box.path('t'))
    renameSync(at('b'), at('a'))
    renameSync(world.box.path('t'), at('b'))
    renameSync(at('mo ved'), world.box.path('new place'))
    cpSync(at('copied'), world.box.path('copy'), { recursive: true })
    const adoptedOnAdvice = async (place: string): Promise<string> => {
      const refused = await claim(world, place).then(() => undefined, toAppError)
      const command =
        remedyIn(refused)
          .split(/: (?=printf |rm )/)
          .at(-1) ?? 'false'
      spawnSync('sh', ['-c', command], { cwd: world.box.root })
      return (await claim(world, place)).branch
    }
    expect(await adoptedOnAdvice(at('a'))).toBe('b')
    expect(await adoptedOnAdvice(at('b'))).toBe('a')
    expect(await adoptedOnAdvice(world.box.path('new place'))).toBe('mo-ved')
    await expect(adoptedOnAdvice(world.box.path('copy'))).rejects.toThrow('is not a linked worktree')
    expect((await claim(world, at('copied'))).branch).toBe('copied')
    expect([at('a'), at('b')].map((place) => world.box.raw(place, 'branch', '--show-current'))).toEqual(['b', 'a'])
  })

  test('is no claim when the resolver does it', async () => {
    await using world = await makeWorld()
    const made = await issue(world, 1)
    expect(await world.provider.adopt(world.codebase, made.path, { createdBy: 'slack', aliases: [] })).toMatchObject({
      id: made.id,
      owned: true,
    })
  })

  test('a worktree of another home is refused, which may delete it, until the mark of that home is gone', async () => {
    await using world = await makeWorld()
    const [one, two] = [await issue(world, 1), await issue(world, 2)]
    const store = await openStore({ sqliteFile: world.box.path('second.db') })
    await using _ = { [Symbol.asyncDispose]: () => store.close() }
    const inHome = async (host: string, path: string): Promise<IsolatedEnvironment> => {
      const context = await makeContext(world.box, { host }, { store })
      const { codebase } = await addCodebase(context, world.repo.path, '/')
      return createEnvironments(context).adopt(codebase, path, { createdBy: 'cli', aliases: [], claim: true })
    }
    const refused = `${one.path} was created with another Coppice home, which may delete it`
    expect(await messageOf(inHome('other', one.path))).toBe(refused)
    // Doctor does not advise what is refused.
    const other = await makeContext(world.box, { host: 'other' }, { store })
    const { codebase } = await addCodebase(other, world.repo.path, '/')
    const about = (await examineCodebase(other, codebase)).find(({ detail }) => detail.includes(one.path))
    expect(about?.detail).toContain('is a worktree of another Coppice home')
    expect(remedyIn(about)).toMatch(/to track it here, delete that home's mark first: rm .*issue-1\/coppice$/)
    const to = move(world, one, world.box.path('first/worktrees/project/issue-1'))
    expect(await messageOf(inHome('other', to))).toContain(`another Coppice home (${world.box.path('first')})`)
    rmSync(join(world.repo.commonDir, 'worktrees/issue-1/coppice'))
    expect(await inHome('other', to)).toMatchObject({ path: to, owned: false })
    await remove(world, one, { force: true })
    expect([existsSync(to), world.repo.git('worktree', 'list')]).toEqual([true, expect.stringContaining(`${to} `)])
    // The same home after its database was lost.
    expect(await inHome(world.context.host, two.path)).toMatchObject({ path: two.path, owned: false })
  })

  test('a spare, a half-made one, one being removed or one in the trash is refused with a reason', async () => {
    await using world = await makeWorld({ settings: { spares: 1 } })
    const { context, codebase } = world
    await keepSpares(context, codebase)
    const [spare] = await context.store.spares.list(codebase.id)
    expect(await messageOf(claim(world, spare?.path ?? ''))).toContain('is a spare worktree')
    const moved = world.box.path('taken-out')
    world.repo.git('worktree', 'move', '--force', '--force', spare?.path ?? '', moved)
    expect(await messageOf(claim(world, moved))).toContain('is a spare worktree')

    // The one that was taken out is the user's, and the next worktree is made without it.
    const removing = await issue(world, 1)
    expect(existsSync(moved)).toBe(true)
    expect(await messageOf(claim(world, moved))).toContain('has no branch checked out')
    await context.store.environments.transition(removing.id, 'active', 'removing')
    expect(await messageOf(claim(world, removing.path))).toBe('issue-1 is being removed')
    expect((await row(world, removing)).owned).toBe(true)

    const making = world.repo.worktree('making', '-b', 'making')
    world.repo.git('worktree', 'lock', '--reason', 'coppice: making 123', making.path)
    expect(await messageOf(claim(world, making.path))).toContain('is being made')

    const trash = join(context.worktreesBase, '.trash/theirs')
    mkdirSync(dirname(trash), { recursive: true })
    world.repo.git('worktree', 'add', '-q', trash, '-b', 'theirs')
    expect(await messageOf(claim(world, trash))).toContain('is in a directory that Coppice manages')
  })
})

describe('a removal that nobody will finish', () => {
  test('is not waited for: the next one is told what is in the way', async () => {
    await using world = await makeWorld()
    const { context, codebase } = world
    const made = await issue(world, 1)
    const failing = {
      ...context,
      failpoint: async (name: string) => {
        if (name === 'remove.saved' || name === 'undo-remove.back') throw new Error('the disk is on fire')
      },
    }
    const { createEnvironments: createIsolation } = await import('../../src/isolation/environments.ts')
    const broken = { ...world, context: failing, provider: createIsolation(failing) }
    await expect(remove(broken, made)).rejects.toThrow('the disk is on fire')
    expect((await row(world, made)).status).toBe('removing')
    expect(await messageOf(resolved(broken, 'issue', 1))).toContain('the disk is on fire')
    // As soon as it can be undone, it is.
    expect((await resolved(world, 'issue', 1)).environment.id).toBe(made.id)
    expect(await context.store.journal.open(context.host, codebase.id)).toEqual([])
  })

  test('and that no operation knows of is what its directory says', async () => {
    await using world = await makeWorld()
    const [one, two] = [await issue(world, 1), await issue(world, 2)]
    for (const { id } of [one, two]) await world.context.store.environments.transition(id, 'active', 'removing')
    rmSync(two.path, { recursive: true })
    await reconcile(world.context, world.codebase)
    expect([(await row(world, one)).status, (await row(world, two)).status]).toEqual(['active', 'missing'])
    expect((await resolved(world, 'issue', 1)).environment.work).toEqual(toWork('issue', '1'))
  })
})

test("pointers that lead into another environment's directory move nothing, and nothing there is removed", async () => {
  await using world = await makeWorld()
  const [mine, theirs] = [await issue(world, 1), await issue(world, 2)]
  inside(world, theirs).write('draft', 'not mine\n')
  const record = readFileSync(join(mine.path, '.git'), 'utf8').slice('gitdir: '.length).trim()
  // What an agent in the first worktree can write, with its own directory in place and with it gone.
  writeFileSync(join(theirs.path, '.git'), `gitdir: ${record}\n`)
  writeFileSync(join(record, 'gitdir'), `${join(theirs.path, '.git')}\n`)
  for (const gone of [false, true]) {
    if (gone) renameSync(mine.path, `${mine.path}.aside`)
    await listWithFacts(world.context, world.codebase)
    const outcome = await remove(world, await row(world, mine), { force: true }).catch(() => undefined)
    expect(outcome?.outcome).not.toBe('removed')
    expect(inside(world, theirs).read('draft')).toBe('not mine\n')
    expect(await row(world, theirs)).toMatchObject({ path: theirs.path, status: 'active' })
  }
})

describe('worktrees that were moved with mv to where another one was', () => {
  /** A letter is a worktree; what became of each: where its directory went, `-` for deleted. */
  const stories: readonly { readonly what: string; readonly moved: string; readonly unlinked?: string }[] = [
    { what: 'three that changed places in a circle', moved: 'bca' },
    { what: 'two pairs that changed places, beside one without its .git file', moved: 'badce', unlinked: 'e' },
    { what: 'a row of three, each one place further', moved: '-ab' },
  ]

  test.for(stories)('keep their branches when doctor’s advice is followed: $what', async ({ moved, unlinked }) => {
    await using world = await makeWorld()
    const made: IsolatedEnvironment[] = []
    for (const [index] of moved.split('').entries()) {
      const environment = await issue(world, index + 1)
      inside(world, environment).commit('file', environment.branch)
      inside(world, environment).write('precious', environment.branch)
      made.push(environment)
    }
    const placeOf = (letter: string): string => made[letter.charCodeAt(0) - 97]?.path ?? ''
    if (unlinked !== undefined) rmSync(join(placeOf(unlinked), '.git'))
    for (const { path } of made) renameSync(path, `${path}.t`)
    for (const [index, to] of moved.split('').entries()) {
      if (to === '-') rmSync(`${made[index]?.path}.t`, { recursive: true })
      else renameSync(`${made[index]?.path}.t`, placeOf(to))
    }

    for (let round = 0; round < 5 && (await followAdvice(world)) > 0; round++);
    const left = (await examineCodebase(world.context, world.codebase)).filter(({ state }) => state === 'problem')
    expect(left.map(({ detail }) => detail)).toEqual(
      moved.startsWith('-') ? [`issue-1 is missing: ${made[0]?.path} doesn't exist`] : [],
    )
    for (const environment of made.slice(moved.startsWith('-') ? 1 : 0)) {
      const now = inside(world, await row(world, environment))
      expect([now.git('branch', '--show-current'), now.read('precious')]).toEqual([
        environment.branch,
        environment.branch,
      ])
      expect(now.git('status', '--porcelain')).toBe('?? precious')
    }
  })

  /** How many commands were followed. */
  const followAdvice = async ({ context, codebase, box }: World): Promise<number> => {
    let followed = 0
    for (const finding of await examineCodebase(context, codebase)) {
      const command =
        remedyIn(finding)
          .split(/: (?=git |printf |mv )/)
          .at(-1) ?? ''
      if (finding.state === 'problem' && /^(?:git|printf|mv) /.test(command) && !command.includes('<new path>')) {
        spawnSync('sh', ['-c', command], { cwd: box.root })
        followed += 1
      }
    }
    await reconcile(context, codebase)
    return followed
  }
})
