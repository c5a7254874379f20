import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../../../test/helpers/provisioned.ts'
import { writeIn } from '../../../../../test/helpers/repo.ts'
import { isOurLink, makeLinks } from './links.ts'
import { said } from '../../../../../test/helpers/words.ts'

describe('links into the shared area', () => {
  it('point into the home, never into the checkout, and all environments share them', async () => {
    await using made = await makeDressed()
    made.repo.write('node_modules/x', 'of the checkout')
    const two = await made.another('issue-43')
    const config = { link: ['node_modules', 'build/cache'] }
    expect(await makeLinks(made.context, made.provisioning(config))).toEqual({ linked: 2, notices: [] })
    expect(await makeLinks(made.context, made.provisioning(config, two))).toEqual({ linked: 2, notices: [] })
    const shared = join(made.context.home, 'shared/project/links')
    expect(readlinkSync(join(made.tree.path, 'node_modules'))).toBe(join(shared, 'node_modules'))
    expect(readlinkSync(join(two.tree.path, 'build/cache'))).toBe(join(shared, 'build/cache'))
    writeIn(join(made.tree.path, 'node_modules'), 'y', 'made in one')
    expect(readFileSync(join(two.tree.path, 'node_modules/y'), 'utf8')).toBe('made in one')
    expect(existsSync(join(made.repo.path, 'node_modules/y'))).toBe(false)
  })

  it('are made once: the second time nothing changes and nothing is told', async () => {
    await using made = await makeDressed()
    await makeLinks(made.context, made.provisioning({ link: ['cache'] }))
    expect(await makeLinks(made.context, made.provisioning({ link: ['cache'] }))).toEqual({ linked: 0, notices: [] })
    expect(await isOurLink(made.context, made.codebase, made.tree.path, 'cache')).toBe(true)
  })

  it('do not replace what the branch tracks or what is there', async () => {
    await using made = await makeDressed({ prepare: (repo) => void repo.commit('vendor/lib.c', 'x') })
    mkdirSync(join(made.tree.path, 'out'))
    const { notices } = await makeLinks(made.context, made.provisioning({ link: ['vendor', 'README', 'out'] }))
    expect(said(notices)).toEqual([
      'Not linked: vendor is tracked by git on this branch.',
      'Not linked: README is tracked by git on this branch.',
      'Not linked: out already exists.',
    ])
    expect(lstatSync(join(made.tree.path, 'vendor')).isDirectory()).toBe(true)
    expect(lstatSync(join(made.tree.path, 'out')).isDirectory()).toBe(true)
    expect(await isOurLink(made.context, made.codebase, made.tree.path, 'out')).toBe(false)
  })

  it('are not made through a directory that the branch tracks as a link', async () => {
    await using made = await makeDressed()
    const outside = made.box.path('outside')
    mkdirSync(outside)
    symlinkSync(outside, join(made.tree.path, 'packages'))
    const { notices } = await makeLinks(made.context, made.provisioning({ link: ['packages/cache'] }))
    expect(readdirSync(outside)).toEqual([])
    expect(said(notices)).toEqual([
      'Not linked: packages/cache would go through packages, which is not a real directory.',
    ])
  })

  it('do not make directories where an agent has bent the shared area', async () => {
    await using made = await makeDressed()
    const outside = made.box.path('outside')
    mkdirSync(outside)
    mkdirSync(join(made.context.home, 'shared/project/links'), { recursive: true })
    symlinkSync(outside, join(made.context.home, 'shared/project/links/a'))
    const making = makeLinks(made.context, made.provisioning({ link: ['a/b'] }))
    await expect(making).rejects.toMatchObject({ code: 'path-outside-root' })
    expect(readdirSync(outside)).toEqual([])
  })
})
