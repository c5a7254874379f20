import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDressed, type Dressed } from '../../test/helpers/provisioned.ts'
import type { ProcessIdentity } from '../domain/process-identity.ts'
import { identifySync } from '../process/identity.ts'
import { acquireLease, dropDeadLeases, leaseHolders } from './lease.ts'
import { locked } from './lock/locked.ts'

/** A process that really ran and has really ended. */
const deadProcess = async (): Promise<ProcessIdentity> => {
  const child = spawn('sleep', ['600'])
  const identity = identifySync(child.pid ?? 0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  if (identity === undefined) throw new Error('could not read the start time')
  return identity
}

const gitLock = ({ tree }: Dressed): string | undefined => {
  const file = join(tree.gitDir, 'locked')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}
const lease = (made: Dressed, purpose: string, holder?: ProcessIdentity) =>
  acquireLease(made.context, made.codebase, made.environment, { purpose, ...(holder === undefined ? {} : { holder }) })
const rows = (made: Dressed) => made.context.store.leases.ofEnvironments([made.environment.id])
const drop = (made: Dressed) => dropDeadLeases(made.context, made.codebase)

describe('a lease', () => {
  it('is a row and a lock that git itself respects', async () => {
    await using made = await makeDressed()
    const held = await lease(made, 'agent run\nfor slack')
    expect(await rows(made)).toMatchObject([{ purpose: 'agent run\nfor slack', holder: made.context.self }])
    expect(gitLock(made)).toBe('coppice: agent run for slack')
    expect(() => made.repo.git('worktree', 'remove', made.tree.path)).toThrow(/coppice: agent run for slack/)
    await held.release()
    expect(await rows(made)).toEqual([])
    expect(gitLock(made)).toBeUndefined()
  })

  it('keeps the lock until the last one is released, in whatever order, and may be released twice', async () => {
    await using made = await makeDressed()
    const [one, two] = [await lease(made, 'one'), await lease(made, 'two')]
    await one.release()
    await one.release()
    expect(gitLock(made)).toBe('coppice: one')
    await two.release()
    expect(gitLock(made)).toBeUndefined()
  })

  it('leaves the lock of another tool as it is, before and after', async () => {
    await using made = await makeDressed()
    made.repo.git('worktree', 'lock', '--reason', 'on a usb stick', made.tree.path)
    const held = await lease(made, 'run')
    expect(await rows(made)).toHaveLength(1)
    expect(gitLock(made)).toBe('on a usb stick')
    await held.release()
    expect(gitLock(made)).toBe('on a usb stick')
  })

  it.each(['removing', 'missing', 'released'] as const)('is refused when the environment is %s', async (status) => {
    await using made = await makeDressed()
    await made.context.store.environments.transition(made.environment.id, 'active', status)
    // The caller still has the row from before.
    expect(made.environment.status).toBe('active')
    await expect(lease(made, 'run')).rejects.toMatchObject({ code: 'not-found' })
    expect(await rows(made)).toEqual([])
    expect(gitLock(made)).toBeUndefined()
  })

  it('waits for a removal that is under way and then sees what it did', async () => {
    await using made = await makeDressed()
    const inside = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const removal = locked(made.context, made.codebase, 'removing', async () => {
      inside.resolve()
      await goOn.promise
      await made.context.store.environments.transition(made.environment.id, 'active', 'removing')
    })
    await inside.promise
    const leasing = lease(made, 'run')
    goOn.resolve()
    await removal
    await expect(leasing).rejects.toMatchObject({ code: 'not-found' })
  })

  it('is refused when the directory is not there, and leaves no row', async () => {
    await using made = await makeDressed()
    rmSync(made.tree.path, { recursive: true })
    await expect(lease(made, 'run')).rejects.toMatchObject({ code: 'not-found' })
    expect(await rows(made)).toEqual([])
  })

  it('leaves no row when the lock cannot be written', async () => {
    // The row is there; now git's record goes, and with it the place for the lock.
    let gitDir = ''
    const failpoint = async (name: string): Promise<void> => {
      if (name === 'lease.recorded') rmSync(gitDir, { recursive: true })
    }
    await using made = await makeDressed({ context: { failpoint } })
    gitDir = made.tree.gitDir
    await expect(lease(made, 'run')).rejects.toThrow(/ENOENT/)
    expect(await rows(made)).toEqual([])
  })
})

describe('who holds an environment', () => {
  it('tells the living from the dead, and says that it cannot tell about another host', async () => {
    await using made = await makeDressed()
    const two = await made.another('issue-43')
    await lease(made, 'alive')
    await lease(made, 'dead', await deadProcess())
    await made.context.store.leases.insert({
      id: 'far',
      host: 'elsewhere',
      environmentId: two.environment.id,
      purpose: 'far',
      holder: await deadProcess(),
      createdAt: 1,
    })
    const holders = await leaseHolders(made.context, [made.environment.id, two.environment.id])
    const told = (id: typeof made.environment.id) =>
      holders.get(id)?.map(({ lease: { purpose }, liveness }) => [purpose, liveness])
    expect(told(made.environment.id)).toEqual([
      ['alive', 'alive'],
      ['dead', 'dead'],
    ])
    expect(told(two.environment.id)).toEqual([['far', 'cannot-tell']])
  })
})

describe('dropping dead leases', () => {
  it('drops the dead one and keeps the lock for the living one', async () => {
    await using made = await makeDressed()
    await lease(made, 'dead', await deadProcess())
    const alive = await lease(made, 'alive')
    expect(await drop(made)).toMatchObject([{ purpose: 'dead' }])
    expect(await rows(made)).toMatchObject([{ id: alive.id }])
    expect(gitLock(made)).toBe('coppice: dead')
    await alive.release()
    expect(gitLock(made)).toBeUndefined()
  })

  it('clears our lock when none is left, and twice is once', async () => {
    await using made = await makeDressed()
    await lease(made, 'dead', await deadProcess())
    expect(await drop(made)).toHaveLength(1)
    expect(gitLock(made)).toBeUndefined()
    expect(await drop(made)).toEqual([])
  })

  it('clears our lock that a crash left without a row, but never the lock of another tool', async () => {
    await using made = await makeDressed()
    const held = await lease(made, 'run')
    await made.context.store.leases.remove(held.id)
    await drop(made)
    expect(gitLock(made)).toBeUndefined()
    made.repo.git('worktree', 'lock', made.tree.path)
    await drop(made)
    expect(gitLock(made)).toBe('')
  })

  it('leaves the lock of a creation under way alone', async () => {
    await using made = await makeDressed()
    const making = await made.another('issue-44', 'creating')
    made.repo.git('worktree', 'lock', '--reason', 'coppice: making issue-44', making.tree.path)
    await drop(made)
    expect(existsSync(join(making.tree.gitDir, 'locked'))).toBe(true)
  })

  it("keeps another host's lease and its lock", async () => {
    await using made = await makeDressed()
    const held = await lease(made, 'far', await deadProcess())
    await made.context.store.leases.remove(held.id)
    const { release: _, ...row } = held
    await made.context.store.leases.insert({ ...row, host: 'elsewhere' })
    expect(await drop(made)).toEqual([])
    expect(gitLock(made)).toBe('coppice: far')
  })
})
