import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ProviderName } from '../../src/domain/provider-name.ts'
import { built } from '../helpers/built.ts'
import type { World } from '../helpers/world.ts'
import type { OperationName } from './operations.ts'

export type ChildOrder = {
  readonly root: string
  readonly operation: OperationName
  /** The how-manyth failpoint, or the first of that name; undefined: it is left alone. */
  readonly killAt: number | string | undefined
  readonly spares: number
  readonly isolationProvider: ProviderName
}

export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly output: string }

export const temporaryOf = ({ box }: Pick<World, 'box'>): string => box.path('tmp')

/** Starts the operation in a process of its own. `bin`: a directory of wrappers that comes first on its PATH. */
export const startChild = (
  world: World,
  order: Pick<ChildOrder, 'operation' | 'killAt'>,
  bin?: string,
): { child: ChildProcess; ended: Promise<Ended> } => {
  mkdirSync(temporaryOf(world), { recursive: true })
  const { box, context } = world
  const { spares, isolationProvider } = context.settings
  const full: ChildOrder = { root: box.root, spares, isolationProvider, ...order }
  const child = spawn(process.execPath, [built('test/crash/child.ts'), JSON.stringify(full)], {
    env: {
      ...box.env,
      TMPDIR: temporaryOf(world),
      GIT_CONFIG_NOSYSTEM: '1',
      NODE_NO_WARNINGS: '1',
      ...(bin === undefined ? {} : { PATH: `${bin}:${box.env['PATH']}` }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const ended = new Promise<Ended>((resolve) => {
    // `exit`, not `close`: a git process that outlives it may hold its pipes.
    child.once('exit', (code, signal) => resolve({ code, signal, output }))
  })
  return { child, ended }
}

/** The operation in a process that is killed at the failpoint; throws when it was not. */
export const killAt = async (world: World, operation: OperationName, at: number | string): Promise<void> => {
  const { signal, code, output } = await startChild(world, { operation, killAt: at }).ended
  if (signal !== 'SIGKILL') throw new Error(`${operation} was not killed at ${at} (exit ${code}): ${output}`)
}

/**
 * A `git` that comes first on PATH. `body` is shell; `"$REAL" "$@"` goes on with the real one. No subshells in it:
 * one would be a process of its own inside the worktree, and the gates would see it there.
 */
export const gitWrapper = (world: World, body: string): string => {
  const bin = world.box.path('bin')
  const path = world.box.env['PATH'] ?? ''
  const real = path
    .split(':')
    .map((directory) => join(directory, 'git'))
    .find((file) => existsSync(file))
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'git'), `#!/bin/sh\nPATH='${path}'\nREAL='${real}'\n${body}\n`)
  chmodSync(join(bin, 'git'), 0o755)
  return bin
}

/** Resolves when the file is there. */
export const appears = async (path: string): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const watcher = watch(dirname(path), () => {
    if (existsSync(path)) resolve()
  })
  if (existsSync(path)) resolve()
  await promise
  watcher.close()
}
