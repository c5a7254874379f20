import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Codebase } from '../../src/domain/environment.ts'
import { isAppError } from '../../src/domain/errors.ts'
import { toBranchName, toCodebaseId, toCodebaseName } from '../../src/domain/names.ts'
import { taskWork, toWork, type WorkType, workTypes } from '../../src/domain/work.ts'
import { findEnvironment, findRestorePoint } from '../../src/isolation/find.ts'
import { expireRestorePoints } from '../../src/isolation/reconcile.ts'
import { pathCandidates } from '../../src/isolation/paths.ts'
import { makeWorld, type World } from '../helpers/world.ts'
import { everyCase } from '../helpers/every-case.ts'
import { ask, fingerprint, issue, removed } from '../isolation/scene.ts'

const runs = 50

/** Where every try costs a fetch or a checkout: those that look like options, paths or commands. */
const few = 17

/** What has broken programs like this one before; `@` stands for a command that leaves a mark. */
const corpus = [
  '--upload-pack=@',
  '-u@',
  '--output=/etc/x',
  '-c core.sshCommand=@',
  'ext::sh -c "@"',
  '../../outside',
  '../../../etc/passwd',
  '/etc/passwd',
  '~root/x',
  '$(@)',
  '`@`',
  '; @ ;',
  '| @',
  "'; @; '",
  'a\nb',
  'a\0b',
  'a\u202eb',
  '\ud800',
  'refs/heads/main',
  'refs/../../../x',
  'HEAD',
  '@',
  '@{-1}',
  'main@{upstream}',
  'main:README',
  ':/first',
  '.git',
  '.git/hooks/post-checkout',
  'a/.git/config',
  '.trash',
  '.spares',
  'x.lock',
  'con',
  'a'.repeat(300),
  '語'.repeat(90),
  '🦊',
  ' ',
  '',
  '-',
  '--',
  '--help',
  '+refs/heads/*:refs/heads/*',
  '^main',
  'main..main',
  '*',
  '[a-z]',
  '%s%n',
  '__proto__',
  'constructor',
]

type Trap = {
  readonly world: World
  readonly mark: string
  readonly hostile: (text: string) => string
  readonly check: () => void
}

/** A world in which anything outside the managed root and Coppice's home that changes is noticed. */
const trap = async (): Promise<Trap> => {
  const world = await makeWorld({ remote: true, settings: { worktreesPerCodebase: 1000 } })
  const { box } = world
  world.repo.git('push', '-q', 'origin', 'main:refs/pull/7/head')
  mkdirSync(box.path('outside'))
  writeFileSync(box.path('outside', 'precious'), 'precious\n')
  const mark = box.path('marked')
  const isOurs = (path: string): boolean => {
    const way = relative(box.root, path)
    return (
      way === 'state' ||
      way === 'trees' ||
      /^project\/\.git\/(?!config$|hooks|HEAD$|index$|refs\/heads\/main$)/.test(way)
    )
  }
  const before = fingerprint(box.root, isOurs)
  return {
    world,
    mark,
    hostile: (text) => text.replaceAll('@', `touch ${mark}`),
    check: () => {
      if (existsSync(mark)) throw new Error('a command of the input was run')
      expect(fingerprint(box.root, isOurs)).toBe(before)
    },
  }
}

/** A refusal is one of ours, with a code and a sentence; anything else is a fault of the program. */
const refusedOrDone = async (what: () => Promise<unknown>): Promise<void> => {
  try {
    await what()
  } catch (error) {
    if (!isAppError(error) || error.code === 'unexpected') throw error
    expect(error.message).not.toBe('')
  }
}

/** What a validator makes of a name; undefined when it refuses it as one. */
const accepted = <T>(make: () => T): T | undefined => {
  try {
    return make()
  } catch (error) {
    if (isAppError(error, 'name-invalid')) return undefined
    throw error
  }
}

const anyText = fc.oneof(
  fc.constantFrom(...corpus),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.tuple(fc.constantFrom(...corpus), fc.constantFrom(...corpus)).map(([a, b]) => `${a}/${b}`),
)

const everyInput = async (property: fc.IAsyncProperty<[string]>): Promise<void> =>
  fc.assert(property, { numRuns: runs, examples: corpus.map((text): [string] => [text]), endOnFailure: true })

