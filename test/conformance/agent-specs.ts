import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Agent } from '../../src/agents/agent.ts'
import { createCommandAgent } from '../../src/agents/command/command.ts'
import { createDemoAgent } from '../../src/agents/demo/demo.ts'
import { selfIdentity } from '../../src/process/identity.ts'
import type { Sandbox, TestRepo } from '../helpers/repo.ts'

export type Scene = {
  readonly box: Sandbox
  readonly repo: TestRepo
  /** The environment: a linked worktree on the branch `work`. */
  readonly directory: string
  /** Where the agent's behaviour leaves traces for the test, outside of every tree. */
  readonly trace: (name: string) => string
}

/** How to make an agent behave in a certain way. Every member of the seam has one. */
export type AgentSpec = {
  /** It does not always know its own session again, whatever we give it. */
  readonly mayForget?: true
  readonly name: string
  /** It works in our own process. */
  readonly startsNothing?: true
  /** It has tools, and `hangs` in one of them. */
  readonly hasTools?: true
  /** Says something and changes something in the directory. */
  readonly works: (scene: Scene) => Agent
  /** Ends by itself without having done it. */
  readonly fails: (scene: Scene) => Agent
  /**
   * Never ends by itself, ignores SIGTERM, and has a grandchild that ignores it too. Writes the pids of both, in two
   * lines, to the trace `pids`.
   */
  readonly hangs: (scene: Scene) => Agent
  /** Writes the environment of what it starts to the trace `env`, and its directory to the trace `cwd`. */
  readonly tells: (scene: Scene) => Agent
  /** Says far more than anybody wants to read; undefined for one whose words are counted. */
  readonly rambles: ((scene: Scene) => Agent) | undefined
  /** Leaves a process behind that holds its output open, and writes its pid to the trace `pids`. */
  readonly forks: ((scene: Scene) => Agent) | undefined
}

export const contextDirectory = ({ box }: Scene): string => box.path('contexts')

export const commandAgent = (scene: Scene, command: string, outputLimitBytes?: number): Agent =>
  createCommandAgent({
    command,
    clock: Date.now,
    ids: randomUUID,
    self: selfIdentity(),
    contextDirectory: contextDirectory(scene),
    ...(outputLimitBytes !== undefined && { outputLimitBytes }),
  })

/** Ready for the signal only once both ignore it. */
export const hanging = (pids: string): string =>
  `trap '' TERM; (trap '' TERM; sh -c 'trap "" TERM; echo $$ >> '${pids}'; while :; do sleep 1; done' & wait) & ` +
  `echo $$ >> '${pids}'; while :; do sleep 1; done`

const command: AgentSpec = {
  name: 'command',
  works: (scene) => commandAgent(scene, 'printf "Grüße, "; cat | tee done.txt; echo " — fertig"'),
  fails: (scene) => commandAgent(scene, 'echo half; echo "first line" >&2; echo "no such model" >&2; exit 3'),
  hangs: (scene) => commandAgent(scene, `echo working; ${hanging(scene.trace('pids'))}`),
  tells: (scene) => commandAgent(scene, `env -0 > '${scene.trace('env')}'; pwd -P > '${scene.trace('cwd')}'`),
  rambles: (scene) => commandAgent(scene, 'yes ünïcödé | head -c 3000000; echo; echo the end', 10_000),
  forks: (scene) => commandAgent(scene, `(trap '' HUP; sleep 600) & echo $! > '${scene.trace('pids')}'; echo bye`),
}

/** The demo starts nothing but git, so git is where it can be made to behave. */
const demoAgent = (scene: Scene, git?: string): Agent =>
  createDemoAgent({
    git: scene.box.git(git === undefined ? {} : { program: gitThat(scene, git) }),
    clock: Date.now,
    ids: randomUUID,
    self: selfIdentity(),
  })

/** A git that does something else first when it is to write a tree. */
const gitThat = ({ box }: Scene, first: string): string => {
  const path = box.path('git-that.sh')
  writeFileSync(path, `#!/bin/sh\ncase "$1" in write-tree) ${first} ;; esac\nexec git "$@"\n`)
  chmodSync(path, 0o755)
  return path
}

const demo: AgentSpec = {
  name: 'demo',
  startsNothing: true,
  works: (scene) => demoAgent(scene),
  fails: (scene) => demoAgent(scene, 'echo "fatal: no such tree" >&2; exit 128'),
  hangs: (scene) => demoAgent(scene, hanging(scene.trace('pids'))),
  tells: (scene) => demoAgent(scene, `env -0 > '${scene.trace('env')}'; pwd -P > '${scene.trace('cwd')}'`),
  rambles: undefined,
  forks: undefined,
}

export const specs: readonly AgentSpec[] = [command, demo]

export const readTrace = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')
