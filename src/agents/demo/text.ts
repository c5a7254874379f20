/** Texts of the demo agent. */

export const DEMO_FILE = 'COPPICE_DEMO.md'

/** Commit trailers by which reruns and later messages find these commits. */
export const MESSAGE_TRAILER = 'Coppice-Message'
export const SESSION_TRAILER = 'Coppice-Session'

export const demoAuthor = { name: 'Coppice demo', email: 'demo@coppice.invalid' } as const

export type DemoNote = {
  readonly prompt: string
  /** The message's position in this session, from 1. */
  readonly number: number
  readonly session: string
  /** If undefined, a rerun can't be told from a second request. */
  readonly message: string | undefined
}

/** Only the first line: later ones could be parsed as trailers. */
export const commitMessage = ({ prompt, session, message }: DemoNote): string =>
  [
    `demo: ${cut(firstLine(prompt), 60)}`,
    '',
    ...(message === undefined ? [] : [`${MESSAGE_TRAILER}: ${oneLine(message)}`]),
    `${SESSION_TRAILER}: ${oneLine(session)}`,
    '',
  ].join('\n')

/** Appends the note unless the file already has it. */
export const withNote = (before: string | undefined, note: DemoNote): string => {
  if (before !== undefined && hasNote(before, note)) return before
  const text = before === undefined || before === '' ? HEADING : before.endsWith('\n') ? before : `${before}\n`
  return `${text}\n${section(note)}`
}

const HEADING = `# Coppice demo

Written by the demo agent, which has no model: it writes down each request and commits it.
`

const section = (note: DemoNote): string => {
  const quoted = cut(printable(note.prompt), 2_000).split('\n')
  const lines = [`## Message ${note.number}`, '', ...quoted.map((line) => (line === '' ? '>' : `> ${line}`)), '']
  return `${[...lines, ...(note.message === undefined ? [] : [marker(note.message), ''])].join('\n').trimEnd()}\n`
}

/** On its own line: user text is quoted, so none of its lines can match. */
const marker = (message: string): string => `<!-- ${MESSAGE_TRAILER}: ${oneLine(message)} -->`

const hasNote = (text: string, { message }: DemoNote): boolean =>
  message !== undefined && text.split('\n').includes(marker(message))

export type DemoDone = DemoNote & {
  readonly branch: string
  readonly commit: string
  readonly rerun: boolean
  /** In the fleet nobody is talking to it; it works on an item. */
  readonly inFleet: boolean
}

export const doneReply = ({ prompt, number, branch, commit, rerun, inFleet }: DemoDone): string =>
  `${rerun ? 'I was interrupted and asked again. The commit already exists, so I made no second one.' : 'Done: committed for real.'}

> ${cut(firstLine(prompt), 200)}

- branch: \`${branch}\`
- commit: \`${commit.slice(0, 7)}\`, "demo: ${cut(firstLine(prompt), 60)}"
- file: \`${DEMO_FILE}\`, which quotes your request

${inFleet ? '' : `This is message ${number} of our conversation. `}I'm the demo agent: I have no model and need no account, so all I do is write things down. Your own checkout is unchanged.

${inFleet ? '' : 'Try next: `/diff` shows the change, `/status` shows where it is, `/worktree remove` removes the worktree. '}For an agent that does real work, install Claude Code or Codex and log in, or set COPPICE_AGENT_COMMAND to any program that reads a message on standard input; \`${inFleet ? 'coppice agents' : '/agents'}\` shows what is missing.
`

export const readOnlyReply = (prompt: string, branch: string | undefined): string =>
  `I have read-only access here, so I changed nothing.

> ${cut(firstLine(prompt), 200)}

With write access, I would add this request to \`${DEMO_FILE}\` and commit it${branch === undefined ? '' : ` on \`${branch}\``}. I'm the demo agent: I have no model and need no account.
`

const firstLine = (prompt: string): string =>
  printable(prompt)
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '') ?? '(an empty message)'

const printable = (text: string): string => text.replaceAll(/\r\n?/g, '\n').replaceAll(/[^\P{Cc}\n\t]/gu, '')

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** By code point, so no character is split. */
const cut = (text: string, length: number): string => {
  const characters = Array.from(text)
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}
