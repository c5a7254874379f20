import { remedy, shell } from '../domain/remedy.ts'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { asOrdinaryUser } from '../../test/helpers/ordinary-user.ts'
import { mainTree, makeSandbox, type Sandbox, type TestRepo } from '../../test/helpers/repo.ts'
import { convertedFiles } from './converted.ts'
import { countChanges } from './count-changes.ts'
import { discoverRepository } from './discover.ts'
import { readIndexState } from './hidden.ts'
import { createInspector } from './inspect.ts'
import { readStatus } from './status.ts'
import { isUntouchedByStat } from './untouched.ts'

const fifo = (path: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  execFileSync('mkfifo', [path])
}

const scene = (): { box: Sandbox; repo: TestRepo } => {
  const box = makeSandbox()
  const repo = box.repo()
  repo.commit('deep/down/file', 'x\n')
  return { box, repo }
}

describe.concurrent('a FIFO that git would wait for is named, and git is ended:', () => {
  test.each(['.gitattributes', '.gitignore', 'deep/down/.gitignore', 'new/.gitignore', '.git/info/exclude'])(
    'git status and %s',
    async (name) => {
      const { box, repo } = scene()
      using _ = box
      // Where a tracked file has another time than the index says, attributes are read.
      repo.write('README', 'hello\n')
      fifo(join(repo.path, name))
      const git = box.git()
      const message = expect.stringMatching(new RegExp(`${name} is a FIFO, which would block git`)) as string
      await expect(readStatus(git, mainTree(repo))).rejects.toMatchObject({ code: 'unusable-file', message })
      await expect(countChanges(git, mainTree(repo))).rejects.toMatchObject({ code: 'unusable-file', message })
      expect(git.running.size).toBe(0)
    },
    20_000,
  )

  test('the other questions about files', async () => {
    const { box, repo } = scene()
    using _ = box
    repo.git('update-index', '--assume-unchanged', 'deep/down/file')
    repo.write('README', 'hello\n')
    repo.write('deep/down/file', 'y\n')
    fifo(join(repo.path, '.gitattributes'))
    const git = box.git()
    const named = '.gitattributes is a FIFO'
    await Promise.all([
      expect(convertedFiles(git, mainTree(repo))).rejects.toThrow(named),
      expect(readIndexState(git, mainTree(repo))).rejects.toThrow(named),
    ])
    // Whether it has to read the file depends on how young the index is: it says "touched" or names the FIFO.
    const untouched = await isUntouchedByStat(git, mainTree(repo)).catch((error: Error) => error.message)
    expect([false, expect.stringContaining(named)]).toContainEqual(untouched)
  }, 20_000)

  test('but one in the way of nobody is no obstacle', async () => {
    const { box, repo } = scene()
    using _ = box
    repo.commit('.gitignore', 'ignored\n')
    fifo(join(repo.path, 'ignored/.gitignore'))
    expect((await readStatus(box.git(), mainTree(repo))).ignored.map(({ path }) => path)).toEqual(['ignored/'])
  })

  test('a cancelled question is cancelled, whatever lies there', async () => {
    const { box, repo } = scene()
    using _ = box
    fifo(join(repo.path, 'deep/.gitignore'))
    const signal = AbortSignal.timeout(50)
    await expect(readStatus(box.git(), mainTree(repo), { signal })).rejects.toMatchObject({ code: 'cancelled' })
  })
})

/** What an agent can lay for git to open, and the words by which the error names it. */
const traps: Record<string, (place: { repo: TestRepo; box: Sandbox }) => string> = {
  'a ref': ({ repo }) => join(repo.commonDir, 'refs/heads/x'),
  'a loose object': ({ repo }) => {
    const sha = repo.sha()
    return join(repo.commonDir, 'objects', sha.slice(0, 2), sha.slice(2))
  },
  'a file in a directory whose name is not UTF-8': ({ repo }) => {
    const directory = Buffer.concat([Buffer.from(join(repo.commonDir, 'refs/heads/')), Buffer.from([0xff])])
    mkdirSync(directory)
    fifo(join(repo.commonDir, 'refs/heads/moved'))
    renameSync(join(repo.commonDir, 'refs/heads/moved'), Buffer.concat([directory, Buffer.from('/inner')]))
    return ''
  },
  'a file of a borrowed object store': ({ repo, box }) => {
    writeFileSync(join(repo.commonDir, 'objects/info/alternates'), `${box.path('borrowed')}\n`)
    return box.path('borrowed/info/alternates')
  },
  'an included file': ({ repo, box }) => {
    repo.git('config', 'include.path', box.path('included'))
    return box.path('included')
  },
  'a file that an included file includes': ({ repo, box }) => {
    writeFileSync(box.path('outer'), '[INCLUDE]\n\tpath = "inner"\n')
    repo.git('config', 'includeIf.gitdir:/.path', box.path('outer'))
    return box.path('inner')
  },
  'a file behind a link': ({ repo, box }) => {
    symlinkSync(box.path('elsewhere'), join(repo.commonDir, 'shallow'))
    return box.path('elsewhere')
  },
  'the record of another worktree': ({ repo }) => {
    const other = repo.worktree('other', '-b', 'other')
    return join(other.gitDir, 'gitdir')
  },
  "the user's own configuration": ({ box }) => join(box.home, '.gitconfig'),
}

