import type { KnownPlatforms } from './platform-capabilities.ts'

/** A notice for a thread that everybody can read: without this machine's paths and this server's own conversations. */
export const hideLocalDetails = (text: string, platforms: KnownPlatforms): string =>
  text
    .replaceAll(/\bfile:\/\/[^\s`"'<>|]+/gi, 'file://…')
    .replaceAll(PATH, (path) => `…${path.slice(path.lastIndexOf('/', path.length - 2))}`)
    .replaceAll(conversationsOf(platforms), 'a conversation on $1')

/**
 * From somebody's home, or from the root with at least two parts: `/worktree list` and `origin/main` are none. It may
 * follow a colon (`ENOENT:/…`) or the letter of an option (`-C/…`).
 */
const PATH =
  /(?:(?<![\w/.~-])|(?<=(?<![\w-])-[A-Za-z]))(?:~[\w.-]*(?:\/[^\s/`"'()<>|,;:*?]+)+|(?:\/[^\s/`"'()<>|,;:*?]+){2,})\/?/g

/** As they are written: `platform:id`. */
const conversationsOf = (platforms: KnownPlatforms): RegExp => {
  const names = [...platforms].filter(([, { reach }]) => reach === 'server').map(([name]) => RegExp.escape(name))
  // Without any, nothing.
  return new RegExp(String.raw`\b(${names.length === 0 ? '(?!)' : names.join('|')}):[^\s,;\`"'()<>|]+`, 'g')
}
