import { createGit } from '../../src/git/door.ts'
import { toCodebaseId } from '../../src/domain/names.ts'
import type { Sandbox } from '../helpers/repo.ts'
import { makeContext } from '../helpers/world.ts'
import { join } from 'node:path'
import { type OperationName, operations } from './operations.ts'
import type { ChildOrder } from './kill.ts'

/** A second process in a prepared world, which kills itself where it is told to. */
const main = async ({ root, operation, killAt, spares }: ChildOrder): Promise<void> => {
  let reached = 0
  const context = await makeContext(
    reopen(root),
    {
      failpoint: async (name) => {
        const wanted = typeof killAt === 'number' ? killAt === reached : killAt === name
        reached += 1
        if (!wanted) return
        process.kill(process.pid, 'SIGKILL')
        // Death takes a moment; nothing may happen in it.
        await new Promise(() => undefined)
      },
      approve: async () => true,
    },
    { settings: { spares } },
  )
  const codebase = await context.store.codebases.get(toCodebaseId('project-id'))
  if (codebase === undefined) throw new Error('there is no such world')
  await operations[operation satisfies OperationName](context, codebase)
  await context.store.close()
}

/** Only what a context is made from: this process did not make the world and will not take it down. */
const reopen = (root: string): Sandbox => {
  const env: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'LC_ALL', 'TMPDIR']) env[name] = process.env[name] ?? ''
  const never = (): never => {
    throw new Error('the child only works in the world it was given')
  }
  return {
    root,
    home: join(root, 'home'),
    env,
    git: (options) => createGit({ env, home: join(root, 'state'), now: Date.now, ...options }),
    path: (...parts) => join(root, ...parts),
    raw: never,
    repo: never,
    bare: never,
    [Symbol.dispose]: never,
  }
}

await main(JSON.parse(process.argv[2] ?? '') as ChildOrder)
