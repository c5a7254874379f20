import { join } from 'node:path'
import { type ConfigEntry, isUserScope, lastValue } from './config-entries.ts'
import { assertFewOverrides, lazyFetchIsSafe, neutralSettings, type Setting, type UserEnvironment } from './neutral.ts'

export type Variables = Readonly<Record<string, string | undefined>>

/** The user's variables that git may see. Everything else, above all every `GIT_*`, is dropped. */
const inherited = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'TMPDIR',
  'XDG_CONFIG_HOME',
  'XDG_RUNTIME_DIR',
  'SSH_AUTH_SOCK',
  'SSH_AGENT_PID',
  'http_proxy',
  'https_proxy',
  'HTTPS_PROXY',
  'all_proxy',
  'ALL_PROXY',
  'no_proxy',
  'NO_PROXY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
] as const

/** Enough to read the configuration, which runs no programs. */
export const bareEnvironment = (env: Variables): Record<string, string> => {
  const built: Record<string, string> = { LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0' }
  for (const name of inherited) {
    const value = env[name]
    if (value !== undefined) built[name] = value
  }
  return built
}

/** The environment of every git process, given the configuration it will read. Built, not inherited. */
export const childEnvironment = (env: Variables, entries: readonly ConfigEntry[]): Record<string, string> => {
  const own = entries.filter(isUserScope)
  const proxyCommand = lastValue(own, 'core.gitproxy')
  return {
    ...bareEnvironment(env),
    GIT_EDITOR: ':',
    GIT_SEQUENCE_EDITOR: ':',
    GIT_PAGER: 'cat',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_GRAFT_FILE: '/dev/null',
    // Empty isn't unset: git then uses neither core.askPass nor SSH_ASKPASS.
    GIT_ASKPASS: lastValue(own, 'core.askpass') ?? '',
    GIT_SSH_COMMAND: lastValue(own, 'core.sshcommand') ?? 'ssh',
    GIT_SSH_VARIANT: lastValue(own, 'ssh.variant') ?? 'auto',
    // Git uses the first core.gitProxy, so a later setting can't override it. This variable does, even when empty.
    GIT_PROXY_COMMAND: proxyCommand === undefined || / for /.test(proxyCommand) ? '' : proxyCommand,
    ...(lazyFetchIsSafe(entries) ? {} : { GIT_NO_LAZY_FETCH: '1' }),
  }
}

/** Settings go into the environment: a key's subsection may contain `=`, and anyone can read a command line. */
export const settingsEnvironment = (settings: readonly Setting[]): Record<string, string> => {
  const built: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) }
  for (const [i, [key, value]] of settings.entries()) {
    built[`GIT_CONFIG_KEY_${i}`] = key
    built[`GIT_CONFIG_VALUE_${i}`] = value
  }
  return built
}

/**
 * For a call that must not identify the user: no home, where libcurl would find `.netrc`, and no git configuration
 * outside the repository. Its other settings (proxies, CA certificates, line endings) come from `anonymousSettings`.
 */
export const anonymousEnvironment: Readonly<Record<string, string>> = {
  HOME: '/dev/null/none',
  XDG_CONFIG_HOME: '/dev/null/none',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ASKPASS: '',
}

/** The user's own settings, then `settings`, without credentials and with `~` expanded. */
export const anonymousSettings = (
  env: Variables,
  entries: readonly ConfigEntry[],
  settings: readonly Setting[],
): Setting[] => {
  const home = env['HOME']
  // `entries` already has those of included files. A key without `=` means true.
  const own = entries
    .filter((entry) => isUserScope(entry) && !/^(?:url|include|includeif)\./s.test(entry.key))
    .filter(({ key }) => !isHttpCredential(key))
    .map(({ key, value }): Setting => [key, value ?? 'true'])
  const credentials = entries.filter(({ key }) => /^credential\..*\.helper$/s.test(key) || isHttpCredential(key))
  assertFewOverrides(credentials)
  const all = [...own, ...settings].filter(([key]) => !key.startsWith('credential.'))
  return [
    ...all.map(([key, value]): Setting => [key, home === undefined ? value : value.replace(/^~(?=\/|$)/, () => home)]),
    // An empty helper clears the list.
    ['credential.helper', ''],
    ...credentials.map(({ key }): Setting => [key, isEmptyAuth(key) ? 'false' : '']),
    ['http.emptyAuth', 'false'],
  ]
}

/** Headers, cookies, client certificates and Kerberos tickets (`emptyAuth`) are credentials too. */
const isHttpCredential = (key: string): boolean =>
  /^http\.(?:.*\.)?(?:extraheader|cookiefile|sslcert|sslkey|emptyauth)$/s.test(key)

const isEmptyAuth = (key: string): boolean => key.endsWith('.emptyauth')

export const settingsFor = (env: Variables, entries: readonly ConfigEntry[]): Setting[] =>
  neutralSettings(entries, userEnvironment(env))

/** The user's own configuration files, existing or not: a new one must be noticed. */
export const userConfigFiles = (env: Variables): string[] => {
  const home = env['HOME']
  const { xdgConfig } = userEnvironment(env)
  return [
    '/etc/gitconfig',
    ...(xdgConfig === undefined ? [] : [join(xdgConfig, 'git', 'config')]),
    ...(home === undefined ? [] : [join(home, '.gitconfig')]),
  ]
}

/** The user's own attributes and excludes, at their default paths: git reads them in every tree. */
export const userFilterFiles = (env: Variables): string[] => {
  const { xdgConfig } = userEnvironment(env)
  return xdgConfig === undefined ? [] : [join(xdgConfig, 'git', 'ignore'), join(xdgConfig, 'git', 'attributes')]
}

const userEnvironment = (env: Variables): UserEnvironment => {
  const home = env['HOME']
  const xdg = env['XDG_CONFIG_HOME']
  return {
    xdgConfig: xdg !== undefined && xdg !== '' ? xdg : home === undefined ? undefined : join(home, '.config'),
    proxy: env['https_proxy'] ?? env['HTTPS_PROXY'] ?? env['all_proxy'] ?? env['ALL_PROXY'],
  }
}