describe.concurrent('git is not started on a directory with a FIFO in it:', () => {
  test.each(Object.keys(traps))('%s', async (name) => {
    const { box, repo } = scene()
    using _ = box
    const git = box.git()
    const place = traps[name]?.({ repo, box }) ?? ''
    if (place !== '') fifo(place)
    const started = git.spawned()
    const request = { operation: 'for-each-ref', at: repo, args: ['for-each-ref'] }
    await expect(git.run(request)).rejects.toMatchObject({
      code: 'unusable-file',
      message: expect.stringMatching(/is a FIFO/) as string,
    })
    // To learn what a file includes, git reads that file and nothing else.
    expect(git.spawned() - started).toBeLessThanOrEqual(name.includes('include') ? 2 : 0)
  })

  test('nor is it when it would find a repository by itself', async () => {
    const { box, repo } = scene()
    using _ = box
    const git = box.git()
    mkdirSync(box.path('plain/below'), { recursive: true })
    fifo(box.path('plain/HEAD'))
    await expect(discoverRepository(git, box.path('plain/below'))).rejects.toThrow(/plain\/HEAD is a FIFO/)
    const tree = repo.worktree('linked', '-b', 'linked')
    fifo(join(tree.gitDir, 'HEAD'))
    await expect(discoverRepository(git, tree.path)).rejects.toThrow(/HEAD is a FIFO/)
  })

  test.each(['config', 'HEAD', 'index', 'packed-refs', 'refs/heads/main', 'info/exclude', 'shallow'])(
    'nor with a %s of 1 GB',
    async (name) => {
      const { box, repo } = scene()
      using _ = box
      const git = box.git()
      const path = join(repo.commonDir, name)
      writeFileSync(path, '')
      truncateSync(path, 2 ** 30)
      const request = { operation: 'status', at: mainTree(repo), args: ['status'] }
      await expect(git.run(request)).rejects.toMatchObject({
        code: 'unusable-file',
        message: expect.stringMatching(/too large/) as string,
      })
      expect(git.spawned()).toBe(0)
    },
  )

  test('links that lead in circles or nowhere are no obstacle', async () => {
    const { box, repo } = scene()
    using _ = box
    for (const name of ['a', 'b', 'c']) symlinkSync('..', join(repo.commonDir, 'refs', name))
    symlinkSync('/nowhere', join(repo.commonDir, 'description-of-nothing'))
    expect((await box.git().run({ operation: 'x', at: repo, args: ['rev-parse', 'HEAD'] })).stdout).toContain(
      repo.sha(),
    )
  })
})

/** What an agent can make thousands of. */
const many: Record<string, (path: string) => void> = {
  links: (path) => symlinkSync('.', path),
  refs: (path) => writeFileSync(path, ''),
  directories: (path) => mkdirSync(path),
}

const fill = (repo: TestRepo, what: string, count: number): void => {
  mkdirSync(join(repo.commonDir, 'refs/heads/many'))
  for (let i = 0; i < count; i += 1) many[what]?.(join(repo.commonDir, 'refs/heads/many', `${i}`))
}