describe('hostile input changes nothing outside the managed root and runs nothing:', { timeout: 180_000 }, () => {
  test('as a branch to create', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    await everyInput(
      fc.asyncProperty(anyText, async (text) => {
        await refusedOrDone(async () => {
          const branch = toBranchName(hostile(text))
          const answer = await ask(world, 'task', text, { branch })
          if (answer.outcome === 'resolved') await removed(world, answer.environment)
        })
      }),
    )
    check()
    expect(world.repo.git('for-each-ref', '--format=%(refname)', 'refs/heads')).toBe('refs/heads/main')
  })

  test('as the id of every kind of work', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    for (const type of workTypes) {
      // A thread's id is hashed before it names anything, and each makes a tree.
      for (const text of type === 'thread' ? corpus.slice(0, 4) : corpus) {
        await refusedOrDone(() => ask(world, type, hostile(text)))
      }
    }
    check()
  })

  test('as hints of a pull request', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    for (const [n, text] of corpus.slice(0, few).map(hostile).entries()) {
      // Each of these makes a worktree: in turn, and with `npm run test:every-case` all of them with each text.
      const branches = [
        { prBranch: text },
        { prBranch: 'x', suggestedBranch: text },
        { isForkPR: true, prBranch: text },
      ].filter((_, kind) => everyCase || kind === n % 3)
      for (const hints of [{ isForkPR: true, prSha: text }, ...branches]) {
        await refusedOrDone(async () => {
          const answer = await ask(world, 'pr', 7, { hints })
          if (answer.outcome === 'resolved') await removed(world, answer.environment, { force: true })
        })
      }
    }
    check()
  })

  test('as linked numbers', async () => {
    const { world, check } = await trap()
    await using _ = world
    for (const number of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1e21]) {
      await refusedOrDone(() => ask(world, 'issue', 5, { hints: { linkedIssues: [number], linkedPRs: [number] } }))
    }
    check()
  })

  test('as a base', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    await everyInput(
      fc.asyncProperty(anyText, async (text) => {
        await refusedOrDone(async () => {
          const answer = await ask(world, 'issue', 1, { base: hostile(text) })
          if (answer.outcome === 'resolved') await removed(world, answer.environment)
        })
      }),
    )
    check()
  })

  test('as the name of a remote', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    for (const [n, text] of corpus.slice(0, few).map(hostile).entries()) {
      const codebase: Codebase = { ...world.codebase, remote: text }
      await refusedOrDone(() => ask(world, 'pr', 7, { codebase, hints: { isForkPR: true } }))
      // Not removed: a removal goes by the repository as it is stored.
      await refusedOrDone(() => ask(world, 'issue', n + 1, { codebase }))
    }
    check()
  })

  test('as the URL of a remote: neither ext:: nor a host that is an option runs anything', async () => {
    const { world, mark, check } = await trap()
    await using _ = world
    for (const url of [
      `ext::sh -c "touch ${mark}"`,
      `ssh://-oProxyCommand=touch\${IFS}${mark}/x`,
      `-u touch ${mark}`,
      `--upload-pack=touch ${mark}`,
    ]) {
      world.repo.git('config', 'remote.origin.url', url)
      await refusedOrDone(() => ask(world, 'pr', 7, { hints: { isForkPR: true } }))
      await refusedOrDone(() => ask(world, 'issue', 8))
    }
    world.repo.git('config', 'remote.origin.url', world.box.path('origin.git'))
    if (existsSync(mark)) throw new Error('a command of a URL was run')
    check()
  })

  test('as a path to adopt', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    symlinkSync(world.repo.path, world.box.path('state', 'link'))
    for (const text of [
      ...corpus.map(hostile),
      '/',
      world.box.root,
      world.repo.commonDir,
      world.box.path('state/link'),
    ]) {
      await refusedOrDone(() => world.provider.adopt(world.codebase, text, { createdBy: 'test', aliases: [] }))
    }
    expect(await world.context.store.environments.live(world.codebase.id)).toEqual([])
    check()
  })

  test('as a reference to an environment or a restore point', async () => {
    const { world, hostile, check } = await trap()
    await using _ = world
    await removed(world, await issue(world, 1))
    await everyInput(
      fc.asyncProperty(anyText, async (text) => {
        await refusedOrDone(() => findEnvironment(world.context, world.codebase, hostile(text), world.box.root))
        await refusedOrDone(() => findRestorePoint(world.context, world.codebase, hostile(text), world.box.root))
      }),
    )
    check()
  })

  test('as ids of rows that a damaged database would give', async () => {
    const { world, check } = await trap()
    await using _ = world
    const { restorePoint } = await removed(world, await issue(world, 1))
    for (const id of ['../../outside', '../outside', '..', '/outside', '-rf']) {
      await world.context.store.restorePoints.insert({
        ...restorePoint,
        id,
        expiresAt: 1,
        ref: `refs/coppice/restore/${id}`,
      })
    }
    await refusedOrDone(() => expireRestorePoints(world.context, world.codebase))
    check()
  })
})

