import type { ProgramEnd } from './program.ts'

export type Failure = { readonly problem: string; readonly remedy: string }

export type ProgramWords = {
  /** "Claude Code" */
  readonly title: string
  readonly install: string
  readonly setting: string
  readonly silenceMs: number
  readonly directory: string
}

/** One sentence of what happened and one of what to do, for every end that is none of the program's own words. */
export const endFailure = (end: Exclude<ProgramEnd, { readonly how: 'cancelled' }>, words: ProgramWords): Failure => {
  const { title, install, setting, directory } = words
  switch (end.how) {
    case 'not-started':
      return {
        problem: `The agent ${title} could not be started: ${end.problem}.`,
        remedy: 'See that the environment is there (/status), and send the message again.',
      }
    case 'silent':
      return {
        problem: `The agent ${title} said nothing for ${duration(words.silenceMs)} and had no tool at work, so it was ended.`,
        remedy: 'Send the message again; agent.silenceMinutes in config.yaml says how long to wait.',
      }
    case 'ended': {
      if (end.exitCode === 127 || end.exitCode === 126) {
        return {
          problem: `The agent ${title} could not be started: its program was not found or may not be run.`,
          remedy: `Install it with ${install}, or name it in ${setting}.`,
        }
      }
      const how = end.exitCode === null ? `was ended by ${end.signal}` : `ended with exit code ${end.exitCode}`
      const said = lastLines(end.stderr)
      return {
        problem: `The agent ${title} ${how}${said === '' ? ' without saying why' : `: ${said}`}.`,
        remedy: `Send the message again, or try the program by hand in ${directory}.`,
      }
    }
  }
}

const SHOWN_LINES = 3
const SHOWN_CHARACTERS = 500

const lastLines = (stderr: string): string => {
  const lines = stderr.replaceAll('\0', '').split('\n')
  const said = lines.map((line) => line.trim()).filter((line) => line !== '')
  return asClause(said.slice(-SHOWN_LINES).join(' · '))
}

/** The end of what somebody else wrote, to be followed by our full stop. */
export const asClause = (text: string): string => {
  const plain = text.replaceAll(/\s+/g, ' ').trim()
  return (plain.length > SHOWN_CHARACTERS ? `…${plain.slice(-SHOWN_CHARACTERS).toWellFormed()}` : plain).replace(
    /\.$/,
    '',
  )
}

const duration = (ms: number): string => {
  const minutes = ms / 60_000
  if (minutes < 1) return `${Math.round(ms / 100) / 10} seconds`
  return minutes === 1 ? 'a minute' : `${Math.round(minutes)} minutes`
}
