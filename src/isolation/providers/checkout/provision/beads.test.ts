import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../../../../test/helpers/provisioned.ts'
import { writeIn } from '../../../../../test/helpers/repo.ts'
import { isOurRedirect, writeBeadsRedirect } from './beads.ts'

describe('the redirect to the shared issue store', () => {
  it('names the absolute path of the store in the checkout', async () => {
    await using made = await makeDressed()
    made.repo.write('.beads/beads.db', '')
    expect(await writeBeadsRedirect(made.provisioning())).toEqual([])
    expect(await writeBeadsRedirect(made.provisioning())).toEqual([])
    expect(readFileSync(join(made.tree.path, '.beads/redirect'), 'utf8')).toBe(`${made.repo.path}/.beads\n`)
    expect(await isOurRedirect(made.codebase, made.tree.path)).toBe(true)
  })

  it('names the end of the way when the checkout is redirected itself, since beads follows only one', async () => {
    await using made = await makeDressed()
    made.repo.write('.beads/redirect', '../store/.beads\n')
    await writeBeadsRedirect(made.provisioning())
    expect(readFileSync(join(made.tree.path, '.beads/redirect'), 'utf8')).toBe(`${made.box.path('store', '.beads')}\n`)
  })

  it('is not laid when the checkout has no store', async () => {
    await using made = await makeDressed()
    await writeBeadsRedirect(made.provisioning())
    expect(existsSync(join(made.tree.path, '.beads'))).toBe(false)
  })

  it('leaves another redirect as it is and says so', async () => {
    await using made = await makeDressed()
    made.repo.write('.beads/beads.db', '')
    writeIn(made.tree.path, '.beads/redirect', '/elsewhere\n')
    expect(await writeBeadsRedirect(made.provisioning())).toHaveLength(1)
    expect(readFileSync(join(made.tree.path, '.beads/redirect'), 'utf8')).toBe('/elsewhere\n')
    expect(await isOurRedirect(made.codebase, made.tree.path)).toBe(false)
  })

  it('is not written through a .beads that the branch tracks as a link', async () => {
    await using made = await makeDressed()
    made.repo.write('.beads/beads.db', '')
    const outside = made.box.path('outside')
    mkdirSync(outside)
    symlinkSync(outside, join(made.tree.path, '.beads'))
    expect(await writeBeadsRedirect(made.provisioning())).toHaveLength(1)
    expect(readdirSync(outside)).toEqual([])
  })
})