describe('a link that leads out', () => {
  test('from the managed root is not followed', async () => {
    const { world, check } = await trap()
    await using _ = world
    mkdirSync(world.context.worktreesBase)
    symlinkSync(world.box.path('outside'), join(world.context.worktreesBase, 'project'))
    await expect(issue(world, 1)).rejects.toMatchObject({ code: 'path-outside-root' })
    check()
  })

  test('from a branch does not take copied files, links or the redirect out', async () => {
    const { world } = await trap()
    await using _ = world
    world.repo.commit('.gitignore', '.env\nsub/local\n')
    world.repo.commit('.coppice/config.yaml', 'worktree:\n  copy: ["sub/local"]\n  link: ["sub/cache"]\n')
    world.repo.git('push', '-q', 'origin', 'main')
    world.repo.git('switch', '-q', '-c', 'issue-1')
    symlinkSync(world.box.path('outside'), join(world.repo.path, 'sub'))
    symlinkSync(world.box.path('outside'), join(world.repo.path, '.beads'))
    world.repo.git('add', 'sub', '.beads')
    world.repo.git('commit', '-q', '-m', 'a trap')
    world.repo.git('switch', '-q', 'main')
    world.repo.write('sub/local', 'secret\n')
    world.repo.write('.beads/db', 'store\n')
    await issue(world, 1)
    expect(existsSync(world.box.path('outside', 'local'))).toBe(false)
    expect(existsSync(world.box.path('outside', 'cache'))).toBe(false)
    expect(existsSync(world.box.path('outside', 'redirect'))).toBe(false)
  })
})

describe('names', () => {
  test('that pass make a path of exactly one entry below the codebase, whatever they are', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const branch = accepted(() => toBranchName(text))
        if (branch === undefined) return
        for (const path of pathCandidates('/root', 'code', branch)) {
          const leaf = relative('/root/code', path)
          expect(leaf).not.toMatch(/^\.|^-|\/|\0/)
          expect(Buffer.byteLength(leaf)).toBeLessThanOrEqual(255)
        }
      }),
      { numRuns: 2000, examples: corpus.map((text): [string] => [text]) },
    )
  })

  test('of codebases are one plain entry', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(accepted(() => toCodebaseName(text)) ?? 'refused').toMatch(/^[A-Za-z0-9][\w.-]*$/)
      }),
      { numRuns: 2000, examples: corpus.map((text): [string] => [text]) },
    )
  })

  test('of tasks always make a branch', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }), (text) => {
        if (text.trim() === '') return
        expect(toBranchName(`task-${taskWork(text).id}`)).toMatch(/^task-[a-z0-9-]+$/)
      }),
      { numRuns: 2000 },
    )
  })

  test('of unknown kinds of work are refused', () => {
    for (const id of corpus) {
      for (const type of ['issue', 'pr', 'review'] as WorkType[]) {
        expect(() => toWork(type, id)).toThrow(expect.objectContaining({ code: 'name-invalid' }))
      }
    }
  })
})

test('a codebase of that name cannot be registered twice under one directory', async () => {
  await using world = await makeWorld()
  const twin = { ...world.codebase, id: toCodebaseId('twin') }
  expect(await world.context.store.codebases.insert(twin)).toBe(false)
})
