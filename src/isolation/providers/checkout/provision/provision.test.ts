import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../../../test/helpers/provisioned.ts'
import { provisionEnvironment } from './provision.ts'
import { portVariables } from '../../../ports.ts'

const approving = { approve: () => Promise.resolve(true) }

describe('provisioning an environment', () => {
  it('runs setup when everything else is there, and twice is harmless', async () => {
    await using made = await makeDressed({ context: approving })
    made.repo.write('.beads/beads.db', '')
    made.repo.write('.env', 'A=1')
    const config = {
      copy: ['.env'],
      link: ['cache'],
      ports: ['PORT'],
      setup: ['cat .beads/redirect .env && test -d cache && test -n "$PORT" && echo ran >> runs'],
    }
    expect(await provisionEnvironment(made.context, made.provisioning(config))).toEqual({
      copied: 1,
      linked: 1,
      ranSetup: true,
      notices: [],
    })
    const ports = await portVariables(made.context, made.environment)
    expect(await provisionEnvironment(made.context, made.provisioning(config))).toEqual({
      copied: 0,
      linked: 0,
      ranSetup: true,
      notices: [],
    })
    expect(await portVariables(made.context, made.environment)).toEqual(ports)
    expect(readFileSync(join(made.tree.path, 'runs'), 'utf8')).toBe('ran\nran\n')
  })

  it('starts no program for a repository that asks for nothing', async () => {
    await using made = await makeDressed()
    expect(await provisionEnvironment(made.context, made.provisioning())).toEqual({
      copied: 0,
      linked: 0,
      ranSetup: false,
      notices: [],
    })
    expect(made.context.git.spawned()).toBe(0)
  })

  it('brings submodules, unless the config says not to', async () => {
    await using made = await makeDressed({
      prepare: (repo) => {
        repo.git('clone', '-q', '--bare', repo.path, `${repo.path}-library.git`)
        repo.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', `${repo.path}-library.git`, 'library')
        repo.git('commit', '-q', '-m', 'a submodule')
      },
    })
    await provisionEnvironment(made.context, made.provisioning({ submodules: false }))
    expect(existsSync(join(made.tree.path, 'library/README'))).toBe(false)
    await provisionEnvironment(made.context, made.provisioning())
    await provisionEnvironment(made.context, made.provisioning())
    expect(existsSync(join(made.tree.path, 'library/README'))).toBe(true)
  })

  it('fails when a submodule cannot be had, and setup does not run', async () => {
    await using made = await makeDressed({
      context: approving,
      prepare: (repo) => {
        repo.write('.gitmodules', '[submodule "gone"]\n\tpath = gone\n\turl = /nowhere/gone.git\n')
        repo.git('add', '.gitmodules')
        repo.git('update-index', '--add', '--cacheinfo', `160000,${repo.sha()},gone`)
        repo.git('commit', '-q', '-m', 'a submodule that is nowhere')
      },
    })
    const provisioning = provisionEnvironment(made.context, made.provisioning({ setup: ['touch ran'] }))
    await expect(provisioning).rejects.toMatchObject({ code: 'submodules-failed' })
    expect(existsSync(join(made.tree.path, 'ran'))).toBe(false)
  })
})
