import { execFileSync } from 'node:child_process'
import { linkSync, lstatSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mainTree, makeSandbox, type Sandbox, writeIn } from '../../test/helpers/repo.ts'
import { countChanges } from './count-changes.ts'
import { readIndexState } from './hidden.ts'
import { scanIndex } from './index-scan.ts'
import { readStatus } from './status.ts'
import { joinTreePath } from './tree-path.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())
const names = (entries: readonly { path: string }[]): string[] => entries.map(({ path }) => path)

describe('status', () => {
  it('is empty in a clean tree', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'x')
    const clean = { headSha: repo.sha(), branch: 'x', changed: [], unmerged: [], untracked: [], ignored: [] }
    expect(await readStatus(box.git(), tree)).toEqual(clean)
  })

  it('tells staged, unstaged, untracked and ignored files apart, spaces and newlines in names included', async () => {
    const repo = box.repo()
    repo.commit('a b', '1')
    repo.commit('.gitignore', '*.log\nbuild/\n')
    repo.write('a b', '2')
    repo.write('new\nline', 'x')
    repo.write('dir/deep/file', 'x')
    repo.write('x.log', 'x')
    repo.write('build/out', 'x')
    repo.write('staged', 'x')
    repo.git('add', 'staged')
    const status = await readStatus(box.git(), mainTree(repo))
    expect(status.changed).toEqual([
      expect.objectContaining({ path: 'a b', staged: false, unstaged: true, submodule: false }),
      expect.objectContaining({ path: 'staged', staged: true, unstaged: false }),
    ])
    expect(names(status.untracked)).toEqual(['dir/deep/file', 'new\nline'])
    expect(names(status.ignored).sort()).toEqual(['build/', 'x.log'])
  })

  it('sees every changed and untracked file whatever the configuration says', async () => {
    const repo = box.repo()
    repo.commit('f', 'f\n')
    repo.commit('in/a', 'a\n')
    repo.git('update-index', '--add', '--cacheinfo', `160000,${repo.sha()},lib`)
    repo.git('commit', '-qm', 'lib')
    repo.write('lib', 'in place of a submodule\n')
    repo.write('README', 'edited\n')
    for (const file of ['F', 'work', 'in/A', 'In/a']) repo.write(file, 'x\n')
    // Somebody may want us to believe that the disk ignores case.
    linkSync(join(repo.path, '.git/HEAD'), join(repo.path, '.GIT'))
    const git = box.git()
    const hiding: [string, string][] = [
      ['core.bare', 'true'],
      ['core.checkStat', 'minimal'],
      ['core.fsmonitor', 'true'],
      ['core.ignoreCase', 'true'],
      ['core.ignoreStat', 'true'],
      ['core.precomposeUnicode', 'true'],
      ['core.sparseCheckout', 'true'],
      ['core.splitIndex', 'true'],
      ['core.symlinks', 'false'],
      ['core.trustctime', 'false'],
      ['core.untrackedCache', 'true'],
      ['core.worktree', box.root],
      ['diff.ignoreSubmodules', 'all'],
      ['diff.relative', 'true'],
      ['feature.manyFiles', 'true'],
      ['index.sparse', 'true'],
      ['sparse.expectFilesOutsideOfPatterns', 'true'],
      ['status.relativePaths', 'true'],
      ['status.renames', 'copies'],
      ['status.showStash', 'true'],
      ['status.showUntrackedFiles', 'no'],
      ['submodule.lib.ignore', 'all'],
    ]
    for (const setting of [['unset.key', ''], ...hiding]) {
      repo.git('config', ...setting)
      const { changed, untracked } = await readStatus(git, mainTree(repo))
      expect([setting[0], names(changed), names(untracked).sort()]).toEqual([
        setting[0],
        ['README', 'lib'],
        ['.GIT', 'F', 'In/a', 'in/A', 'work'],
      ])
      repo.git('config', '--unset', setting[0] ?? '')
    }
    repo.git('config', 'core.ignoreCase', 'true')
    expect(await countChanges(git, mainTree(repo))).toMatchObject({ changed: 2, untracked: 5 })
  })

  it('gives the bytes of a name that is not UTF-8, so that the file is found', async () => {
    const repo = box.repo()
    const bytes = Buffer.from('caf\xe9', 'latin1')
    writeFileSync(Buffer.concat([Buffer.from(`${repo.path}/`), bytes]), 'x')
    const [entry] = (await readStatus(box.git(), mainTree(repo))).untracked
    expect(entry?.bytes).toEqual(bytes)
    expect(entry && lstatSync(joinTreePath(repo.path, entry)).isFile()).toBe(true)
  })

  it('tells unmerged files', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '-b', 'x')
    writeIn(tree.path, 'README', 'theirs\n')
    box.raw(tree.path, 'commit', '-qam', 'theirs')
    repo.commit('README', 'ours\n')
    expect(() => box.raw(tree.path, 'merge', 'main')).toThrow(/Command failed/)
    expect(names((await readStatus(box.git(), tree)).unmerged)).toEqual(['README'])
  })

  it('takes no lock: the index stays as it was', async () => {
    const repo = box.repo()
    repo.write('README', 'hello\n')
    const index = join(repo.commonDir, 'index')
    const before = lstatSync(index, { bigint: true }).mtimeNs
    await readStatus(box.git(), mainTree(repo))
    expect(lstatSync(index, { bigint: true }).mtimeNs).toBe(before)
  })

  it('tells a detached HEAD and a branch without commits', async () => {
    const repo = box.repo()
    const tree = repo.worktree('w', '--detach')
    expect(await readStatus(box.git(), tree)).toMatchObject({ branch: undefined, headSha: repo.sha() })
    box.raw(box.root, 'init', '-q', 'empty')
    const path = box.path('empty')
    const empty = { commonDir: repo.commonDir, gitDir: join(path, '.git'), path }
    const at = { ...empty, commonDir: join(path, '.git') as typeof repo.commonDir }
    expect(await readStatus(box.git(), at)).toMatchObject({ branch: 'main', headSha: undefined })
  })

  it("sees a submodule's new commit, without starting a git inside it", async () => {
    const repo = box.repo()
    const library = box.repo('library')
    repo.git('submodule', '--quiet', 'add', library.path, 'lib')
    repo.git('commit', '-qm', 'lib')
    const inner = join(repo.path, 'lib')
    box.raw(inner, 'commit', '-q', '--allow-empty', '-m', 'unpushed')
    const git = box.git()
    const status = await readStatus(git, mainTree(repo))
    expect(status.changed).toEqual([expect.objectContaining({ path: 'lib', submodule: true, unstaged: true })])
  })
})

