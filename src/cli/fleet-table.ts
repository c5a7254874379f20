import type { CommandRow } from '../commands/command.ts'
import type { CliCall } from './cli-call.ts'

/** Commands of the fleet that need a terminal, or are for agents in their sessions. */
export const fleetCommands: readonly CommandRow<CliCall>[] = [
  {
    name: 'fleet up',
    usage: '[agent]…',
    summary: 'start the fleet; every agent continues where it was',
    options: {},
    words: [0, 1000],
    examples: ['coppice fleet up', 'coppice fleet up alder'],
    load: async () => (await import('./commands/fleet-up-down.ts')).fleetUp,
  },
  {
    name: 'fleet down',
    usage: '[agent]… [--clean] [--grace <seconds>]',
    summary: 'stop agents; worktrees and items stay',
    options: {
      clean: { type: 'boolean', summary: 'also remove worktrees where that is provably safe' },
      grace: { type: 'string', value: 'seconds', summary: 'time to exit by themselves (default: 60)' },
    },
    words: [0, 1000],
    examples: ['coppice fleet down', 'coppice fleet down alder', 'coppice fleet down --clean'],
    load: async () => (await import('./commands/fleet-up-down.ts')).fleetDown,
  },
  {
    name: 'attach',
    usage: '<agent>',
    summary: "open an agent's terminal (detach: Ctrl-b d)",
    options: {},
    words: [1, 1],
    examples: ['coppice attach alder'],
    load: async () => (await import('./commands/attach.ts')).attach,
  },
  {
    name: 'prime',
    usage: '',
    summary: 'for agents: show the item, and how to finish it',
    options: {},
    words: [0, 0],
    examples: ['coppice prime', 'coppice prime --json'],
    load: async () => (await import('../commands/fleet/prime.ts')).prime,
  },
  {
    name: 'done',
    usage: '[--mode <formula>] [--close]',
    summary: 'for agents: finish the item and end the session',
    details:
      'Built in: push, pr, land, discard. A repository can add its own in .coppice/formulas. Run it again after a failure: it continues where it stopped.',
    options: {
      mode: { type: 'string', value: 'formula', summary: "how to finish (default: the pool's `done`)" },
      close: { type: 'boolean', summary: 'with discard: close the item instead of reopening it' },
    },
    words: [0, 0],
    examples: ['coppice done', 'coppice done --mode discard --close'],
    load: async () => (await import('../commands/fleet/done.ts')).done,
  },
  {
    name: 'crew add',
    usage: '<name> [--codebase <name>]… [--agent <name>]',
    summary: 'add a permanent agent',
    options: {
      codebase: {
        type: 'string',
        multiple: true,
        value: 'name',
        summary: "a repository to work in (repeatable; default: the current directory's)",
      },
      agent: { type: 'string', value: 'name', summary: 'the agent to run (default: the configured one)' },
    },
    words: [1, 1],
    examples: ['coppice crew add rust', 'coppice crew add rust --codebase app --codebase lib --agent claude'],
    load: async () => (await import('./commands/crew.ts')).crewAdd,
  },
  {
    name: 'crew list',
    usage: '',
    summary: 'list the members of the crew',
    options: {},
    words: [0, 0],
    examples: ['coppice crew list'],
    load: async () => (await import('./commands/crew.ts')).crewList,
  },
  {
    name: 'crew remove',
    usage: '<name>',
    summary: 'remove a member, with worktrees that are safe to go',
    options: {},
    words: [1, 1],
    examples: ['coppice crew remove rust'],
    load: async () => (await import('./commands/crew.ts')).crewRemove,
  },
  {
    name: 'internal leave',
    usage: '<formula run> <process>',
    summary: 'end a session from outside and finish its formula',
    options: {},
    words: [2, 2],
    examples: [],
    hidden: true,
    load: async () => (await import('./commands/fleet-internal.ts')).leaveCommand,
  },
]
