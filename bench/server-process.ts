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

/** The server as an installed package runs it: in its own process, with its own home. */
export type ServerProcess = {
  readonly child: ChildProcess
  readonly url: string
  /** With the token. */
  get(path: string): Promise<string>
  stop(): Promise<void>
}

/** A home with a registered repository and its environments, closed so that a server can open it. */
export const createPopulatedHome = async (
  stage: Stage,
  populate: (world: World) => Promise<void>,
): Promise<{ readonly root: string } & Disposable> => {
  if (!existsSync(built)) throw new Error('dist/ is missing: run `npm run build` first')
  const world = await stage.world(3_000)
  await populate(world)
  // Makes the server use the host id of the rows.
  writeFileSync(join(world.context.home, 'host'), `${world.context.host}\n`)
  await world.context.store.close()
  return {
    root: world.root,
    [Symbol.dispose]: () => rmSync(world.root, { recursive: true, force: true, maxRetries: 5 }),
  }
}

/** Resolves as soon as `/healthz` reports that messages are accepted. */
export const startServerProcess = async (
  { box }: Stage,
  root: string,
  options: { readonly port: number; readonly nodeArguments?: readonly string[] },
): Promise<ServerProcess> => {
  const { port, nodeArguments = [] } = options
  const home = join(root, 'state')
  const temporary = join(root, 'tmp')
  mkdirSync(temporary, { recursive: true })
  const env = { ...box.env, TMPDIR: temporary, WORKTREE_BASE: join(root, 'trees'), SPARES: '0' }
  const args = [...nodeArguments, program, 'serve', '--port', `${port}`, '--home', home, '--test-platform']
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  while (!(await isHealthy(port))) {
    if (child.exitCode !== null) throw new Error(`the server exited before it was listening: ${stderr}`)
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

/** A port that nobody listens on right now. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** A plain socket detects a closed port in 0.1 ms. */
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
