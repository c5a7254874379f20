import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { examineCodebase } from '../../src/cli/doctor/records.ts'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { toWork } from '../../src/domain/work.ts'
import { resolveCodebase } from '../../src/isolation/codebases/codebases.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { type CliWorld, type EnvironmentJson, makeCliWorld, project } from '../helpers/cli.ts'
import { asOrdinaryUser } from '../helpers/ordinary-user.ts'
import type { TestRepo } from '../helpers/repo.ts'
import { makeContext } from '../helpers/world.ts'
import { remedyIn } from '../helpers/words.ts'

/** Runs a remedy as doctor prints it. Each `coppice` in it only notes its arguments, and is run with them afterwards. */
const remedyRunner = (world: CliWorld): ((command: string) => Promise<string>) => {
  const bin = world.box.path('bin')
  const noted = join(bin, 'arguments')
  mkdirSync(bin)
  writeFileSync(join(bin, 'coppice'), `#!/bin/sh\nprintf '%s\\0' "$@" '' >>'${noted}'\n`)
  chmodSync(join(bin, 'coppice'), 0o755)
  const env = { ...world.env, PATH: `${bin}:${world.env['PATH']}` }
  return async (command) => {
    rmSync(noted, { force: true })
    const { stderr } = spawnSync('sh', ['-c', command], { cwd: world.box.root, env, encoding: 'utf8' })
    const calls = existsSync(noted) ? readFileSync(noted, 'utf8').split('\0\0').slice(0, -1) : []
    for (const call of calls) {
      const { code, err } = await world.run(world.box.root, ...call.split('\0'))
      if (code !== 0) return err
    }
    return stderr
  }
}

type Doctor = {
  healthy: boolean
  fixed: string[]
  findings: { state: string; detail: string; remedy: string | null }[]
}

const problems = ({ findings }: Doctor): Doctor['findings'] => findings.filter(({ state }) => state === 'problem')

const create = (world: CliWorld, repo: TestRepo, branch: string): Promise<EnvironmentJson> =>
  world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', branch)

