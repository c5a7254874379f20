import { counted } from '../domain/text/words.ts'
import type { LeftProcess } from '../process/marked-processes.ts'
import type { Leftovers } from '../runs/leftovers.ts'
import type { Stopped } from '../runs/stop-run.ts'
import { command } from './command.ts'
import { onlyInChat } from './only-in-chat.ts'
import { listed } from './views/view.ts'

/** Processes that outlived a run, and how to end them. */
export const leftNotice = ({ own, unknown, unnamed, problem }: Leftovers): string =>
  [
    ...(unnamed === true
      ? [`The agent has ended, but something it started is still running: ${NO_PID}. Run \`/stop\` to end it.`]
      : []),
    ...(own.length === 0
      ? []
      : [
          `The agent has ended, but it left ${counted(own.length, 'process', 'processes')} running:`,
          ...pids(own),
          'Run `/stop` to end them.',
        ]),
    ...(unknown.length === 0
      ? []
      : [
          `${counted(unknown.length, 'process', 'processes')} in the worktree started after the agent did and may be yours:`,
          ...pids(unknown),
          `If not, on the server: \`kill ${unknown.map(({ pid }) => pid).join(' ')}\``,
        ]),
    ...(problem === undefined ? [] : [`Coppice couldn't check which processes the agent left running: ${problem}`]),
  ].join('\n')

/** The reply to `/stop`. */
export const stopNotice = ({ outcome, left, scripts }: Stopped): string => {
  if (outcome === 'nothing-running') {
    return [
      fromScripts(scripts).length === 0 ? 'Nothing is running here.' : 'No agent is running here.',
      ...fromScripts(scripts),
    ].join('\n')
  }
  const { own, unknown, unnamed, problem } = left
  return [
    ...(own.length === 0
      ? [
          unnamed === true
            ? `Stopped the agent, but something it started couldn't be stopped: ${NO_PID}. Run \`/stop\` again; if that doesn't help, restart the machine.`
            : problem === undefined
              ? everythingEnded()
              : 'Stopped the agent.',
        ]
      : [
          `Stopped the agent, but ${counted(own.length, 'process', 'processes')} it started couldn't be stopped:`,
          ...pids(own),
          `On the server, try: \`kill -9 ${own.map(({ pid }) => pid).join(' ')}\``,
        ]),
    ...(unknown.length === 0 && problem === undefined
      ? []
      : [leftNotice({ own: [], unknown, ...(problem === undefined ? {} : { problem }) })]),
    ...fromScripts(scripts),
  ].join('\n')
}

/** Why there is no PID to kill. */
const NO_PID = 'Coppice has no process ID for it, because it keeps forking or runs in another PID namespace'

const fromScripts = ({ ended, running, unnamed }: Stopped['scripts']): readonly string[] => [
  ...(unnamed === true
    ? [
        `Something that the repository's setup or teardown started for this worktree is still running: ${NO_PID}. Run \`/stop\` when no agent is running here.`,
      ]
    : []),
  ...(ended === 0
    ? []
    : [`Ended ${counted(ended, 'process', 'processes')} that the repository's setup or teardown had left running.`]),
  ...(running.length === 0
    ? []
    : [
        `${counted(running.length, 'process', 'processes')} that the repository's setup or teardown started for this worktree ${running.length === 1 ? 'is' : 'are'} still running:`,
        ...pids(running),
        `To end ${running.length === 1 ? 'it' : 'them'} now, on the server: \`kill -9 ${running.map(({ pid }) => pid).join(' ')}\``,
      ]),
]

/** Only Linux marks every process of a run; elsewhere background processes can't be told apart. */
const everythingEnded = (): string =>
  process.platform === 'linux'
    ? 'Stopped: the agent and all processes it started have ended.'
    : "Stopped: the agent and its child processes have ended. On this system, Coppice can't find background processes it started outside the worktree."

const pids = (left: readonly LeftProcess[]): readonly string[] =>
  listed(
    left.map(({ pid, command }) => `${pid} \`${command.replaceAll(/[`\p{Cc}]/gu, ' ')}\``),
    MOST_PROCESSES,
  )

const MOST_PROCESSES = 20

export const stop = command<Stopped>({
  run: (call) => onlyInChat(call, 'stop').controls.stop(),
  toText: stopNotice,
  toJson: ({ outcome, left, scripts }) => ({ outcome, left, scripts }),
})
