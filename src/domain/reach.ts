/**
 * What a conversation may see and reach. server: whoever speaks there is one of the people of this server. repository:
 * a thread belongs to a repository and may be read by everybody, so it is about that repository and nothing else here.
 */
export type Reach = 'server' | 'repository'

/** A platform that is not listed gets the narrower one. */
const ofServer: ReadonlySet<string> = new Set(['cli', 'web', 'test', 'slack', 'discord', 'telegram'])

export const reachOf = ({ platform }: { readonly platform: string }): Reach =>
  ofServer.has(platform) ? 'server' : 'repository'

/** A notice for a thread that everybody can read: without this machine's paths and other platforms' conversations. */
export const withoutMachine = (text: string): string =>
  text
    .replaceAll(/\bfile:\/\/[^\s`"'<>|]+/gi, 'file://…')
    .replaceAll(PATH, (path) => `…${path.slice(path.lastIndexOf('/', path.length - 2))}`)
    .replaceAll(CONVERSATION, 'a conversation on $1')

/**
 * From somebody's home, or from the root with at least two parts: `/worktree list` and `origin/main` are none. It may
 * follow a colon (`ENOENT:/…`) or the letter of an option (`-C/…`).
 */
const PATH =
  /(?:(?<![\w/.~-])|(?<=(?<![\w-])-[A-Za-z]))(?:~[\w.-]*(?:\/[^\s/`"'()<>|,;:*?]+)+|(?:\/[^\s/`"'()<>|,;:*?]+){2,})\/?/g
const CONVERSATION = /\b(cli|web|test|slack|discord|telegram):[^\s,;`"'()<>|]+/g
