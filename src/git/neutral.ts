import { join } from 'node:path'
import { AppError } from '../domain/errors.ts'
import { type ConfigEntry, isRepositoryScope, isUserScope, lastValue, splitKey } from './config-entries.ts'
import { maxOverrideBytes, maxOverrides } from './file-limits.ts'

export type Setting = readonly [key: string, value: string]

/**
 * An agent in a worktree can write the repository's and the worktree's own configuration, and git runs programs named
 * there. So all our calls override the repository's settings: with the values of the user's own files (system, global)
 * if set, else with one that runs nothing.
 *
 * Keys with a fixed name are always set, so an agent can't slip them in between reading and running. Keys with a free
 * part (`filter.<any>.clean`) can only be overridden once they have been seen.
 */
export const neutralSettings = (entries: readonly ConfigEntry[], user: UserEnvironment): Setting[] => [
  ...alwaysThus,
  ...fromUser(entries, user),
  ...answersToRepository(entries, user),
  ...withoutConfiguredHooks(entries),
  ...credentialHelpers(entries),
]

/** Default locations of the user's own files. */
export type UserEnvironment = { readonly xdgConfig: string | undefined; readonly proxy: string | undefined }

/** We never need these, whoever sets them. */
const alwaysThus: readonly Setting[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.untrackedCache', 'false'],
  // If set, git assumes that nothing changes behind its back, and a dirty tree looks clean.
  ['core.ignoreStat', 'false'],
  ['core.checkStat', 'default'],
  ['core.trustctime', 'true'],
  // In git 2.39 the repository's `true` wins over GIT_NO_REPLACE_OBJECTS, and any commit can pass for another.
  ['core.useReplaceRefs', 'false'],
  ['core.pager', 'cat'],
  ['core.quotePath', 'false'],
  ['core.logAllRefUpdates', 'true'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['log.showSignature', 'false'],
  // If set, `git log` rejects our pathspecs, and no merge can be proven.
  ['log.follow', 'false'],
  // In another encoding our formats and `--grep` don't work.
  ['i18n.logOutputEncoding', 'UTF-8'],
  ['commit.gpgSign', 'false'],
  ['tag.gpgSign', 'false'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['fetch.writeCommitGraph', 'false'],
  ['status.showUntrackedFiles', 'all'],
  ['worktree.guessRemote', 'false'],
  // Files that a repository can name and git would open.
  ['diff.orderFile', '/dev/null'],
  ['mailmap.file', '/dev/null'],
  ['log.mailmap', 'false'],
  ['advice.detachedHead', 'false'],
  ['advice.statusHints', 'false'],
  // We set the grafts file to /dev/null, and git warns about it on every call.
  ['advice.graftFileDeprecated', 'false'],
]

/** Fixed names that the user may set: the user's value, else git's default. */
const fromUser = (entries: readonly ConfigEntry[], user: UserEnvironment): Setting[] => {
  const own = entries.filter(isUserScope)
  const place = (name: string): string =>
    user.xdgConfig === undefined ? '/dev/null' : join(user.xdgConfig, 'git', name)
  const defaults: readonly Setting[] = [
    ['core.excludesFile', place('ignore')],
    ['core.attributesFile', place('attributes')],
    // Called for the tips of borrowed object stores during a fetch; `true` prints none.
    ['core.alternateRefsCommand', 'true'],
    ['core.sshCommand', 'ssh'],
    ['core.askPass', ''],
    ['core.editor', ':'],
    ['sequence.editor', ':'],
    ['gpg.program', 'false'],
    ['protocol.ext.allow', 'never'],
    ['http.sslVerify', 'true'],
    // With -1 git waits for a lock indefinitely.
    ['core.filesRefLockTimeout', '100'],
    ['core.packedRefsTimeout', '1000'],
    // The number of processes for one checkout.
    ['checkout.workers', '1'],
  ]
  return defaults.map(([key, fallback]) => [key, lastValue(own, key.toLowerCase()) ?? fallback])
}

/**
 * Overrides each key of the repository that names a program or leads elsewhere, with the user's value or a harmless
 * one.
 */
const answersToRepository = (entries: readonly ConfigEntry[], user: UserEnvironment): Setting[] => {
  const own = new Map(entries.filter(isUserScope).map(({ key, value }) => [key, value]))
  const unsafe = entries.filter((entry) => isRepositoryScope(entry) && harmlessValue(entry.key, user) !== undefined)
  assertFewOverrides(unsafe)
  const answers = new Map(unsafe.map(({ key }) => [key, own.get(key) ?? harmlessValue(key, user) ?? '']))
  return [...answers]
}

/**
 * Since version 2.54 git also runs hooks that the configuration names (`hook.<name>.command`), whatever
 * `core.hooksPath` says. As with that one, we need nobody's.
 */
const withoutConfiguredHooks = (entries: readonly ConfigEntry[]): Setting[] => {
  const hooks = entries.filter(({ key }) => /^hook\..+\.(?:command|event|enabled)$/s.test(key))
  assertFewOverrides(hooks.filter(isRepositoryScope))
  return [...new Set(hooks.map(({ key }) => `hook.${splitKey(key).subsection}.enabled`))].map((key) => [key, 'false'])
}

/** Building an environment of 100,000 variables takes seconds, and then the system rejects it. */
export const assertFewOverrides = (overridden: readonly ConfigEntry[]): void => {
  const bytes = overridden.reduce((sum, { key }) => sum + key.length, 0)
  if (overridden.length <= maxOverrides && bytes <= maxOverrideBytes) return
  const file = overridden.at(-1)?.origin.replace(/^file:/, '') ?? ''
  throw new AppError('unusable-file', `${file} has too many settings that name programs or credentials`, {
    remedy: `remove sections that do not belong there, such as [filter "…"] (limit: ${maxOverrides} settings)`,
  })
}

/**
 * Undefined: the key neither runs anything nor leads anywhere. Empty values, as tested with git 2.39: an empty filter
 * passes the bytes through (unless `required`); an empty diff command or textconv makes the diff fail, and ours use
 * neither; an empty merge driver breaks the merge, and `true` silently picks one side, so that one is `false`, which
 * makes a conflict.
 */
const harmlessValue = (key: string, user: UserEnvironment): string | undefined => {
  const { section, subsection, variable } = splitKey(key)
  const harmless = harmlessByName[subsection === undefined ? key : `${section}.*.${variable}`]
  if (harmless !== undefined) return harmless
  // An empty http.proxy also disables the proxy from the environment, which is the user's.
  if (section === 'http' && variable === 'proxy') return user.proxy ?? ''
  if (section === 'http') return httpValues[variable] ?? ''
  if (section === 'protocol' && variable === 'allow') return protocolValue(subsection)
  return undefined
}

const harmlessByName: Readonly<Record<string, string>> = {
  'filter.*.clean': '',
  'filter.*.smudge': '',
  'filter.*.process': '',
  'filter.*.required': 'false',
  'merge.*.driver': 'false',
  'merge.*.recursive': 'binary',
  // Any option of `git merge`, such as `-F <file>`, which blocks forever if the file is a FIFO.
  'branch.*.mergeoptions': '',
  'diff.external': '',
  'diff.*.command': '',
  'diff.*.textconv': '',
  'diff.*.cachetextconv': 'false',
  'submodule.*.update': 'checkout',
  'gpg.*.program': 'false',
  'gpg.ssh.defaultkeycommand': '',
  'gpg.*.defaultkeycommand': '',
  'uploadpack.packobjectshook': '',
  'init.templatedir': '',
  'core.gitproxy': 'none',
  'fsck.skiplist': '/dev/null',
  'fetch.*.skiplist': '/dev/null',
  'ssh.variant': 'auto',
  'interactive.difffilter': '',
  'fetch.bundleuri': '',
  'fetch.negotiationalgorithm': 'consecutive',
  // Git LFS, started by the user's filters, runs these: `lfs.customtransfer.<name>.path`, `lfs.extension.<name>.clean`.
  'lfs.*.path': '',
  'lfs.*.args': '',
  'lfs.*.clean': '',
  'lfs.*.smudge': '',
  'lfs.standalonetransferagent': '',
  'lfs.*.standalonetransferagent': '',
}

/** Git's defaults. Keys not listed become empty, and a connection that needs one fails closed. */
const httpValues: Readonly<Record<string, string>> = {
  sslverify: 'true',
  followredirects: 'initial',
  proxyauthmethod: 'anyauth',
  emptyauth: 'auto',
  savecookies: 'false',
  delegation: 'none',
  version: 'HTTP/2',
  postbuffer: '1048576',
  lowspeedlimit: '0',
  lowspeedtime: '0',
  maxrequests: '5',
  minsessions: '1',
  noepsv: 'false',
  sslcertpasswordprotected: 'false',
  sslbackend: 'openssl',
  schannelcheckrevoke: 'true',
  schannelusesslcainfo: 'true',
  useragent: 'git/coppice',
}

/** Git's defaults: local transports only when requested directly, `ext` (runs any program) never. */
const protocolValue = (protocol: string | undefined): string => {
  if (protocol === undefined) return 'user'
  if (['http', 'https', 'git', 'ssh'].includes(protocol)) return 'always'
  return protocol === 'ext' ? 'never' : 'user'
}

/** Helpers are a list: an empty one clears it, then the user's are added back in order. */
const credentialHelpers = (entries: readonly ConfigEntry[]): Setting[] => [
  ['credential.helper', ''],
  ...entries
    .filter((entry) => isUserScope(entry) && /^credential\.(?:.*\.)?helper$/s.test(entry.key))
    .map((entry): Setting => [entry.key, entry.value ?? '']),
]

/**
 * A partial clone fetches missing objects by its remote's name, and git uses the *first* value of a remote's settings,
 * so the repository's can't be overridden. Such a fetch is allowed only if they run no program and lead nowhere else.
 */
export const lazyFetchIsSafe = (entries: readonly ConfigEntry[]): boolean =>
  !entries.filter(isRepositoryScope).some(({ key, value }) => {
    const { section, subsection, variable } = splitKey(key)
    if (section === 'url' && subsection !== undefined) return true
    if (section !== 'remote') return false
    if (['uploadpack', 'vcs', 'proxy', 'proxyauthmethod'].includes(variable)) return true
    return variable === 'url' && !/^(?:https|ssh):\/\/|^[\w.-]+@[\w.-]+:/.test(value ?? '')
  })
