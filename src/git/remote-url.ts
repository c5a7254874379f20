import { AppError } from '../domain/errors.ts'
import { trimEndOf } from '../domain/trim-end.ts'
import { type ConfigEntry, isUserScope, splitKey } from './config-entries.ts'

/**
 * Threats: a URL that is read as an option (`--upload-pack=…`), a transport that runs a program (`ext::sh -c …`), an ssh
 * host that is an option (`ssh://-oProxyCommand=…`), and a secret that would end up in the repository's configuration.
 */
export const validateRemoteUrl = (url: string): string => {
  const problem = remoteUrlProblem(url)
  if (problem === undefined) return url
  throw new AppError('name-invalid', `can't clone this: ${problem}`, {
    remedy: 'give an https:// or ssh:// URL, git@host:owner/name, or an absolute path',
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
  if (!['https', 'http', 'ssh', 'git', 'file'].includes(scheme)) return `"${scheme}://" is not a transport for clones`
  if (scheme === 'file') return undefined
  const { hostname, username, password } = URL.parse(url) ?? { hostname: '', username: '', password: '' }
  if (hostname === '' || hostname.startsWith('-')) return 'the URL names no host'
  if (username.startsWith('-')) return 'a user that starts with "-" would be read as an option'
  if (password !== '' || (scheme !== 'ssh' && username !== '')) {
    return 'a user or password in the URL would be kept in the repository; use a credential helper or GITHUB_TOKEN'
  }
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return scheme === 'http' && !local ? 'http:// sends everything in the clear; use https://' : undefined
}

/** `git@host:owner/name` */
const scpProblem = (url: string): string | undefined =>
  /^(?:[A-Za-z0-9_][\w.+-]*@)?[A-Za-z0-9[][\w.:-]*\]?:[^:-][^:]*$/.test(url)
    ? undefined
    : 'it is neither a URL, nor git@host:path, nor an absolute path'

/** The user's own `url.<base>.insteadOf`, the longest match; what the repository says about URLs does not count. */
export const applyUserRewrites = (url: string, entries: readonly ConfigEntry[]): string => {
  const rules = entries.filter(isUserScope).flatMap(({ key, value }) => {
    const { section, subsection, variable } = splitKey(key)
    const applies = section === 'url' && variable === 'insteadof' && value !== undefined && url.startsWith(value)
    return applies && subsection !== undefined ? [{ base: subsection, prefix: value }] : []
  })
  const best = rules.toSorted((a, b) => b.prefix.length - a.prefix.length)[0]
  return best === undefined ? url : best.base + url.slice(best.prefix.length)
}

/**
 * A submodule's relative address, resolved as git does against the address of the repository's own remote. Undefined
 * where there is nothing that it could be relative to.
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
      // Not beyond the host: `https://host` has nothing above it.
      if (cut <= left.indexOf('://') + 2) return undefined
      left = left.slice(0, cut)
    } else return right === '' ? left : `${left}/${right}`
  }
}
