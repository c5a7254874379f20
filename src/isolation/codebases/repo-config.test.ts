import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../test/helpers/provisioned.ts'
import { writeIn } from '../../../test/helpers/repo.ts'
import { makeWorld } from '../../../test/helpers/world.ts'
import { defaultRepoConfig } from '../../domain/config/repository.ts'
import { baseAndConfig, currentConfig } from './base-and-config.ts'
import { loadRepoConfig } from './repo-config.ts'

describe("the repository's own settings", () => {
  it('come from the base commit, neither from the branch nor from the checkout', async () => {
    await using made = await makeDressed()
    const { box, repo, tree, context, codebase } = made
    const base = repo.commit('.coppice/config.yaml', 'worktree:\n  setup: echo base\n')
    repo.write('.coppice/config.yaml', 'worktree:\n  setup: echo half edited\n')
    writeIn(tree.path, '.coppice/config.yaml', 'worktree:\n  setup: echo branch\n')
    box.raw(tree.path, 'add', '-A')
    box.raw(tree.path, 'commit', '-q', '-m', 'a trap')
    expect(await loadRepoConfig(context, codebase, base)).toEqual({ ...defaultRepoConfig, setup: ['echo base'] })
  })

  it('are the defaults when the base commit has none', async () => {
    await using made = await makeDressed()
    expect(await loadRepoConfig(made.context, made.codebase, made.repo.sha())).toEqual(defaultRepoConfig)
  })

  it('are an error that names file, commit and key when they are wrong', async () => {
    await using made = await makeDressed()
    const base = made.repo.commit('.coppice/config.yaml', 'worktree:\n  setpu: npm ci\n')
    const loading = loadRepoConfig(made.context, made.codebase, base)
    await expect(loading).rejects.toMatchObject({ code: 'config-invalid' })
    await expect(loading).rejects.toThrow(`.coppice/config.yaml (at ${base.slice(0, 7)}) line 2`)
    await expect(loading).rejects.toThrow('worktree.setpu')
  })

  it('are an error, not the defaults, when the commit cannot be read or the file is not text', async () => {
    await using made = await makeDressed()
    const nowhere = 'd'.repeat(40) as ReturnType<typeof made.repo.sha>
    await expect(loadRepoConfig(made.context, made.codebase, nowhere)).rejects.toMatchObject({ code: 'git-failed' })
    const base = made.repo.commit('.coppice/config.yaml', Buffer.from([0xff, 0xfe, 0x00]))
    await expect(loadRepoConfig(made.context, made.codebase, base)).rejects.toMatchObject({ code: 'config-invalid' })
  })

  it.each([
    ['', []],
    ['worktree:\n  setup: echo kept\n', ['echo kept']],
  ])('are recorded with their commit, so that the next process starts no git (%j)', async (text, setup) => {
    await using world = await makeWorld()
    const { context, repo } = world
    if (text !== '') repo.commit('.coppice/config.yaml', text)
    const load = async (): Promise<[setup: readonly string[], processes: number]> => {
      const codebase = (await context.store.codebases.get(world.codebase.id)) ?? world.codebase
      const before = context.git.spawned()
      const config = await loadRepoConfig({ ...context, repoConfigs: new Map() }, codebase, repo.sha())
      return [config.setup, context.git.spawned() - before]
    }
    expect((await load())[0]).toEqual(setup)
    expect(await load()).toEqual([setup, 0])
    repo.commit('.coppice/config.yaml', 'worktree:\n  setup: echo changed\n')
    expect((await load())[0]).toEqual(['echo changed'])
    repo.git('rm', '-q', '.coppice/config.yaml')
    repo.git('commit', '-q', '-m', 'none')
    expect((await load())[0]).toEqual([])
  })

  it.each([false, true])(
    'are read again only after the base has moved (remote: %s), loose or packed',
    async (remote) => {
      await using world = await makeWorld({ remote })
      const { context, repo } = world
      const commit = (setup: string): void => {
        repo.commit('.coppice/config.yaml', `worktree:\n  setup: ${setup}\n`)
        if (remote) repo.git('push', '-q', 'origin', 'main')
      }
      const asked = async (): Promise<[setup: readonly string[], processes: number]> => {
        const codebase = (await context.store.codebases.get(world.codebase.id)) ?? world.codebase
        const before = context.git.spawned()
        const { setup = [] } = (await currentConfig(context, codebase)) ?? {}
        return [setup, context.git.spawned() - before]
      }
      await baseAndConfig(context, world.codebase)
      commit('echo one')
      await asked()
      expect((await asked())[0]).toEqual(['echo one'])
      expect(await asked()).toEqual([['echo one'], 0])
      repo.git('pack-refs', '--all')
      await asked()
      expect(await asked()).toEqual([['echo one'], 0])
      commit('echo two')
      expect((await asked())[0]).toEqual(['echo two'])
      expect(await asked()).toEqual([['echo two'], 0])
    },
  )

  it('are not waited for while only the remote knows the base', async () => {
    await using world = await makeWorld()
    const before = world.context.git.spawned()
    const codebase = { ...world.codebase, remote: 'origin', baseBranch: undefined }
    expect(await currentConfig(world.context, codebase)).toBeUndefined()
    expect(world.context.git.spawned()).toBe(before)
  })
})
