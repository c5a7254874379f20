/*
 * Settings. In: the text of `config.yaml` and the environment variables. Out: `Settings` with defaults, or an error
 * that names the key.
 */
import { join, normalize } from 'node:path'
import { withVariables } from './agents.ts'
import type { KnownKeys } from './file.ts'
import { poolKeys } from './fleet.ts'
import { hookKeys } from './hooks.ts'
import * as rule from './rules.ts'
import { defaultSettings, type Setting, type Settings, settingTable } from './settings.ts'
import { AppError } from '../errors.ts'
import { trimEndOf } from '../text/trim-end.ts'

export type Env = Readonly<Record<string, string | undefined>>

/**
 * The home's `config.yaml`, overridden by environment variables. `homeFile` is only for error messages.
 * YAML is imported only when there is a file: most starts have none.
 */
export const resolveSettings = async (from: { homeText?: string; homeFile: string; env: Env }): Promise<Settings> => {
  const file =
    from.homeText === undefined
      ? new Map<string, unknown>()
      : (await import('./file.ts')).readConfigFile(from.homeText, from.homeFile, homeKeys())
  const given = Object.entries(settingTable).map(([name, setting]) => {
    const value = fromVariable(setting, from.env) ?? (setting.key === undefined ? undefined : file.get(setting.key))
    return [name, value] as const
  })
  const settings = { ...defaultSettings, ...Object.fromEntries(given.filter(([, value]) => value !== undefined)) }
  return {
    ...settings,
    acpAgents: withVariables(settings.acpAgents, from.env),
    worktreesBase: settings.worktreesBase === undefined ? undefined : expandHome(settings.worktreesBase, from.env),
  }
}

/** Where all state is kept. `/.coppice` in a container, where the user's home is often not on a volume. */
export const homeDirectory = (env: Env, exists: (path: string) => boolean): string => {
  const given = env['COPPICE_HOME']
  if (given !== undefined && given !== '') {
    if (rule.directory.read(given) !== undefined) return expandHome(given, env)
    throw new AppError('config-invalid', `COPPICE_HOME is ${JSON.stringify(given)}`, {
      remedy: `COPPICE_HOME must be ${rule.directory.expected}`,
    })
  }
  return ['/.dockerenv', '/run/.containerenv'].some(exists) ? '/.coppice' : expandHome('~/.coppice', env)
}

export const worktreeBase = (settings: Pick<Settings, 'worktreesBase'>, home: string): string =>
  settings.worktreesBase ?? join(home, 'worktrees')

/** The file's sections, without `platforms`. */
export const homeSections = (): readonly string[] => [
  ...new Set(Object.values(settingTable).flatMap(({ key }) => key?.split('.')[0] ?? [])),
]

/** `platforms` is opaque: each platform validates its own keys. */
const homeKeys = (): KnownKeys => ({
  keys: new Map(Object.values(settingTable).flatMap(({ key, rule }) => (key === undefined ? [] : [[key, rule]]))),
  opaque: ['platforms'],
  maps: new Map([['fleet.pools', poolKeys()]]),
  lists: new Map([['hooks', hookKeys()]]),
})

/** An empty variable counts as unset: `WORKTREE_BASE= coppice …`. */
const fromVariable = (setting: Setting<unknown>, env: Env): unknown => {
  // In a session of the fleet, COPPICE_AGENT is the name of that session's agent.
  const isTaken = setting.variable === 'COPPICE_AGENT' && env['COPPICE_SPAWN'] !== undefined
  const text = setting.variable === undefined || isTaken ? undefined : env[setting.variable]?.trim()
  if (setting.variable === undefined || text === undefined || text === '') return undefined
  return rule.validated(setting.rule, setting.rule.fromText?.(text) ?? text, setting.variable)
}

const expandHome = (path: string, env: Env): string => {
  if (!path.startsWith('~')) return withoutSlash(normalize(path))
  const home = env['HOME']
  if (home === undefined || !home.startsWith('/')) {
    throw new AppError('config-invalid', `can't resolve ${path}: HOME is not set`, {
      remedy: 'set HOME, or COPPICE_HOME to an absolute path',
    })
  }
  return withoutSlash(join(home, path.slice(1)))
}

const withoutSlash = (path: string): string => (path === '/' ? path : trimEndOf(path, '/'))
