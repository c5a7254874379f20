import { readFileSync, readdirSync } from 'node:fs'

/** What is killed, and how often: of a hundred kills. */
export const victims = { agent: 60, git: 20, server: 15, tmux: 5 } as const
export type Victim = keyof typeof victims

/** The same numbers for the same seed: mulberry32. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const nextVictim = (random: () => number): Victim => {
  let left = random() * 100
  for (const [victim, share] of Object.entries(victims)) {
    left -= share
    if (left < 0) return victim as Victim
  }
  return 'agent'
}

export type Kills = Record<Victim, number>

/** Kills one process of this kind in the world below `root`, if there is one. Returns its command line. */
export const killOne = (victim: Exclude<Victim, 'server'>, root: string, random: () => number): string | undefined => {
  const found = processesBelow(root).filter(isA[victim])
  const chosen = found[Math.floor(random() * found.length)]
  if (chosen === undefined) return undefined
  try {
    process.kill(chosen.pid, 'SIGKILL')
    return chosen.command
  } catch {
    return undefined
  }
}

/** Until nothing is left: what is killed may have started something meanwhile. */
export const killAll = (root: string): void => {
  for (let left = processesBelow(root); left.length > 0; left = processesBelow(root)) {
    for (const { pid } of left) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
    }
  }
}

type Seen = { readonly pid: number; readonly command: string; readonly environment: string }

/** tmux's server has the command line of whoever started it. */
const isTmux = ({ command }: Seen): boolean => /^(?:\S*\/)?tmux(?::| )/.test(command)

const isA: Record<Exclude<Victim, 'server'>, (seen: Seen) => boolean> = {
  tmux: isTmux,
  git: ({ command }) => /^(?:\S*\/)?git /.test(command),
  // Whatever runs in an agent's session: its shell, its git, its `coppice done`.
  agent: (seen) => /(?:^|\0)COPPICE_SPAWN=/.test(seen.environment) && !isTmux(seen),
}

/** Processes that name the world in their command line or environment. */
const processesBelow = (root: string): Seen[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ')
        const environment = readFileSync(`/proc/${name}/environ`, 'latin1')
        return command !== '' && (command.includes(root) || environment.includes(root))
          ? [{ pid: Number(name), command, environment }]
          : []
      } catch {
        return []
      }
    })
