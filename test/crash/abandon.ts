import type { World } from '../helpers/world.ts'
import { killAt } from './kill.ts'
import { type Operation, type OperationName, operations } from './operations.ts'
import { everyCase } from '../helpers/every-case.ts'

/**
 * Leaves the operation at the failpoint for good, as a process does that is killed there: its records name a process
 * that is dead. A process of its own would take three times as much of the machine.
 */
export const abandon = async (world: World, operation: Operation, at: string): Promise<void> => {
  const reached = Promise.withResolvers<void>()
  const context: World['context'] = {
    ...world.context,
    self: { ...world.context.self, startTime: 'of another process' },
    // A dead process holds no lock; one of this process would never be released.
    lock: { withRepositoryLock: (_commonDir, _options, work) => work() },
    failpoint: async (name) => {
      if (name !== at) return
      reached.resolve()
      await new Promise(() => undefined)
    },
  }
  const ended = operation(context, world.codebase).then(() => {
    throw new Error(`the operation ended without passing ${at}`)
  })
  await Promise.race([reached.promise, ended])
}

export const abandonAt = (world: World, operation: OperationName, at: string): Promise<void> =>
  abandon(world, operations[operation], at)

/** The crash before the one that a test is about. `npm run test:every-case` kills a process there, too. */
export const interruptAt: typeof abandonAt = everyCase ? killAt : abandonAt