describe('hidden edits', () => {
  it.each([['--assume-unchanged'], ['--skip-worktree']])('are seen behind %s', async (flag) => {
    const repo = box.repo()
    repo.commit('b', '1')
    repo.git('update-index', flag, 'README', 'b')
    repo.write('README', 'edited\n')
    const tree = mainTree(repo)
    const git = box.git()
    expect((await readStatus(git, tree)).changed).toEqual([])
    const flags = repo.git('ls-files', '-v')
    expect(names((await readIndexState(git, tree)).hidden)).toEqual(['README'])
    expect(repo.git('ls-files', '-v')).toBe(flags)
  })

  it('are counted in an index that had no flags when it was read before', async () => {
    const repo = box.repo()
    const tree = mainTree(repo)
    const git = box.git()
    const hidden = async (): Promise<number> => (await countChanges(git, tree)).hidden
    // Only an index that is not brand new is remembered.
    await pause(60)
    expect([await hidden(), await hidden()]).toEqual([0, 0])
    repo.git('update-index', '--assume-unchanged', 'README')
    repo.write('README', 'edited\n')
    expect(await hidden()).toBe(1)
    await pause(60)
    expect(await hidden()).toBe(1)
  })

  it.each([['2'], ['3']])(
    'are seen within the second in which git looked, in an index of format %s',
    async (version) => {
      const repo = box.repo()
      repo.commit('f', 'one\n')
      repo.commit('same', 'one\n')
      if (version === '3') repo.git('update-index', '--skip-worktree', 'same')
      const write = (content: string): void => {
        repo.write('f', content)
        utimesSync(join(repo.path, 'f'), 1_500_000_000, 1_500_000_000)
      }
      const secondOf = (): bigint => lstatSync(join(repo.path, 'f'), { bigint: true }).ctimeNs / 1_000_000_000n
      // Again, where the second was over in between.
      for (let before = -1n; before !== secondOf();) {
        write('one\n')
        before = secondOf()
        repo.git('update-index', '--refresh')
        write('ONE\n')
      }
      expect(repo.git('status', '--porcelain')).toBe('')
      expect(names((await readIndexState(box.git(), mainTree(repo))).hidden)).toEqual(['f'])
      write('one\n')
      expect((await readIndexState(box.git(), mainTree(repo))).hidden).toEqual([])
    },
  )

  it('are seen where core.ignoreStat had git set the flag by itself', async () => {
    const repo = box.repo()
    repo.git('config', 'core.ignoreStat', 'true')
    repo.commit('flagged', '1')
    repo.write('flagged', 'edited\n')
    expect(repo.git('status', '--porcelain')).toBe('')
    expect(names((await readIndexState(box.git(), mainTree(repo))).hidden)).toEqual(['flagged'])
  })

  it('are seen behind both flags at once', async () => {
    const repo = box.repo()
    repo.git('update-index', '--assume-unchanged', 'README')
    repo.git('update-index', '--skip-worktree', 'README')
    repo.write('README', 'edited\n')
    expect(names((await readIndexState(box.git(), mainTree(repo))).hidden)).toEqual(['README'])
  })

  it('include a deletion behind assume-unchanged, and not the absent files of a sparse checkout', async () => {
    const repo = box.repo()
    repo.commit('in/a', '1')
    repo.commit('out/b', '1')
    repo.git('sparse-checkout', 'set', 'in')
    const git = box.git()
    expect((await readIndexState(git, mainTree(repo))).hidden).toEqual([])
    repo.git('update-index', '--assume-unchanged', 'in/a')
    rmSync(join(repo.path, 'in/a'))
    expect(names((await readIndexState(git, mainTree(repo))).hidden)).toEqual(['in/a'])
    mkdirSync(join(repo.path, 'out'), { recursive: true })
    repo.write('out/b', 'edited behind the sparse flag')
    // A file that came back is looked at by git itself, unless it is told to expect such files.
    expect(names((await readStatus(git, mainTree(repo))).changed)).toEqual(['out/b'])
    repo.git('config', 'sparse.expectFilesOutsideOfPatterns', 'true')
    expect((await readStatus(git, mainTree(repo))).changed).toEqual([])
    expect(names((await readIndexState(git, mainTree(repo))).hidden)).toEqual(['in/a', 'out/b'])
  })

  it('cost no process where the index says plainly that nothing is flagged', async () => {
    const repo = box.repo()
    const git = box.git()
    await readIndexState(git, mainTree(repo))
    const before = git.spawned()
    expect(await readIndexState(git, mainTree(repo))).toMatchObject({ hidden: [], gitlinks: [] })
    repo.git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},sub`)
    expect(names((await readIndexState(git, mainTree(repo))).gitlinks)).toEqual(['sub'])
    expect(git.spawned()).toBe(before)
  })

  it.each([
    ['a flag', ['update-index', '--skip-worktree', 'README']],
    ['another format', ['update-index', '--index-version', '4']],
    ['a split index', ['update-index', '--split-index']],
  ])('are left to git to judge with %s', (_what, args) => {
    const repo = box.repo()
    repo.commit('a/longer name', 'x')
    const isJudged = (): boolean => scanIndex(mainTree(repo))?.hasFlags === false
    expect(isJudged()).toBe(true)
    repo.git(...args)
    expect(isJudged()).toBe(false)
  })

  it('are seen in a name that is not UTF-8', async () => {
    const repo = box.repo()
    const bytes = Buffer.from('caf\xe9', 'latin1')
    const file = Buffer.concat([Buffer.from(`${repo.path}/`), bytes])
    writeFileSync(file, '1')
    repo.git('add', '.')
    repo.git('commit', '-qm', 'x')
    const stdin = Buffer.concat([bytes, Buffer.from('\0')])
    execFileSync('git', ['update-index', '--assume-unchanged', '-z', '--stdin'], {
      cwd: repo.path,
      env: box.env,
      input: stdin,
    })
    writeFileSync(file, 'edited')
    expect((await readIndexState(box.git(), mainTree(repo))).hidden.map((entry) => entry.bytes)).toEqual([bytes])
  })
})
