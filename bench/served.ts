import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import type { Stage, World } from './stage.ts'

const program = fileURLToPath(new URL('../bin/coppice.js', import.meta.url))
const built = fileURLToPath(new URL('../dist/main.js', import.meta.url))

/** The server as an installed package runs it: a process of its own, on a home of its own. */
export type Served = {
  readonly child: ChildProcess
  readonly url: string
  /** With the token. */
  get(path: string): Promise<string>
  stop(): Promise<void>
}

/** A home with a registered repository and so many environments, closed again: whoever serves it opens it. */
export const furnishedHome = async (
  stage: Stage,
  furnish: (world: World) => Promise<void>,
): Promise<{ readonly root: string } & Disposable> => {
  if (!existsSync(built)) throw new Error('dist/ is missing: run `npm run build` first')
  const world = await stage.world(3_000)
  await furnish(world)
  // The server finds itself on the host that the rows are of.
  writeFileSync(join(world.context.home, 'host'), `${world.context.host}\n`)
  await world.context.store.close()
  return {
    root: world.root,
    [Symbol.dispose]: () => rmSync(world.root, { recursive: true, force: true, maxRetries: 5 }),
  }
}

/** Answers at the moment in which `/healthz` says that messages are accepted. */
export const startServed = async (
  { box }: Stage,
  root: string,
  options: { readonly port: number; readonly nodeArguments?: readonly string[] },
): Promise<Served> => {
  const { port, nodeArguments = [] } = options
  const home = join(root, 'state')
  const temporary = join(root, 'tmp')
  mkdirSync(temporary, { recursive: true })
  const env = { ...box.env, TMPDIR: temporary, WORKTREE_BASE: join(root, 'trees'), SPARES: '0' }
  const args = [...nodeArguments, program, 'serve', '--port', `${port}`, '--home', home, '--test-platform']
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let complaints = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints += chunk.toString()
  })
  while (!(await isHealthy(port))) {
    if (child.exitCode !== null) throw new Error(`the server ended before it listened: ${complaints}`)
    await delay(1)
  }
  const url = `http://127.0.0.1:${port}`
  const token = (): string => readFileSync(join(home, 'token'), 'utf8').trim()
  return {
    child,
    url,
    get: async (path) => {
      const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token()}` } })
      return answer.text()
    },
    stop: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}

/** One that nobody listens on at the moment. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** By a plain socket: nobody listening is known in a tenth of a millisecond. */
const isHealthy = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`),
    )
    socket.on('data', (chunk) => {
      resolve(chunk.toString('latin1').startsWith('HTTP/1.1 200'))
      socket.destroy()
    })
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(false))
  })
