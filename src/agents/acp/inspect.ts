import { mkdir, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { client, ndJsonStream } from '@agentclientprotocol/sdk'
import { toAppError } from '../../domain/errors.ts'
import { deleteTree } from '../../process/files/delete-tree.ts'
import { allowedEnvironment } from '../../process/environment.ts'
import { runProgram } from '../../process/spawn.ts'
import type { AgentAvailability } from '../agent.ts'
import type { AcpAgentOptions } from './options.ts'
import { initializeRequest, faultOf } from './converse.ts'
import { loginRemedy, type TurnEnd } from './outcome.ts'

/** An agent that takes longer than this to initialize isn't ready. */
const INSPECT_TIMEOUT_MS = 30_000

/** Starts the agent, initializes it, opens a session, and stops it. */
export const inspect = async (options: AcpAgentOptions): Promise<AgentAvailability> => {
  await mkdir(options.contextDirectory, { recursive: true, mode: 0o700 })
  const directory = await mkdtemp(join(options.contextDirectory, 'look-'))
  try {
    return await startAndAsk(options, directory)
  } catch (error) {
    return broken(options, toAppError(error).message)
  } finally {
    await deleteTree(directory)
  }
}

const startAndAsk = async (options: AcpAgentOptions, cwd: string): Promise<AgentAvailability> => {
  const [program = '', ...args] = options.command
  const end = new AbortController()
  let asked: Promise<AgentAvailability> | undefined
  await runProgram({
    command: program,
    args,
    cwd,
    env: allowedEnvironment(options.ownEnvironment, options.variables),
    clock: options.clock,
    signal: end.signal,
    timeoutMs: INSPECT_TIMEOUT_MS,
    graceMs: 1_000,
    outputLimitBytes: 1_000,
    dialogue: (stdin, stdout) => {
      const stream = ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout) as ReadableStream<Uint8Array>)
      asked = ask(options, stream, cwd).finally(() => end.abort())
    },
  }).catch((error: unknown) => {
    if (asked === undefined) throw error
  })
  return (await asked) ?? broken(options, "it didn't respond")
}

const ask = async (
  options: AcpAgentOptions,
  stream: ReturnType<typeof ndJsonStream>,
  cwd: string,
): Promise<AgentAvailability> => {
  let version: string | undefined
  try {
    return await client({ name: 'coppice' }).connectWith(stream, async (agent) => {
      const initialized = await agent.request('initialize', initializeRequest)
      version = initialized.agentInfo?.version
      await agent.request('session/new', { cwd, mcpServers: [] })
      return { state: 'ready', version }
    })
  } catch (error) {
    return problemOf(options, faultOf(error))
  }
}

const problemOf = (options: AcpAgentOptions, fault: TurnEnd): AgentAvailability =>
  fault.kind === 'logged-out'
    ? { state: 'logged-out', problem: `${options.name} is not logged in`, remedy: loginRemedy(options) }
    : broken(options, fault.kind === 'error' ? fault.message : 'it exited before it identified itself')

const broken = ({ name, command }: AcpAgentOptions, why: string): AgentAvailability => ({
  state: 'missing',
  problem: `couldn't connect to ${name} over the Agent Client Protocol: ${why}`,
  remedy: `Run \`${command.join(' ')}\` yourself to see what fails, or fix agent.acp.${name}.command in config.yaml.`,
})
