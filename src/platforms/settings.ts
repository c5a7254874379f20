import { readConfigFile } from '../domain/config-file.ts'
import * as rule from '../domain/config-rules.ts'
import type { Rule } from '../domain/config-rules.ts'
import type { Env } from '../domain/config.ts'
import { AppError } from '../domain/errors.ts'
import { trimEndOf } from '../domain/trim-end.ts'

const secret: Rule<string> = { ...rule.text, secret: true }

/** A private key is a text of many lines; in a variable its line breaks are often written out. */
const privateKey: Rule<string> = {
  expected: 'a private key in PEM form, beginning with -----BEGIN',
  secret: true,
  read: (value) =>
    typeof value === 'string' && value.trim().startsWith('-----BEGIN')
      ? value.replaceAll(String.raw`\n`, '\n')
      : undefined,
}

const url: Rule<string> = {
  expected: 'a URL that begins with https:// or http://',
  read: (value) => {
    const parsed = typeof value === 'string' ? URL.parse(value) : null
    return parsed?.protocol === 'https:' || parsed?.protocol === 'http:' ? trimEndOf(String(value), '/') : undefined
  },
}

/** YAML reads the ids of some services as numbers. */
const userId: Rule<string> = {
  expected: 'a user id',
  read: (value) => rule.text.read(typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value),
}

const users: Rule<readonly string[]> = {
  ...rule.list(userId, 1_000),
  expected: 'a list of user ids (not names: those can change hands)',
  fromText: (text) =>
    text
      .split(/[\s,]+/)
      .map((one) => one.trim())
      .filter((one) => one !== ''),
}

/** `section.key` of the file → variable and rule. The variable wins. */
const table = {
  github: {
    token: { variable: 'GITHUB_TOKEN', rule: secret },
    appId: { variable: 'GITHUB_APP_ID', rule: rule.mapped(rule.wholeNumber(1, 2 ** 53 - 1, 12_345), String) },
    privateKey: { variable: 'GITHUB_APP_PRIVATE_KEY', rule: privateKey },
    webhookSecret: { variable: 'GITHUB_WEBHOOK_SECRET', rule: secret },
    bot: { variable: 'GITHUB_BOT', rule: rule.text },
    allowedUsers: { variable: 'GITHUB_ALLOWED_USERS', rule: users },
    cloneUnknown: { variable: 'GITHUB_CLONE_UNKNOWN', rule: { ...rule.flag, fromText: flagOf } },
    apiUrl: { variable: 'GITHUB_API_URL', rule: url },
  },
  slack: {
    botToken: { variable: 'SLACK_BOT_TOKEN', rule: secret },
    appToken: { variable: 'SLACK_APP_TOKEN', rule: secret },
    signingSecret: { variable: 'SLACK_SIGNING_SECRET', rule: secret },
    allowedUsers: { variable: 'SLACK_ALLOWED_USERS', rule: users },
    apiUrl: { variable: 'SLACK_API_URL', rule: url },
  },
  discord: {
    botToken: { variable: 'DISCORD_BOT_TOKEN', rule: secret },
    allowedUsers: { variable: 'DISCORD_ALLOWED_USERS', rule: users },
    apiUrl: { variable: 'DISCORD_API_URL', rule: url },
  },
  telegram: {
    botToken: { variable: 'TELEGRAM_BOT_TOKEN', rule: secret },
    webhookSecret: { variable: 'TELEGRAM_WEBHOOK_SECRET', rule: secret },
    webhookUrl: { variable: 'TELEGRAM_WEBHOOK_URL', rule: url },
    allowedUsers: { variable: 'TELEGRAM_ALLOWED_USERS', rule: users },
    apiUrl: { variable: 'TELEGRAM_API_URL', rule: url },
  },
} as const satisfies Record<string, Record<string, { variable: string; rule: Rule<unknown> }>>

type Table = typeof table
type ValueOf<R> = R extends { readonly rule: Rule<infer T> } ? T : never
export type PlatformSettings = {
  readonly [P in keyof Table]: { readonly [K in keyof Table[P]]?: ValueOf<Table[P][K]> }
}
export type RemotePlatformName = keyof Table

/** The `platforms` section of the home's `config.yaml`, with the variables over it. */
export const readPlatformSettings = (from: {
  readonly homeText?: string
  readonly homeFile: string
  readonly env: Env
}): PlatformSettings => {
  const section =
    from.homeText === undefined
      ? undefined
      : readConfigFile(from.homeText, from.homeFile, { keys: new Map(), opaque: ['platforms', ...otherSections] }).get(
          'platforms',
        )
  const file = sectionsOf(section, from.homeFile)
  return Object.fromEntries(
    Object.entries(table).map(([platform, keys]) => [
      platform,
      Object.fromEntries(
        Object.entries<{ variable: string; rule: Rule<unknown> }>(keys).flatMap(([key, setting]) => {
          const value = valueOf(setting, `platforms.${platform}.${key}`, file.get(platform)?.[key], from)
          return value === undefined ? [] : [[key, value]]
        }),
      ),
    ]),
  ) as PlatformSettings
}

/** Every secret in these settings, for the redactor. */
export const secretsOf = (settings: PlatformSettings): string[] =>
  Object.entries(table).flatMap(([platform, keys]) =>
    Object.entries<{ rule: Rule<unknown> }>(keys).flatMap(([key, setting]) => {
      const value = (settings[platform as RemotePlatformName] as Record<string, unknown>)[key]
      return setting.rule.secret === true && typeof value === 'string' ? [value] : []
    }),
  )

/** Checked by whoever reads them. */
const otherSections = ['database', 'worktrees', 'limits', 'cleanup', 'agent', 'budget']

function flagOf(text: string): unknown {
  return text === 'true' ? true : text === 'false' ? false : text
}

const valueOf = (
  setting: { variable: string; rule: Rule<unknown> },
  name: string,
  given: unknown,
  { env, homeFile }: { readonly env: Env; readonly homeFile: string },
): unknown => {
  const text = env[setting.variable]?.trim()
  if (text !== undefined && text !== '') {
    return rule.checked(setting.rule, setting.rule.fromText?.(text) ?? text, setting.variable)
  }
  return given === undefined || given === null ? undefined : rule.checked(setting.rule, given, name, homeFile)
}

const sectionsOf = (section: unknown, file: string): Map<string, Record<string, unknown>> => {
  const found = new Map<string, Record<string, unknown>>()
  if (section === undefined || section === null) return found
  for (const [platform, content] of Object.entries(plain(section, 'platforms', file))) {
    const known = Object.entries(table).find(([name]) => name === platform)?.[1]
    if (known === undefined) throw unknown(file, `platforms.${platform}`, Object.keys(table))
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
  throw new AppError('config-invalid', `${file}: ${name} is not a section with keys`, {
    remedy: `write it as "${name}:" with "key: value" lines below`,
  })
}

const unknown = (file: string, name: string, known: readonly string[]): AppError =>
  new AppError('config-invalid', `${file}: there is no setting "${name.slice(0, 80)}"`, {
    remedy: `there are ${known.join(', ')}`,
  })
