import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../../../test/helpers/provisioned.ts'
import { writeIn } from '../../../../../test/helpers/repo.ts'
import { copyFiles } from './copy-files.ts'
import { said } from '../../../../../test/helpers/words.ts'

const read = (...parts: string[]): string => readFileSync(join(...parts), 'utf8')

describe('copying into a new tree', () => {
  it('brings ignored and untracked files that a glob names, with their modes, and no others', async () => {
    await using made = await makeDressed({ prepare: (repo) => void repo.commit('.gitignore', '.env*\nsecrets/\n') })
    const { repo, tree, context } = made
    repo.write('.env', 'A=1\n')
    repo.write('notes.txt', 'untracked\n')
    repo.write('other.txt', 'not named\n')
    repo.write('secrets/deep/key', 'k')
    chmodSync(join(repo.path, 'secrets'), 0o700)
    chmodSync(join(repo.path, 'secrets/deep/key'), 0o600)
    writeIn(repo.path, 'run.sh', '#!/bin/sh\n')
    chmodSync(join(repo.path, 'run.sh'), 0o755)
    const { notices } = await copyFiles(context, made.provisioning({ copy: ['.env*', 'notes.txt', 'secrets', '*.sh'] }))
    expect(notices).toEqual([])
    expect(read(tree.path, '.env')).toBe('A=1\n')
    expect(read(tree.path, 'notes.txt')).toBe('untracked\n')
    expect(read(tree.path, 'secrets/deep/key')).toBe('k')
    expect(statSync(join(tree.path, 'secrets')).mode & 0o777).toBe(0o700)
    expect(statSync(join(tree.path, 'secrets/deep/key')).mode & 0o777).toBe(0o600)
    expect(statSync(join(tree.path, 'run.sh')).mode & 0o777).toBe(0o755)
    expect(existsSync(join(tree.path, 'other.txt'))).toBe(false)
    expect(readdirSync(tree.path).filter((name) => name.startsWith('.coppice'))).toEqual([])
  })

  it('finds files at any depth with **', async () => {
    await using made = await makeDressed()
    made.repo.write('a/b/.env', '1')
    made.repo.write('.env', '2')
    await copyFiles(made.context, made.provisioning({ copy: ['**/.env'] }))
    expect(read(made.tree.path, 'a/b/.env')).toBe('1')
    expect(read(made.tree.path, '.env')).toBe('2')
  })

  it('leaves a file alone that is there already, so that doing it twice is harmless', async () => {
    await using made = await makeDressed()
    made.repo.write('.env', 'from the checkout')
    writeIn(made.tree.path, '.env', 'of the user')
    await copyFiles(made.context, made.provisioning({ copy: ['.env'] }))
    await copyFiles(made.context, made.provisioning({ copy: ['.env'] }))
    expect(read(made.tree.path, '.env')).toBe('of the user')
  })

  it('does not bring what the checkout tracks, edited or not', async () => {
    await using made = await makeDressed()
    made.repo.git('checkout', '-q', '-b', 'later')
    made.repo.commit('settings.json', '{}')
    made.repo.write('settings.json', 'edited')
    await copyFiles(made.context, made.provisioning({ copy: ['settings.json'] }))
    expect(existsSync(join(made.tree.path, 'settings.json'))).toBe(false)
  })

  it('does not fill in a file that the branch tracks but does not have on disk', async () => {
    await using made = await makeDressed({ prepare: (repo) => void repo.commit('local.conf', 'tracked') })
    const { repo, tree } = made
    repo.git('rm', '-q', '--cached', 'local.conf')
    repo.git('commit', '-q', '-m', 'no longer tracked')
    rmSync(join(tree.path, 'local.conf'))
    await copyFiles(made.context, made.provisioning({ copy: ['local.conf'] }))
    expect(existsSync(join(tree.path, 'local.conf'))).toBe(false)
  })

  it('is not led out of the tree by a directory that the branch tracks as a link', async () => {
    await using made = await makeDressed()
    const { box, repo, tree } = made
    const outside = box.path('outside')
    mkdirSync(outside)
    symlinkSync(outside, join(tree.path, 'config'))
    box.raw(tree.path, 'add', 'config')
    box.raw(tree.path, 'commit', '-q', '-m', 'a trap')
    repo.write('config/env', 'secret')
    const { notices } = await copyFiles(made.context, made.provisioning({ copy: ['config/env'] }))
    expect(readdirSync(outside)).toEqual([])
    expect(said(notices)).toEqual(['Not copied: config/env would go through config, which is not a real directory.'])
  })

  it('is not led out of the tree by a link deeper down, nor into .git', async () => {
    await using made = await makeDressed()
    const { repo, tree } = made
    mkdirSync(join(tree.path, 'a'))
    symlinkSync(tree.gitDir, join(tree.path, 'a/b'))
    repo.write('a/b/c/hook', 'x')
    const { notices } = await copyFiles(made.context, made.provisioning({ copy: ['a/**'] }))
    expect(existsSync(join(tree.gitDir, 'c'))).toBe(false)
    expect(notices).toHaveLength(1)
  })

  it('copies a link as a link if it stays inside, and leaves one that leads out', async () => {
    await using made = await makeDressed()
    const { box, repo, tree } = made
    writeFileSync(box.path('private'), 'private')
    repo.write('real', 'x')
    symlinkSync('real', join(repo.path, 'l-inside'))
    symlinkSync('../private', join(repo.path, 'l-above'))
    symlinkSync(box.path('private'), join(repo.path, 'l-absolute'))
    symlinkSync(join(repo.path, 'real'), join(repo.path, 'l-into-checkout'))
    symlinkSync('.git/config', join(repo.path, 'l-git'))
    symlinkSync(box.root, join(repo.path, 'out'))
    symlinkSync('out/private', join(repo.path, 'l-through'))
    const { notices } = await copyFiles(made.context, made.provisioning({ copy: ['l-*'] }))
    expect(readlinkSync(join(tree.path, 'l-inside'))).toBe('real')
    for (const name of ['l-above', 'l-absolute', 'l-into-checkout', 'l-git', 'l-through']) {
      expect(lstatSync(join(tree.path, name), { throwIfNoEntry: false })).toBeUndefined()
      expect(said(notices)).toContain(`Not copied: ${name} is a link that leads out.`)
    }
  })

  it('does not look through a linked directory of the checkout', async () => {
    await using made = await makeDressed()
    const { box, repo, tree } = made
    mkdirSync(box.path('elsewhere'))
    writeFileSync(box.path('elsewhere', '.env'), 'not of this repository')
    symlinkSync(box.path('elsewhere'), join(repo.path, 'sub'))
    await copyFiles(made.context, made.provisioning({ copy: ['**/.env', 'sub/*'] }))
    expect(existsSync(join(tree.path, 'sub'))).toBe(false)
  })

  it('never copies .git, whatever the glob', async () => {
    await using made = await makeDressed()
    mkdirSync(join(made.repo.path, 'nested'))
    made.box.raw(join(made.repo.path, 'nested'), 'init', '-q')
    made.repo.write('nested/file', 'x')
    const before = read(made.tree.path, '.git')
    await copyFiles(made.context, made.provisioning({ copy: ['.g*', 'nested'] }))
    expect(read(made.tree.path, '.git')).toBe(before)
    expect(readdirSync(join(made.tree.path, 'nested'))).toEqual(['file'])
  })

  it('throws away what a crash left of a copy', async () => {
    await using made = await makeDressed()
    made.repo.write('.env', 'whole')
    const left = join(made.tree.path, `.coppice-laying-${made.environment.id}`)
    writeFileSync(left, 'wh')
    await copyFiles(made.context, made.provisioning({ copy: ['.env'] }))
    expect(read(made.tree.path, '.env')).toBe('whole')
    expect(existsSync(left)).toBe(false)
  })

  it('tells of a name that is not UTF-8 instead of copying something else', async () => {
    await using made = await makeDressed()
    writeFileSync(Buffer.concat([Buffer.from(`${made.repo.path}/bad-`), Buffer.from([0xff])]), 'x')
    const { notices } = await copyFiles(made.context, made.provisioning({ copy: ['bad-*'] }))
    expect(said(notices)).toEqual([expect.stringMatching(/not UTF-8/)])
  })

  it('takes the files of a bare repository from the shared area, and none when nobody made it', async () => {
    await using made = await makeDressed({ codebase: { checkoutPath: undefined } })
    expect(await copyFiles(made.context, made.provisioning({ copy: ['.env'] }))).toEqual({ notices: [], copied: 0 })
    writeIn(join(made.context.home, 'shared/project/files'), '.env', 'shared')
    await copyFiles(made.context, made.provisioning({ copy: ['.env'] }))
    expect(read(made.tree.path, '.env')).toBe('shared')
  })

  it('starts no git when nothing is to be copied', async () => {
    await using made = await makeDressed()
    await copyFiles(made.context, made.provisioning())
    await copyFiles(made.context, made.provisioning({ copy: ['.env'] }))
    expect(made.context.git.spawned()).toBe(0)
  })
})
