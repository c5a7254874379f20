import { AppError } from '../../domain/errors.ts'
import { coppice, remedy } from '../../domain/remedy.ts'
import { shellWord } from '../../domain/text/shell-word.ts'
import { absentAgent, runningSession } from '../../fleet/peek-and-nudge.ts'
import { command } from '../../commands/command.ts'
import { runInForeground } from '../../process/attach.ts'
import type { CliCall } from '../cli-call.ts'

type Attached = { readonly agent: string; readonly exitCode: number }

const run = async (call: CliCall): Promise<Attached> => {
  const fleet = await (await call.open()).fleet()
  const { isolation, sessions } = fleet
  const [name = ''] = call.words
  const agent = await isolation.store.fleetAgents.byName(isolation.host, name)
  if (agent === undefined) throw absentAgent(fleet, name)
  const session = runningSession(agent)
  const attachCommand = sessions.of(session.kind).attachCommand?.(session)
  if (attachCommand === undefined) {
    throw new AppError('unsupported', `${name} runs in the background, without a terminal`, {
      remedy: remedy`see its output with ${coppice(`peek ${shellWord(name)}`)}, or install tmux for sessions to attach to`,
    })
  }
  if (call.showSecret === undefined) {
    throw new AppError('usage', 'attaching needs a terminal', {
      remedy: remedy`use ${coppice(`peek ${shellWord(name)}`)} instead`,
    })
  }
  // Without TMUX, because tmux refuses to start inside tmux.
  return { agent: name, exitCode: await runInForeground(attachCommand.command, attachCommand.env) }
}

export const attach = command<Attached, CliCall>({
  run,
  toText: ({ agent, exitCode }) => (exitCode === 0 ? `Detached from ${agent}.` : ''),
  toJson: ({ agent }) => ({ agent }),
  exitCode: ({ exitCode }) => exitCode,
})
