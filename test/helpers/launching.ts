import type { IsolationContext } from '../../src/isolation/context.ts'
import { providers } from '../../src/isolation/providers/registry.ts'

/** The real providers, except that each program in an environment is started with one more variable, by `env`. */
export const launchingWith = (variable: string): IsolationContext['providers'] =>
  new Map(
    [...providers].map(([name, load]) => [
      name,
      async () => ({
        ...(await load()),
        launch: (_environment, { command, args, ...program }) => ({
          ...program,
          command: 'env',
          args: [variable, command, ...args],
        }),
      }),
    ]),
  )
