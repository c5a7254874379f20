/**
 * The environment of setup and teardown scripts and of agents. An allow-list, so an unforeseen variable (tomorrow's
 * token) stays out. No GIT_* either: a GIT_DIR inherited from a hook would make the script work on another repository.
 * `extra` is granted explicitly and takes precedence.
 */
export const allowedEnvironment = (
  env: Readonly<Record<string, string | undefined>>,
  extra: Readonly<Record<string, string | undefined>> = {},
): Record<string, string> => {
  const inherited = Object.entries(env).filter(([name]) => isAllowedVariable(name))
  return Object.fromEntries(
    [...inherited, ...Object.entries(extra)].filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

export const isAllowedVariable = (name: string): boolean =>
  ALLOWED_NAMES.has(name) || ALLOWED_PREFIXES.some((prefix) => name.startsWith(prefix))

const ALLOWED_PREFIXES = ['LC_', 'XDG_']

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'FTP_PROXY']

const ALLOWED_NAMES: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TERM',
  'COLORTERM',
  'TMPDIR',
  'SSH_AUTH_SOCK',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  ...PROXIES,
  ...PROXIES.map((name) => name.toLowerCase()),
])
