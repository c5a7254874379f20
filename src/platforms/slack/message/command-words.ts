/**
 * What a person types instead of `/stop`. Slack's client takes a message that starts with `/` for one of its own
 * commands and never sends it, so in a direct message, `stop` alone and `!stop` do the same.
 */
export const asCommand = (text: string): string => {
  const [, named, rest = ''] = /^!([A-Za-z][\w-]{0,40})(?![^\s])([\s\S]*)$/.exec(text) ?? []
  if (named !== undefined) return `/${named}${rest}`
  const alone = /^([A-Za-z]{3,12})[.!]{0,3}$/.exec(text)?.[1]?.toLowerCase()
  return alone !== undefined && bareWords.has(alone) ? `/${alone}` : text
}

/**
 * Commands without arguments that somebody needs in a hurry. They count only if the whole message is the word: "stop
 * using tabs" goes to the agent.
 */
const bareWords: ReadonlySet<string> = new Set(['allow', 'deny', 'help', 'status', 'stop'])

/** Whether a command is about one thread. Others are answered wherever they are asked. */
export const isAboutThread = (command: string): boolean => !anywhere.has(nameOf(command))

/** Whether it sets the repository of a channel: every thread started there from then on inherits it. */
export const isAboutChannel = (command: string): boolean => /^\/(?:codebase|clone)(?:\s|$)/.test(command)

const anywhere: ReadonlySet<string> = new Set(['agents', 'clone', 'codebase', 'codebases', 'help'])

const nameOf = (command: string): string => (/^\/([A-Za-z][\w-]{0,40})/.exec(command)?.[1] ?? '').toLowerCase()
