import { flushCompileCache } from 'node:module'
import { toCodebaseId } from '../../src/domain/names.ts'
import { reopen } from '../helpers/reopen.ts'
import { makeContext } from '../helpers/world.ts'
import { type OperationName, operations } from './operations.ts'
import type { ChildOrder } from './kill.ts'

/** A second process in a prepared world, which kills itself where it is told to. */
const main = async ({ root, operation, killAt, spares, isolationProvider }: ChildOrder): Promise<void> => {
  let reached = 0
  const context = await makeContext(
    reopen(root),
    {
      failpoint: async (name) => {
        const wanted = typeof killAt === 'number' ? killAt === reached : killAt === name
        reached += 1
        if (!wanted) return
        // A killed process saves no compiled code when it exits, and half of its start is compiling.
        flushCompileCache()
        process.kill(process.pid, 'SIGKILL')
        // Death takes a moment; nothing may happen in it.
        await new Promise(() => undefined)
      },
      approve: async () => true,
    },
    { settings: { spares, isolationProvider } },
  )
  const codebase = await context.store.codebases.get(toCodebaseId('project-id'))
  if (codebase === undefined) throw new Error('there is no such world')
  await operations[operation satisfies OperationName](context, codebase)
  await context.store.close()
}

await main(JSON.parse(process.argv[2] ?? '') as ChildOrder)
