import { AppError } from '../../domain/errors.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { absentAgent, runningSession } from '../../fleet/peek-and-nudge.ts'
import { command } from '../../commands/command.ts'
import { runInForeground } from '../../process/attach.ts'
import type { CliCall } from '../cli-call.ts'
import type { FleetAgent } from '../../domain/fleet/agent.ts'
import type { FleetContext } from '../../fleet/context.ts'
import type { AttachCommand } from '../../process/tmux.ts'

type Attached = { readonly agent: string; readonly exitCode: number }

/** The command that gives a terminal to this agent's session. Throws if it has none. */
export const attachCommandOf = async (
  fleet: FleetContext,
  name: string,
): Promise<AttachCommand & { readonly agent: FleetAgent }> => {
  const { isolation, sessions } = fleet
  const agent = await isolation.store.fleetAgents.byName(isolation.host, name)
  if (agent === undefined) throw absentAgent(fleet, name)
  const session = runningSession(agent)
  const found = sessions.of(session.kind).attachCommand?.(session)
  if (found !== undefined) return { agent, ...found }
  throw new AppError('unsupported', `${name} runs in the background, without a terminal`, {
    remedy: remedy`see its output with ${coppice(`peek ${shellWord(name)}`)}, or install tmux for sessions to attach to`,
  })
}

const run = async (call: CliCall): Promise<Attached> => {
  const [name = ''] = call.words
  const { command: words, env } = await attachCommandOf(await (await call.open()).fleet(), name)
  if (call.showSecret === undefined) {
    throw new AppError('usage', 'attaching needs a terminal', {
      remedy: remedy`use ${coppice(`peek ${shellWord(name)}`)} instead`,
    })
  }
  // Without TMUX, because tmux refuses to start inside tmux.
  return { agent: name, exitCode: await runInForeground(words, env) }
}

export const attach = command<Attached, CliCall>({
  run,
  toText: ({ agent, exitCode }) => (exitCode === 0 ? `Detached from ${agent}.` : ''),
  toJson: ({ agent }) => ({ agent }),
  exitCode: ({ exitCode }) => exitCode,
})
