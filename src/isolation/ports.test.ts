import { createServer, type Server } from 'node:net'
import { describe, expect, it } from 'vitest'
import { makeDressed } from '../../test/helpers/provisioned.ts'
import { isPortFree, leasePorts, portVariables } from './ports.ts'

const listen = (host: string, port = 0): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, host, () => resolve(server))
  })
const portOf = (server: Server): number => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
const close = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))

describe('ports', () => {
  it('are leased for each name, kept on the second time, and unique across environments', async () => {
    await using made = await makeDressed()
    const two = await made.another('issue-43')
    await leasePorts(made.context, made.environment, ['PORT', 'DB_PORT'])
    const first = await portVariables(made.context, made.environment)
    await leasePorts(made.context, made.environment, ['PORT', 'DB_PORT'])
    expect(await portVariables(made.context, made.environment)).toEqual(first)
    await leasePorts(made.context, two.environment, ['PORT', 'DB_PORT'])
    const second = await portVariables(made.context, two.environment)
    expect(Object.keys(first).sort()).toEqual(['DB_PORT', 'PORT'])
    expect(new Set([...Object.values(first), ...Object.values(second)]).size).toBe(4)
  })

  it('go around a port that a program listens on', async () => {
    await using made = await makeDressed()
    await leasePorts(made.context, made.environment, ['PORT'])
    const wanted = Number((await portVariables(made.context, made.environment))['PORT'])
    await made.context.store.ports.release(made.environment.id)
    const server = await listen('127.0.0.1', wanted)
    try {
      await leasePorts(made.context, made.environment, ['PORT'])
      expect((await portVariables(made.context, made.environment))['PORT']).not.toBe(String(wanted))
    } finally {
      await close(server)
    }
  })

  it('go around a port that another environment has leased without listening on it', async () => {
    await using made = await makeDressed()
    const two = await made.another('issue-43')
    await leasePorts(made.context, made.environment, ['PORT'])
    const wanted = Number((await portVariables(made.context, made.environment))['PORT'])
    await made.context.store.ports.release(made.environment.id)
    await made.context.store.ports.lease('here', wanted, two.environment.id, 'PORT', 1)
    await leasePorts(made.context, made.environment, ['PORT'])
    expect((await portVariables(made.context, made.environment))['PORT']).not.toBe(String(wanted))
  })

  it('go around a port that another process leases between our look and our lease', async () => {
    await using made = await makeDressed()
    const two = await made.another('issue-43')
    await leasePorts(made.context, made.environment, ['PORT'])
    const wanted = Number((await portVariables(made.context, made.environment))['PORT'])
    const { store } = made.context
    await store.ports.release(made.environment.id)
    await store.ports.lease('here', wanted, two.environment.id, 'PORT', 1)
    // What was taken is read too early to see it.
    const early = { ...made.context, store: { ...store, ports: { ...store.ports, taken: () => Promise.resolve([]) } } }
    await leasePorts(early, made.environment, ['PORT'])
    const got = (await portVariables(made.context, made.environment))['PORT']
    expect(got).toMatch(/^\d+$/)
    expect(got).not.toBe(String(wanted))
  })

  it.each(['127.0.0.1', '0.0.0.0', '::', '::1'])('are not free while somebody listens on %s', async (host) => {
    const server = await listen(host)
    const port = portOf(server)
    expect(await isPortFree(port)).toBe(false)
    await close(server)
    expect(await isPortFree(port)).toBe(true)
  })
})
