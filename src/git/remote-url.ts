import { AppError } from '../domain/errors.ts'
import { trimEndOf } from '../domain/text/trim-end.ts'
import { type ConfigEntry, isUserScope, splitKey } from './config-entries.ts'

/**
 * Threats: a URL that git reads as an option (`--upload-pack=…`), a transport that runs a program (`ext::sh -c …`), an
 * ssh host that is an option (`ssh://-oProxyCommand=…`), and a secret that would be stored in the configuration.
 */
export const validateRemoteUrl = (url: string): string => {
  const problem = remoteUrlProblem(url)
  if (problem === undefined) return url
  throw new AppError('name-invalid', `can't clone this: ${problem}`, {
    remedy: 'use an https:// or ssh:// URL, git@host:owner/name, or an absolute path',
  })
}

const remoteUrlProblem = (url: string): string | undefined => {
  if (url === '') return 'the URL is empty'
  if (url.startsWith('-')) return 'a URL that starts with "-" would be read as an option'
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f]/.test(url)) return 'the URL has a space or a control character'
  if (/^[\w+.-]*::/.test(url)) return 'a URL of the form "transport::address" can run any program'
  if (url.startsWith('/')) return undefined
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase()
  return scheme === undefined ? scpProblem(url) : schemeProblem(scheme, url)
}

const schemeProblem = (scheme: string, url: string): string | undefined => {
  if (!['https', 'http', 'ssh', 'git', 'file'].includes(scheme)) return `"${scheme}://" isn't supported`
  if (scheme === 'file') return undefined
  const { hostname, username, password } = URL.parse(url) ?? { hostname: '', username: '', password: '' }
  if (hostname === '' || hostname.startsWith('-')) return 'the URL has no host'
  if (username.startsWith('-')) return 'a user that starts with "-" would be read as an option'
  if (password !== '' || (scheme !== 'ssh' && username !== '')) {
    return 'a user or password in the URL would be stored in the repository; use a credential helper or GITHUB_TOKEN'
  }
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return scheme === 'http' && !local ? "http:// isn't encrypted; use https://" : undefined
}

/** `git@host:owner/name` */
const scpProblem = (url: string): string | undefined =>
  /^(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9[][\w.:-]*\]?:[^:-][^:]*$/.test(url)
    ? undefined
    : "it isn't a URL, git@host:path or an absolute path"

/**
 * Applies the user's own `url.<base>.insteadOf`, longest match first; for a push `pushInsteadOf`, if one matches.
 * Ignores the repository's.
 */
export const applyUserRewrites = (
  url: string,
  entries: readonly ConfigEntry[],
  use: 'fetch' | 'push' = 'fetch',
): string => {
  const rewritten = (rule: 'insteadof' | 'pushinsteadof'): string | undefined => {
    const rules = entries.filter(isUserScope).flatMap(({ key, value }) => {
      const { section, subsection, variable } = splitKey(key)
      const applies = section === 'url' && variable === rule && value !== undefined && url.startsWith(value)
      return applies && subsection !== undefined ? [{ base: subsection, prefix: value }] : []
    })
    const best = rules.toSorted((a, b) => b.prefix.length - a.prefix.length)[0]
    return best && best.base + url.slice(best.prefix.length)
  }
  return (use === 'push' ? rewritten('pushinsteadof') : undefined) ?? rewritten('insteadof') ?? url
}

/**
 * Resolves a submodule's relative URL against the repository's remote, as git does. Undefined when there is nothing to
 * resolve it against.
 */
export const resolveRelativeUrl = (remote: string | undefined, relative: string): string | undefined => {
  if (remote === undefined) return undefined
  let left = trimEndOf(remote, '/')
  let right = relative
  for (;;) {
    if (right.startsWith('./')) right = right.slice(2)
    else if (right.startsWith('../')) {
      right = right.slice(3)
      const cut = left.lastIndexOf('/')
      // Not above the host, as in `https://host`.
      if (cut <= left.indexOf('://') + 2) return undefined
      left = left.slice(0, cut)
    } else return right === '' ? left : `${left}/${right}`
  }
}
