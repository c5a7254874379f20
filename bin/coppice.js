#!/usr/bin/env node
// Plain JavaScript for any Node since 18: it finds a runtime that is new enough and goes on in it.
// Nothing is imported above: in a Node that is new enough, that would be 5 ms for what only an old one needs.

const neededMajor = 24
const majorOf = (version) => Number(version.split('.')[0])

if (majorOf(process.versions.node) >= neededMajor) await start()
else await goOnInNewerNode()

async function start() {
  // A second start reads compiled code from the cache instead of compiling it again.
  const cache = ownCacheDirectory()
  if (cache !== undefined) process.getBuiltinModule('node:module').enableCompileCache(cache)
  if (process.env.COPPICE_PARENT_PIPE) await endWithParent()
  const built = new URL('../dist/main.js', import.meta.url)
  await import(
    process.getBuiltinModule('node:fs').existsSync(built) ? built.href : new URL('../src/main.ts', import.meta.url).href
  )
}

/**
 * By default, Node uses a directory in the shared temporary one and doesn't check who owns it. Whoever creates it first,
 * another user or an agent whose sandbox allows /tmp, decides which code we run.
 */
function ownCacheDirectory() {
  const { lstatSync, mkdirSync, statSync } = process.getBuiltinModule('node:fs')
  const { HOME, XDG_CACHE_HOME } = process.env
  const parent = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : HOME?.startsWith('/') ? `${HOME}/.cache` : undefined
  if (parent === undefined) return undefined
  const directory = `${parent}/coppice`
  try {
    mkdirSync(parent, { recursive: true, mode: 0o700 })
    // Whoever can rename in the parent can replace the directory, or a link to it, after this check.
    const above = statSync(parent)
    if (![process.getuid(), 0].includes(above.uid) || (above.mode & 0o1002) === 0o002) return undefined
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const found = lstatSync(directory)
    const isOurs = found.isDirectory() && found.uid === process.getuid() && (found.mode & 0o022) === 0
    return isOurs ? directory : undefined
  } catch {
    return undefined // without a cache, every start compiles
  }
}

async function goOnInNewerNode() {
  const runtime = await newerNode()
  if (runtime === undefined) {
    process.stderr.write(
      `coppice needs Node ${neededMajor} or newer and this is ${process.version}: ` +
        `install it (https://nodejs.org) and run coppice again.\n`,
    )
    process.exitCode = 1
    return
  }
  const { fileURLToPath } = await import('node:url')
  const args = [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  // Where Node has execve (22.15, 23.11) the same process goes on: signals, exit and standard input need no help.
  if (process.execve) {
    process.removeAllListeners('warning') // "execve is an experimental feature" is nothing the user can act on
    process.execve(runtime, [runtime, ...args], process.env)
  }
  await mirror(runtime, args)
}

/**
 * The npm package `node`: a checkout has it as a development dependency, an installed coppice only beside another
 * package that asked for it. Its version is looked at, since an old one would send us round in circles.
 */
async function newerNode() {
  const { existsSync, readFileSync } = await import('node:fs')
  const { createRequire } = await import('node:module')
  const path = await import('node:path')
  try {
    const manifest = createRequire(import.meta.url).resolve('node/package.json')
    if (majorOf(JSON.parse(readFileSync(manifest, 'utf8')).version) < neededMajor) return undefined
    const runtime = path.join(path.dirname(manifest), 'bin', 'node')
    return existsSync(runtime) ? runtime : undefined
  } catch {
    return undefined
  }
}

/** The child has our terminal and our streams. Its exit is ours, our signals are its, and it does not outlive us. */
async function mirror(runtime, args) {
  const { spawn } = await import('node:child_process')
  const { constants } = await import('node:os')
  const { isatty } = await import('node:tty')
  // Descriptor 3 is a pipe nobody writes to: the kernel closes our end when we die, even by SIGKILL.
  // Standard input stays the user's.
  const child = spawn(runtime, args, {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: { ...process.env, COPPICE_PARENT_PIPE: '3' },
  })
  await forgetEnvironment()
  // A terminal sends Ctrl-C to the whole group: passed on, it would reach the child twice.
  const onTerminal = isatty(0) || isatty(1) || isatty(2)
  const fromTerminal = ['SIGINT', 'SIGQUIT', 'SIGWINCH']
  const signals = [...fromTerminal, 'SIGTERM', 'SIGHUP', 'SIGUSR2', 'SIGCONT']
  const pass = (signal) => {
    if (!(onTerminal && fromTerminal.includes(signal))) child.kill(signal)
  }
  for (const signal of signals) process.on(signal, pass)
  child.on('error', (error) => {
    process.stderr.write(`coppice could not start ${runtime}: ${error.message}\n`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    for (const each of signals) process.off(each, pass)
    // A shell expects to see an interrupted program die of the signal; where that does not kill us, its number.
    process.kill(process.pid, signal)
    setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100)
  })
}

/**
 * The child has our variables, and we need none any more. As long as we live, every program of the same user could read
 * them in /proc/<pid>/environ, secrets among them, so they are overwritten where the kernel reads them from. The child
 * does the same for itself, by its own rules: src/main/take-environment.ts.
 */
async function forgetEnvironment() {
  for (const name of Object.keys(process.env)) delete process.env[name]
  if (process.platform !== 'linux') return
  const { closeSync, openSync, readFileSync, writeSync } = await import('node:fs')
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // Fields 50 and 51 of proc(5); the command in field 2 may hold spaces and parentheses.
    const [start, end] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(47, 49)
      .map(Number)
    const memory = openSync('/proc/self/mem', 'r+')
    writeSync(memory, Buffer.alloc(end - start), 0, end - start, start)
    closeSync(memory)
  } catch {
    // Where the system does not allow it, the server says at its start what can be read.
  }
}

/** In the child of `mirror`: SIGTERM, as the parent would have passed it on, when the parent is gone. */
async function endWithParent() {
  const fd = Number(process.env.COPPICE_PARENT_PIPE)
  delete process.env.COPPICE_PARENT_PIPE // not for our own children
  const { Socket } = await import('node:net')
  const parent = new Socket({ fd, readable: true, writable: false })
  parent.on('error', () => {})
  parent.on('close', () => process.kill(process.pid, 'SIGTERM'))
  parent.resume()
  parent.unref()
}
