import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDressed, type Dressed } from '../../../../../test/helpers/provisioned.ts'
import { writeIn } from '../../../../../test/helpers/repo.ts'
import { defaultRepoConfig } from '../../../../domain/config/repository.ts'
import { isOurAddition, keptFilesThatDiffer } from './additions.ts'
import { provisionEnvironment } from './provision.ts'

const config = { ...defaultRepoConfig, copy: ['.env', 'local/**'], link: ['cache'], keep: ['*.sqlite'] }

const makeLaid = async (): Promise<Dressed> => {
  const made = await makeDressed()
  made.repo.write('.beads/beads.db', '')
  made.repo.write('.env', 'A=1\n')
  made.repo.write('local/deep/x', 'x')
  await provisionEnvironment(made.context, made.provisioning(config))
  return made
}
const isOurs = (made: Dressed, path: string) =>
  isOurAddition(made.context, made.codebase, made.environment, config, path)
const differing = (made: Dressed) => keptFilesThatDiffer(made.context, made.codebase, made.tree, config)

describe('an addition of ours', () => {
  it('is everything that was laid and is as it was: then git sees nothing else untracked', async () => {
    await using made = await makeLaid()
    const untracked = made.box
      .raw(made.tree.path, 'ls-files', '--others', '-z')
      .split('\0')
      .filter((path) => path !== '')
    expect(untracked.sort()).toEqual(['.beads/redirect', '.env', 'cache', 'local/deep/x'])
    for (const path of untracked) expect([path, await isOurs(made, path)]).toEqual([path, true])
  })

  it('is no longer ours when its content, its target or its kind has changed', async () => {
    await using made = await makeLaid()
    const at = (path: string) => join(made.tree.path, path)
    // Same length: a comparison by size would not see it.
    writeFileSync(at('.env'), 'A=2\n')
    writeFileSync(at('.beads/redirect'), '/elsewhere\n')
    rmSync(at('cache'))
    symlinkSync('/tmp', at('cache'))
    rmSync(at('local/deep/x'))
    symlinkSync(join(made.repo.path, 'local/deep/x'), at('local/deep/x'))
    for (const path of ['.env', '.beads/redirect', 'cache', 'local/deep/x']) {
      expect([path, await isOurs(made, path)]).toEqual([path, false])
    }
  })

  it('is not ours when its source has changed or gone, since it may be the only copy', async () => {
    await using made = await makeLaid()
    made.repo.write('.env', 'A=2\n')
    rmSync(join(made.repo.path, 'local'), { recursive: true })
    expect(await isOurs(made, '.env')).toBe(false)
    expect(await isOurs(made, 'local/deep/x')).toBe(false)
  })

  it('is never a file that the config does not name, even if the checkout has the same', async () => {
    await using made = await makeLaid()
    made.repo.write('notes', 'n')
    writeIn(made.tree.path, 'notes', 'n')
    mkdirSync(join(made.tree.path, 'local/nested'))
    expect(await isOurs(made, 'notes')).toBe(false)
    expect(await isOurs(made, 'local/nested/')).toBe(false)
  })

  it('compares files larger than one read to their last byte', async () => {
    await using made = await makeDressed()
    const big = Buffer.alloc(700_000, 7)
    writeIn(made.repo.path, '.env', big)
    writeIn(made.tree.path, '.env', big)
    expect(await isOurs(made, '.env')).toBe(true)
    big[699_999] = 8
    writeIn(made.tree.path, '.env', big)
    expect(await isOurs(made, '.env')).toBe(false)
  })
})

describe('kept files that differ', () => {
  it('are none right after provisioning', async () => {
    await using made = await makeLaid()
    expect(await differing(made)).toEqual([])
  })

  it('are those that changed, and those that have no source', async () => {
    await using made = await makeLaid()
    writeIn(made.tree.path, '.env', 'A=2\n')
    writeIn(made.tree.path, 'data.sqlite', 'rows')
    writeIn(made.tree.path, 'local/new', 'n')
    writeIn(made.tree.path, 'unlisted', 'u')
    expect((await differing(made)).sort()).toEqual(['.env', 'data.sqlite', 'local/new'])
  })

  it('are not our own links, even if a glob names them', async () => {
    await using made = await makeLaid()
    const keeping = { ...config, keep: ['cac*'] }
    expect(await keptFilesThatDiffer(made.context, made.codebase, made.tree, keeping)).toEqual([])
  })

  it('are not those that git tracks: status speaks for them', async () => {
    await using made = await makeDressed()
    writeIn(made.tree.path, 'data.sqlite', 'rows')
    made.box.raw(made.tree.path, 'add', 'data.sqlite')
    expect(await differing(made)).toEqual([])
  })

  it('include a name that is not UTF-8, which cannot be compared', async () => {
    await using made = await makeDressed()
    const name = Buffer.concat([Buffer.from(`${made.tree.path}/a`), Buffer.from([0xff]), Buffer.from('.sqlite')])
    writeFileSync(name, 'x')
    // What the name looks like exists as well, the same in both places: it must not vouch for the other.
    writeIn(made.tree.path, 'a\ufffd.sqlite', 'same')
    made.repo.write('a\ufffd.sqlite', 'same')
    expect(await differing(made)).toEqual(['a\ufffd.sqlite'])
  })

  it('cannot be told when a directory cannot be read', async () => {
    await using made = await makeLaid()
    // Deeper than a path may be long: unreadable by its full name for everybody, root included.
    const half = Array.from({ length: 12 }, () => 'd'.repeat(200))
    const [upper, lower] = [join(made.tree.path, 'local', ...half), join(made.tree.path, 'lower')]
    mkdirSync(upper, { recursive: true })
    mkdirSync(join(lower, ...half), { recursive: true })
    renameSync(lower, join(upper, 'lower'))
    await expect(differing(made)).rejects.toThrow(/ENAMETOOLONG/)
    renameSync(join(upper, 'lower'), lower)
  })

  it('cannot be told when the tree is not there, or git cannot say what it tracks', async () => {
    await using made = await makeLaid()
    writeFileSync(join(made.tree.gitDir, 'index'), 'broken')
    await expect(differing(made)).rejects.toMatchObject({ code: 'git-failed' })
    rmSync(made.tree.path, { recursive: true })
    expect(existsSync(made.tree.path)).toBe(false)
    await expect(differing(made)).rejects.toThrow(/ENOENT/)
  })
})
