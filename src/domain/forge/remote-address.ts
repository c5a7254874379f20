/** Where a remote's URL leads. */
export type RemoteAddress = {
  /** `https`, `ssh`, …; `ssh` also for `git@host:path`. */
  readonly scheme: string
  /** In lower case. `ssh.github.com` is github.com, reached through the HTTPS port. */
  readonly host: string
  /** Undefined: the scheme's own. */
  readonly port: string | undefined
  /** Without the slash before it and the `.git` after it. */
  readonly path: string
}

/** Undefined for a path on this machine, and for what git wouldn't read as an address either. */
export const remoteAddress = (url: string | undefined): RemoteAddress | undefined => {
  if (url === undefined || url.length > maxLength || url.startsWith('/') || /^file:/i.test(url)) return undefined
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(url)) {
    const parsed = URL.parse(url)
    if (parsed === null || parsed.hostname === '') return undefined
    const { protocol, hostname, port, pathname } = parsed
    return {
      scheme: protocol.slice(0, -1),
      host: plainHost(hostname),
      port: port || undefined,
      path: plainPath(pathname),
    }
  }
  const [, host, path] = /^(?:[^@/:]*@)?([^/:@]+):(?!\/\/)(.+)$/s.exec(url) ?? []
  if (host === undefined || path === undefined) return undefined
  return { scheme: 'ssh', host: plainHost(host), port: undefined, path: plainPath(path) }
}

/** `owner` and `name`, for a host whose repositories are named so. */
export const ownerAndName = ({
  path,
}: RemoteAddress): { readonly owner: string; readonly repo: string } | undefined => {
  const [owner = '', repo = '', ...more] = path.split('/')
  return more.length === 0 && githubName.test(`${owner}/${repo}`) ? { owner, repo } : undefined
}

/** GitHub's rules for names. */
export const githubName = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})\/[A-Za-z0-9._-]{1,100}$/

/** Nobody types more, and it keeps long texts away from the expressions above. */
const maxLength = 4096

const plainHost = (host: string): string => host.toLowerCase().replace(/^ssh\.(?=github\.com$)/, '')

const plainPath = (path: string): string =>
  path
    .replace(/^\//, '')
    .replace(/\/$/, '')
    .replace(/\.git$/, '')
