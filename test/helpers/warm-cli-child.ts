/*
 * Runs the built command line again and again in one process, each time with its own arguments, variables and directory:
 * most of a short command's time is loading Node and the program. Its first module is evaluated anew for every command,
 * so whatever `main.ts` does at its start is done each time.
 */
import { pathToFileURL } from 'node:url'
import type { Answer, Order } from './warm-cli.ts'

const [node = '', , program = ''] = process.argv
const streams: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr]
const ownListeners = new Map(streams.map((stream) => [stream, stream.listeners('error')]))
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException'] as const
let count = 0

process.on('message', (order: Order) => {
  void run(order).then((answer) => process.send?.(answer))
})

async function run({ cwd, env, args }: Order): Promise<Answer> {
  const written = { out: '', err: '' }
  const restore = [capture(process.stdout, 'out'), capture(process.stderr, 'err')]
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.argv = [node, program, ...args]
  process.exitCode = undefined
  await import(`${pathToFileURL(program).href}?${(count += 1)}`)
  const code = Number(process.exitCode)
  process.exitCode = undefined
  // Nobody may find this process in a worktree.
  process.chdir('/')
  for (const back of restore) back()
  for (const signal of signals) process.removeAllListeners(signal)
  return { code, ...written }

  function capture(stream: NodeJS.WriteStream, name: 'out' | 'err'): () => void {
    stream.write = (text: string | Uint8Array) => {
      written[name] += typeof text === 'string' ? text : Buffer.from(text).toString()
      return true
    }
    return () => {
      Reflect.deleteProperty(stream, 'write') // the prototype's is the real one
      for (const listener of stream.listeners('error')) {
        if (!ownListeners.get(stream)?.includes(listener)) stream.off('error', listener as () => void)
      }
    }
  }
}
