import { readConfigFile } from '../domain/config/file.ts'
import * as rule from '../domain/config/rules.ts'
import { type Env, homeSections } from '../domain/config/config.ts'
import { AppError } from '../domain/errors.ts'
import type { PlatformSetting } from './descriptor.ts'
import { anyDescriptor, isRemotePlatform, type PlatformSettings, remoteNames } from './remote.ts'

/** The `platforms` section of the home's `config.yaml`, overridden by environment variables. */
export const readPlatformSettings = (from: {
  readonly homeText?: string
  readonly homeFile: string
  readonly env: Env
}): PlatformSettings => {
  // The other sections are validated by their own readers.
  const known = { keys: new Map(), opaque: ['platforms', ...homeSections()] }
  const section =
    from.homeText === undefined ? undefined : readConfigFile(from.homeText, from.homeFile, known).get('platforms')
  const file = sectionsOf(section, from.homeFile)
  const given = remoteNames.map((name) => {
    const values = Object.entries(anyDescriptor(name).settings).flatMap(([key, setting]) => {
      const value = valueOf(setting, `platforms.${name}.${key}`, file.get(name)?.[key], from)
      return value === undefined ? [] : [[key, value]]
    })
    return [name, Object.fromEntries(values)]
  })
  return Object.fromEntries(given) as PlatformSettings
}

/** Every secret in the settings, for redaction. */
export const secretsOf = (settings: PlatformSettings): string[] =>
  remoteNames.flatMap((name) =>
    Object.entries(anyDescriptor(name).settings).flatMap(([key, setting]) => {
      const value = (settings[name] as Record<string, unknown>)[key]
      return setting.rule.secret === true && typeof value === 'string' ? [value] : []
    }),
  )

const valueOf = (
  setting: PlatformSetting,
  name: string,
  given: unknown,
  { env, homeFile }: { readonly env: Env; readonly homeFile: string },
): unknown => {
  const text = env[setting.variable]?.trim()
  if (text !== undefined && text !== '') {
    return rule.validated(setting.rule, setting.rule.fromText?.(text) ?? text, setting.variable)
  }
  return given === undefined || given === null ? undefined : rule.validated(setting.rule, given, name, homeFile)
}

const sectionsOf = (section: unknown, file: string): Map<string, Record<string, unknown>> => {
  const found = new Map<string, Record<string, unknown>>()
  if (section === undefined || section === null) return found
  for (const [platform, content] of Object.entries(plain(section, 'platforms', file))) {
    if (!isRemotePlatform(platform)) throw unknown(file, `platforms.${platform}`, remoteNames)
    const known = anyDescriptor(platform).settings
    if (content === null) continue
    const keys = plain(content, `platforms.${platform}`, file)
    const stray = Object.keys(keys).find((key) => !Object.hasOwn(known, key))
    if (stray !== undefined) throw unknown(file, `platforms.${platform}.${stray}`, Object.keys(known))
    found.set(platform, keys)
  }
  return found
}

const plain = (value: unknown, name: string, file: string): Record<string, unknown> => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new AppError('config-invalid', `${file}: ${name} must be a section with keys`, {
    remedy: `write it as "${name}:" with indented "key: value" lines`,
  })
}

const unknown = (file: string, name: string, known: readonly string[]): AppError =>
  new AppError('config-invalid', `${file}: unknown setting "${name.slice(0, 80)}"`, {
    remedy: `valid settings are ${known.join(', ')}`,
  })