describe('a repository with far too much in it', () => {
  // Each is listed; a ref is measured; a link is followed; a directory, linked or not, is noted and visited.
  test.each([
    ['refs', 2],
    ['directories', 3],
    ['links', 4],
  ])('lets everything else go on while it is looked at: %s', async (what, steps) => {
    const { box, repo } = scene()
    using _ = box
    fill(repo, what, 300)
    let turns = 0
    const next = async (): Promise<void> => void (turns += 1)
    await createInspector(() => ({ isOver: () => true, next })).inspect({ gitDirs: [repo.commonDir] })
    expect(turns).toBeGreaterThanOrEqual(steps * 300)
    // And nothing twice, however many links lead to it.
    expect(turns).toBeLessThan((steps + 1) * 300)
  })

  test('is not looked at for ever', async () => {
    const { box, repo } = scene()
    using _ = box
    const { inspect } = createInspector((limit) => ({
      isOver: () => true,
      next: async () => {
        if (limit !== undefined) throw limit.error()
      },
    }))
    const gitDirs = [repo.commonDir]
    await expect(inspect({ gitDirs })).rejects.toMatchObject({
      code: 'unusable-file',
      message: `${repo.commonDir} could not be checked within 10 s`,
    })
    // A git that is slow is not ended because looking takes long, and not looked after once it has answered.
    await inspect({ gitDirs, untilAnswered: () => false })
    fifo(join(repo.commonDir, 'refs/heads/trap'))
    await expect(inspect({ gitDirs, untilAnswered: () => false })).rejects.toThrow(/is a FIFO/)
    await inspect({ gitDirs, untilAnswered: () => true })
  })

  const lines = (count: number, line: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => `${line(i)}\n`).join('')
  const config =
    (text: string) =>
    ({ commonDir }: TestRepo): void =>
      appendFileSync(join(commonDir, 'config'), text)

  test.each([
    ['1,001 links', (repo: TestRepo) => fill(repo, 'links', 1_001), /has more than 1000 symbolic links/],
    [
      '2,001 filters',
      config(lines(2_001, (i) => `[filter "${i}"]\nclean=a`)),
      /config has too many settings that name programs or credentials/,
    ],
    [
      '2,001 hooks',
      config(lines(2_001, (i) => `[hook "${i}"]\ncommand=a`)),
      /config has too many settings that name programs or credentials/,
    ],
    [
      'filters with names of half a megabyte',
      config(lines(3, (i) => `[filter "${'x'.repeat(250_000)}${i}"]\nclean=a`)),
      /config has too many settings that name programs or credentials/,
    ],
    ['40,001 settings', config(`[x]\n${lines(40_001, () => 'a')}`), /has too many settings \(limit: 40000\)/],
    [
      'settings that git lists as 1 GB',
      config(`[x "${'x'.repeat(100_000)}"]\n${lines(10_000, () => 'a')}`),
      /has too many settings/,
    ],
    ['101 includes', config(lines(101, (i) => `[include]\npath=${i}`)), /includes more than 100 files/],
  ])('is refused with a reason: %s', async (_name, make, message) => {
    const { box, repo } = scene()
    using _ = box
    make(repo)
    const git = box.git()
    await expect(git.run({ operation: 'x', at: repo, args: ['rev-parse', 'HEAD'] })).rejects.toMatchObject({
      code: 'unusable-file',
      message: expect.stringMatching(message) as string,
    })
  })

  test('is refused with a reason when a call must not identify the user', async () => {
    const { box, repo } = scene()
    using _ = box
    config(lines(2_001, (i) => `[credential "https://${i}.example"]\nhelper=a`))(repo)
    const git = box.git()
    const request = { operation: 'x', at: repo, args: ['rev-parse', 'HEAD'] }
    await expect(git.run({ ...request, anonymous: true })).rejects.toThrow(/too many settings that name programs/)
    expect((await git.run(request)).stdout).toContain(repo.sha())
  })
})

test('what changes within one tick of the clock is seen', async () => {
  const { box, repo } = scene()
  using _ = box
  const { inspect } = createInspector()
  const place = join(repo.commonDir, 'refs/heads/now-and-then')
  for (let i = 0; i < 50; i += 1) {
    await inspect({ gitDirs: [repo.commonDir] })
    execFileSync('mkfifo', [place])
    await expect(inspect({ gitDirs: [repo.commonDir] })).rejects.toThrow(/is a FIFO/)
    rmSync(place)
  }
})

test('a git that waits for what nobody can find is ended by its time limit', async () => {
  const { box, repo } = scene()
  using _ = box
  fifo(box.path('list'))
  const git = box.git({ patienceMs: 50 })
  const args = ['hash-object', box.path('list')]
  const waiting = git.run({ operation: 'hash-object', at: repo, args, timeoutMs: 500 })
  await expect(waiting).rejects.toMatchObject({ code: 'timeout' })
  expect(git.running.size).toBe(0)
})

test('git is not started where a directory may be entered and not listed, since a FIFO may be in it', () => {
  const { box, repo } = scene()
  using _ = box
  fifo(join(repo.commonDir, 'refs/hidden/x'))
  chmodSync(join(repo.commonDir, 'refs/hidden'), 0o311)
  const script = `import { createInspector } from ${JSON.stringify(join(import.meta.dirname, 'inspect.ts'))}
    await createInspector().inspect({ gitDirs: [${JSON.stringify(repo.commonDir)}] }).catch((error) => console.log(error.code, error.message, JSON.stringify(error.remedy)))`
  const [command, ...args] = [...asOrdinaryUser, process.execPath, '--input-type=module', '--eval', script]
  const path = join(repo.commonDir, 'refs/hidden')
  expect(execFileSync(command, args, { encoding: 'utf8' }).trim()).toBe(
    `unusable-file ${path} can't be listed, so git was not started ${JSON.stringify(remedy`make it readable: ${shell(`chmod u+r ${path}`)}`)}`,
  )
  chmodSync(path, 0o755)
})
