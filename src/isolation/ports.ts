import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { AppError } from '../domain/errors.ts'
import type { IsolatedEnvironment } from '../domain/environment.ts'
import type { EnvironmentId } from '../domain/names.ts'
import type { IsolationContext } from './context.ts'

/** Below 32768, where Linux starts its ephemeral port range. */
const firstPort = 20_000
const portCount = 12_000

/** Leases a free port for each name without one. A leased port stays: a server may be listening on it. */
export const leasePorts = async (
  context: Pick<IsolationContext, 'store' | 'clock' | 'host'>,
  environment: IsolatedEnvironment,
  names: readonly string[],
): Promise<void> => {
  if (names.length === 0) return
  const have = new Set((await context.store.ports.ofEnvironment(environment.id)).map(({ name }) => name))
  for (const name of names) if (!have.has(name)) await leaseOne(context, environment.id, name)
}

/** Variables for every program in the environment. */
export const portVariables = async (
  context: Pick<IsolationContext, 'store'>,
  environment: Pick<IsolatedEnvironment, 'id'>,
): Promise<Record<string, string>> => {
  const leased = await context.store.ports.ofEnvironment(environment.id)
  return Object.fromEntries(leased.map(({ name, port }) => [name, String(port)]))
}

/** Starts at a different port for each environment, so that two processes rarely try the same one. */
const leaseOne = async (
  { store, host, clock }: Pick<IsolationContext, 'store' | 'clock' | 'host'>,
  id: EnvironmentId,
  name: string,
): Promise<void> => {
  const taken = new Set(await store.ports.taken(host))
  const start = createHash('sha256').update(`${id} ${name}`).digest().readUInt32BE() % portCount
  for (let step = 0; step < portCount; step++) {
    const port = firstPort + ((start + step) % portCount)
    if (taken.has(port) || !(await isPortFree(port))) continue
    if (await store.ports.lease(host, port, id, name, clock())) return
  }
  throw new AppError('busy', `no port from ${firstPort} to ${firstPort + portCount - 1} is free for ${name}`, {
    remedy: 'remove worktrees that you no longer need',
  })
}

/** Binding `::` also detects 0.0.0.0 on most systems, but not everywhere a server on 127.0.0.1 alone. */
export const isPortFree = async (port: number): Promise<boolean> =>
  (await canListen('127.0.0.1', port)) && (await canListen('::', port))

const canListen = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false)
      // No IPv6 on this machine, so nothing listens there.
      else if (host === '::' && (error.code === 'EAFNOSUPPORT' || error.code === 'EADDRNOTAVAIL')) resolve(true)
      else reject(error)
    })
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)))
  })
