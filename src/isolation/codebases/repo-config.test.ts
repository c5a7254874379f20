import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../test/helpers/provisioned.ts'
import { writeIn } from '../../../test/helpers/repo.ts'
import { defaultRepoConfig } from '../../domain/config/repository.ts'
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
})
