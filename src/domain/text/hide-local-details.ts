import type { KnownPlatforms } from '../platform-capabilities.ts'

/** For a public thread: hides this machine's paths and this server's other conversations. */
export const hideLocalDetails = (text: string, platforms: KnownPlatforms): string =>
  text
    .replaceAll(/\bfile:\/\/[^\s`"'<>|]+/gi, 'file://…')
    .replaceAll(PATH, (path) => `…${path.slice(path.lastIndexOf('/', path.length - 2))}`)
    .replaceAll(conversationsOf(platforms), 'a conversation on $1')

/**
 * Starts with `~`, or with `/` and at least two parts: `/worktree list` and `origin/main` aren't paths. It may follow a
 * colon (`ENOENT:/…`) or the letter of an option (`-C/…`).
 */
const PATH =
  /(?:(?<![\w/.~-])|(?<=(?<![\w-])-[A-Za-z]))(?:~[\w.-]*(?:\/[^\s/`"'()<>|,;:*?]+)+|(?:\/[^\s/`"'()<>|,;:*?]+){2,})\/?/g

/** Written as `platform:id`. */
const conversationsOf = (platforms: KnownPlatforms): RegExp => {
  const names = [...platforms].filter(([, { reach }]) => reach === 'server').map(([name]) => RegExp.escape(name))
  // With no names, matches nothing.
  return new RegExp(String.raw`\b(${names.length === 0 ? '(?!)' : names.join('|')}):[^\s,;\`"'()<>|]+`, 'g')
}