describe('a repository that was deleted', () => {
  test('is told by every command in the same words, and the way out keeps files and restore points', async () => {
    using world = makeCliWorld()
    const repo = project(world)
    const other = world.box.repo('other')
    await create(world, other, 'fine')
    const { path } = await create(world, repo, 'rd')
    await create(world, repo, 'old')
    writeFileSync(join(path, 'precious'), 'uncommitted')
    await world.json(repo.path, 0, 'worktree', 'remove', 'old', '--force')
    rmSync(repo.path, { recursive: true })

    const commands: readonly (readonly string[])[] = [
      ['worktree', 'list'],
      ['worktree', 'remove', 'rd', '--force'],
      ['worktree', 'restore'],
      ['worktree', 'create', 'another'],
      ['status'],
      ['cleanup'],
    ]
    for (const words of commands) {
      const { code, err } = await world.run(path, '--codebase', 'project', ...words)
      expect({ words, code, err }).toEqual({
        words,
        code: 1,
        err: expect.stringMatching(
          /the repository of project is gone: .* doesn't exist.*coppice codebase remove project/s,
        ),
      })
    }
    expect((await world.run(path, 'status')).err).toContain('the repository of project is gone')

    const doctor = await world.json<Doctor>(world.box.root, 1, 'doctor', '--fix')
    expect(doctor.fixed).toEqual([])
    expect(problems(doctor)).toMatchObject([
      { detail: `the repository of project is gone: ${repo.path} doesn't exist` },
    ])
    // The others are cleaned all the same.
    const swept = await world.run(world.box.root, 'cleanup')
    expect(swept.out + swept.err).toContain('the repository of project is gone')

    const released = await world.json(world.box.root, 0, 'codebase', 'remove', 'project')
    expect(released).toMatchObject({ released: [{ branch: 'rd', path }], restorePoints: 1 })
    expect(readFileSync(join(path, 'precious'), 'utf8')).toBe('uncommitted')
    expect(readdirSync(join(world.home, 'restore'))).toHaveLength(1)
    expect(problems(await world.json<Doctor>(world.box.root, 0, 'doctor'))).toEqual([])
  })

  test('that only cannot be read, or whose disk is away, needs --force', async () => {
    using world = makeCliWorld()
    mkdirSync(world.box.path('disk'))
    const repo = world.box.repo('disk/project')
    const { path } = await create(world, repo, 'rd')
    // A mount point that shows another file system instead of its own.
    const namespace = [
      'unshare',
      '--mount',
      'sh',
      '-c',
      `mount -t tmpfs none ${world.box.path('disk')} && exec "$@"`,
      'sh',
    ]
    world.through.push(...namespace)
    const refused = await world.run(world.box.root, 'codebase', 'remove', 'project')
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('its disk may not be mounted') })
    expect(refused.err).toContain('coppice codebase remove project --force')
    expect((await world.run(world.box.root, 'doctor')).out).toContain('its disk may not be mounted')
    world.through.length = 0
    // A directory above it that may not be entered hides it just as well.
    chmodSync(world.box.path('disk'), 0o000)
    world.through.push(...asOrdinaryUser)
    const unseen = await world.run(world.box.root, 'codebase', 'remove', 'project')
    chmodSync(world.box.path('disk'), 0o755)
    world.through.length = 0
    expect(unseen).toMatchObject({ code: 1, err: expect.stringMatching(/can't be read at .*EACCES/) })
    expect(unseen.err).toContain('coppice codebase remove project --force')
    expect(await world.json<EnvironmentJson[]>(repo.path, 0, 'worktree', 'list')).toMatchObject([{ branch: 'rd' }])
    world.through.push(...namespace)
    const forced = await world.json(world.box.root, 0, 'codebase', 'remove', 'project', '--force')
    expect(forced).toMatchObject({ released: [{ branch: 'rd', path }] })
    expect(existsSync(path)).toBe(true)
  })
})

describe('doctor names a remedy that works', () => {
  const record = (repo: TestRepo, { path }: { readonly path: string }): string =>
    join(repo.commonDir, 'worktrees', path.split('/').at(-1) ?? '')
  type Break = (dir: string, path: string, world: CliWorld) => void
  const faults: readonly [string, Break][] = [
    ['a record without HEAD', (dir) => rmSync(join(dir, 'HEAD'))],
    ['a record with garbage in HEAD', (dir) => writeFileSync(join(dir, 'HEAD'), 'garbage\n')],
    ['a record without gitdir', (dir) => rmSync(join(dir, 'gitdir'))],
    ['a record with garbage in gitdir', (dir) => writeFileSync(join(dir, 'gitdir'), 'garbage\n')],
    [
      'a FIFO in place of gitdir',
      (dir) => {
        rmSync(join(dir, 'gitdir'))
        spawnSync('mkfifo', [join(dir, 'gitdir')])
      },
    ],
    [
      'a directory in place of HEAD',
      (dir) => {
        rmSync(join(dir, 'HEAD'))
        mkdirSync(join(dir, 'HEAD'))
      },
    ],
    ['a record without commondir', (dir) => rmSync(join(dir, 'commondir'))],
    ['a record with garbage in commondir', (dir) => writeFileSync(join(dir, 'commondir'), '/nowhere\n')],
    ['a record that is gone', (dir) => rmSync(dir, { recursive: true })],
    ['a record with another token', (dir) => writeFileSync(join(dir, 'coppice'), 'somebody-else\n')],
    ['a record without its token', (dir) => rmSync(join(dir, 'coppice'))],
    ['a directory without its .git file', (_, path) => rmSync(join(path, '.git'))],
    ['a .git file with garbage in it', (_, path) => writeFileSync(join(path, '.git'), 'garbage\n')],
    [
      'a .git file that leads to another repository',
      (_, path, world) => {
        writeFileSync(join(path, '.git'), `gitdir: ${world.box.repo('evil').commonDir}\n`)
      },
    ],
    [
      'a .git file copied from another worktree',
      (_, path) => copyFileSync(join(dirname(path), 'first/.git'), join(path, '.git')),
    ],
    [
      'a repository in place of the .git file',
      (_, path, world) => {
        rmSync(join(path, '.git'))
        world.box.raw(path, 'init', '-q')
      },
    ],
    [
      'both sides of the link broken',
      (dir, path) => {
        rmSync(join(dir, 'gitdir'))
        rmSync(join(path, '.git'))
      },
    ],
    [
      'a worktree moved with git',
      (_, path, world) => {
        world.box.raw(world.box.path('project'), 'worktree', 'move', path, `${path}-moved`)
      },
    ],
    [
      'a missing and locked one',
      (_, path, world) => {
        world.box.raw(world.box.path('project'), 'worktree', 'lock', '--reason', 'on a stick', path)
        renameSync(path, world.box.path('stick'))
      },
    ],
    [
      'a missing one without a record',
      (dir, path) => {
        rmSync(dir, { recursive: true })
        rmSync(path, { recursive: true })
      },
    ],
    [
      "a stranger's missing and locked one",
      (_, path, world) => {
        const theirs = world.box.path('theirs')
        world.box.raw(world.box.path('project'), 'worktree', 'add', '-q', '--lock', '-b', 'theirs', theirs)
        rmSync(theirs, { recursive: true })
        rmSync(join(path, '.git'))
      },
    ],
    [
      "a stranger's record that git cannot read",
      (dir) => {
        mkdirSync(join(dirname(dir), 'half'))
        writeFileSync(join(dirname(dir), 'half', 'gitdir'), '/nowhere/.git\n')
      },
    ],
    ['an index that is a FIFO', (dir) => fifo(join(dir, 'index'))],
    ["the repository's HEAD missing", (dir) => rmSync(join(dir, '../../HEAD'))],
    ["the repository's HEAD a FIFO", (dir) => fifo(join(dir, '../../HEAD'))],
    ["the repository's index a FIFO", (dir) => fifo(join(dir, '../../index'))],
    ["the repository's packed-refs a FIFO", (dir) => fifo(join(dir, '../../packed-refs'))],
    ["the repository's config a FIFO", (dir) => fifo(join(dir, '../../config'))],
  ]

  const fifo = (path: string): void => {
    rmSync(path, { force: true })
    spawnSync('mkfifo', [path])
  }

  test('for every way in which a git record can be broken', async () => {
    using world = makeCliWorld()
    const repo = project(world)
    await create(world, repo, 'first')
    // The same home, looked at from here: nineteen rounds through the command line would take a minute.
    const host = readFileSync(join(world.home, 'host'), 'utf8').trim()
    const context = await makeContext(world.box, { host, worktreesBase: join(world.home, 'worktrees') })
    await using _ = { [Symbol.asyncDispose]: () => context.store.close() }
    const codebase = await resolveCodebase(context, { cwd: repo.path })
    const look = async () => (await examineCodebase(context, codebase)).filter(({ state }) => state !== 'ok')
    const provider = createEnvironments(context)
    const runRemedy = remedyRunner(world)
    for (const [index, [name, break_]] of faults.entries()) {
      const request = { codebase, work: toWork('issue', String(index + 1)), hints: {}, createdBy: 'test', aliases: [] }
      const made = await provider.create(request)
      if (made.outcome !== 'created') throw new Error(made.outcome)
      const { path } = made.environment
      writeFileSync(join(path, 'precious'), name)
      // What earlier rounds left to the user is worth a note, and stays so.
      const known = new Set((await look()).map(({ detail }) => detail))
      break_(record(repo, made.environment), path, world)
      // A FIFO also keeps doctor from looking at the records of others, and that is told too.
      const isNew = (finding: Finding): boolean =>
        !known.has(finding.detail) && remedyIn(finding) !== 'fix that, then run `coppice doctor` again'
      const found = (await look()).filter(isNew)
      expect({ name, found: found.length }).toEqual({ name, found: name.startsWith("a stranger's missing") ? 2 : 1 })
      const says = name.includes('token') ? /has lost its mark|is of another worktree/ : /./
      expect({ name, detail: found[0]?.detail }).toEqual({ name, detail: expect.stringMatching(says) })
      const apply = async (one: (typeof found)[number]): Promise<string> => {
        // The last of several ways; each ends with its command.
        const command =
          remedyIn(one)
            .split(/: (?=coppice |git |printf |mv |rm )/)
            .at(-1) ?? ''
        return `${command}\n${await runRemedy(command)}`
      }
      const tried: string[] = []
      for (const one of found) tried.push(await apply(one))
      // One that says so itself takes a second look.
      if (found.some(({ remedy }) => remedy?.includes('doctor` again'))) {
        for (const one of (await look()).filter(isNew)) tried.push(await apply(one))
      }
      const left = (await look()).filter(({ state }) => state === 'problem')
      expect({ name, left, tried: left.length === 0 ? [] : tried }).toEqual({ name, left: [], tried: [] })
      expect({ name, unlocks: tried.some((text) => text.includes('worktree unlock')) }).toEqual({
        name,
        unlocks: name.includes('locked'),
      })
      const kept = [path, `${path}-moved`, world.box.path('stick')].filter((at) => existsSync(join(at, 'precious')))
      expect({ name, kept: kept.length }).toEqual({ name, kept: name === 'a missing one without a record' ? 0 : 1 })
      // Out of the way of the next.
      for (const at of ['stick', 'evil']) rmSync(world.box.path(at), { recursive: true, force: true })
    }
  }, 60_000)

  test('and says "fixed" only of what it has fixed', async () => {
    using world = makeCliWorld()
    const repo = project(world)
    const made = await create(world, repo, 'b')
    rmSync(join(made.path, '.git'))
    const doctor = await world.json<Doctor>(world.box.root, 1, 'doctor', '--fix')
    expect(doctor.fixed).toEqual([])
    expect(problems(doctor)).toHaveLength(1)
    world.box.raw(repo.path, 'worktree', 'repair')
    world.box.raw(repo.path, 'worktree', 'move', made.path, `${made.path}-2`)
    expect(await world.json<Doctor>(world.box.root, 0, 'doctor', '--fix')).toMatchObject({
      healthy: true,
      fixed: [`project: b was moved to ${made.path}-2: using it there`],
    })
    expect(await world.json<Doctor>(world.box.root, 0, 'doctor', '--fix')).toMatchObject({ fixed: [] })
  })
})

describe('adopting one of our own', () => {
  test('by its path or its branch keeps the promise that it is not deleted', async () => {
    using world = makeCliWorld()
    const repo = project(world)
    for (const [issue, byPath] of [
      ['7', true],
      ['8', false],
    ] as const) {
      const branch = `issue-${issue}`
      const { path } = await world.json<EnvironmentJson>(repo.path, 0, 'worktree', 'create', '--issue', issue)
      const adopted = await world.run(repo.path, 'worktree', 'adopt', byPath ? path : branch)
      expect(adopted.out).toContain("Coppice won't delete")
      const gone = await world.run(repo.path, 'worktree', 'remove', branch, '--force')
      expect(gone).toMatchObject({
        code: 0,
        out: expect.stringContaining(`Stopped tracking ${branch}. Its files are still at`),
      })
      expect(existsSync(path)).toBe(true)
    }
  })
})

test('a locked and missing worktree: removing it says how to unlock it', async () => {
  using world = makeCliWorld()
  const repo = project(world)
  const { path } = await create(world, repo, 'b')
  world.box.raw(repo.path, 'worktree', 'lock', '--reason', 'on a stick', path)
  rmSync(path, { recursive: true })
  const refused = await world.run(repo.path, 'worktree', 'remove', 'b', '--force')
  expect(refused).toMatchObject({ code: 3, err: expect.stringContaining('locked by another tool: on a stick') })
  expect(refused.err).toMatch(/git -C .* worktree unlock .*b/)
  const again = await world.run(repo.path, 'worktree', 'create', 'b')
  expect(again).toMatchObject({ code: 1, err: expect.stringMatching(/locked by another tool.*worktree unlock/s) })
})
