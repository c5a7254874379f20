import type { Remedy } from '../domain/remedy.ts'
import type { ProgramEnd } from './program.ts'
import { CHECK_WORKTREE, exitText } from './texts.ts'

export type Failure = { readonly problem: string; readonly remedy: Remedy }

export type ProgramTexts = {
  /** "Claude Code" */
  readonly title: string
  readonly install: string
  readonly setting: string
  readonly silenceMs: number
  readonly directory: string
}

/** Describes what happened and what to do when the program gave no error of its own. */
export const endFailure = (end: Exclude<ProgramEnd, { readonly how: 'cancelled' }>, texts: ProgramTexts): Failure => {
  const { title, install, setting, directory } = texts
  switch (end.how) {
    case 'not-started':
      return {
        problem: `${title} couldn't be started: ${end.problem}.`,
        remedy: CHECK_WORKTREE,
      }
    case 'silent':
      return {
        problem: `${title} printed nothing for ${duration(texts.silenceMs)} with no tool running, so it was stopped.`,
        remedy: 'Send the message again, or raise agent.silenceMinutes in config.yaml.',
      }
    case 'ended': {
      if (end.exitCode === 127 || end.exitCode === 126) {
        return {
          problem: `${title} couldn't be started: its program was not found or isn't executable.`,
          remedy: `Install it with ${install}, or set ${setting} to its path.`,
        }
      }
      const said = lastLines(end.stderr)
      return {
        problem: `${title} ${exitText(end)}${said === '' ? ' without an error message' : `: ${said}`}.`,
        remedy: `Send the message again, or run the program yourself in ${directory} to see what fails.`,
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

/** The end of someone else's text, to be followed by our full stop. */
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
