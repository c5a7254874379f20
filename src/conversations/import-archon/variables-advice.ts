import { join } from 'node:path'
import { readUntrustedText } from '../../process/files/read-untrusted.ts'
import type { VariableUse } from './advice.ts'
import type { Planning } from './planning.ts'

const renamed = (to: string): VariableUse => ({ kind: 'renamed', to })
/** Two programs on one home directory or database would overwrite each other's records. */
const separate = (to: string): VariableUse => ({ kind: 'separate', to })
const option = (to: string): VariableUse => ({ kind: 'option', to })
const codexLogin: VariableUse = { kind: 'login', program: 'codex' }
const nothing: VariableUse = { kind: 'nothing' }

/** Archon's variables whose name or meaning is another here. Those not listed have the same name in both. */
const archonVariables: Readonly<Record<string, VariableUse>> = {
  WEBHOOK_SECRET: renamed('GITHUB_WEBHOOK_SECRET'),
  GH_TOKEN: renamed('GITHUB_TOKEN'),
  GITHUB_BOT_MENTION: renamed('GITHUB_BOT'),
  SLACK_ALLOWED_USER_IDS: renamed('SLACK_ALLOWED_USERS'),
  DISCORD_ALLOWED_USER_IDS: renamed('DISCORD_ALLOWED_USERS'),
  TELEGRAM_ALLOWED_USER_IDS: renamed('TELEGRAM_ALLOWED_USERS'),
  DEFAULT_AI_ASSISTANT: renamed('COPPICE_AGENT'),
  CLAUDE_BIN_PATH: renamed('COPPICE_CLAUDE_COMMAND'),
  CODEX_BIN_PATH: renamed('COPPICE_CODEX_COMMAND'),
  CLAUDE_API_KEY: renamed('ANTHROPIC_API_KEY'),
  ARCHON_HOME: separate('COPPICE_HOME'),
  DATABASE_URL: separate('COPPICE_DATABASE_URL'),
  GITHUB_APP_PRIVATE_KEY_PATH: { kind: 'content', to: 'GITHUB_APP_PRIVATE_KEY' },
  CODEX_ID_TOKEN: codexLogin,
  CODEX_ACCESS_TOKEN: codexLogin,
  CODEX_REFRESH_TOKEN: codexLogin,
  CODEX_ACCOUNT_ID: codexLogin,
  GITHUB_ALLOWED_USERS: { kind: 'user-ids' },
  PORT: option('--port'),
  HOST: option('--host'),
  LOG_LEVEL: option('--verbose'),
  TELEGRAM_STREAMING_MODE: nothing,
  DISCORD_STREAMING_MODE: nothing,
  SLACK_STREAMING_MODE: nothing,
  DISCORD_REQUIRE_MENTION: nothing,
  BOT_DISPLAY_NAME: nothing,
  SESSION_RETENTION_DAYS: nothing,
  TITLE_GENERATION_MODEL: nothing,
  WORKSPACE_PATH: nothing,
  ARCHON_DOCKER: nothing,
  ARCHON_DATA: nothing,
  CLAUDE_USE_GLOBAL_AUTH: nothing,
}

/** Platforms of Archon's that don't exist here. */
const missingPlatforms = { GITLAB_: 'GitLab', GITEA_: 'Gitea' } as const

/** Not Archon's, or Coppice's own, unless they are in Archon's file. */
const general: ReadonlySet<string> = new Set([
  'PORT',
  'HOST',
  'LOG_LEVEL',
  'DATABASE_URL',
  'GH_TOKEN',
  'CLAUDE_API_KEY',
  'GITHUB_ALLOWED_USERS',
])

const allowLists = {
  Slack: { token: 'SLACK_BOT_TOKEN', lists: ['SLACK_ALLOWED_USER_IDS', 'SLACK_ALLOWED_USERS'] },
  Discord: { token: 'DISCORD_BOT_TOKEN', lists: ['DISCORD_ALLOWED_USER_IDS', 'DISCORD_ALLOWED_USERS'] },
  Telegram: { token: 'TELEGRAM_BOT_TOKEN', lists: ['TELEGRAM_ALLOWED_USER_IDS', 'TELEGRAM_ALLOWED_USERS'] },
} as const

/** From our own environment and the `.env` in Archon's home. Names only: the values are secrets. */
export const adviseOnVariables = async ({ advice, roots, context }: Planning): Promise<void> => {
  const env = context.ownEnvironment ?? {}
  const isSet = (name: string): boolean => (env[name] ?? '') !== ''
  const inFiles = (await Promise.all(roots.homes.map((home) => namesIn(join(home, '.env'))))).flat()
  const around = Object.keys(env).filter((name) => isSet(name) && !general.has(name))
  const found = new Set([...inFiles, ...around.filter((name) => useOf(name) !== undefined)])
  for (const name of [...found].toSorted()) {
    const use = useOf(name)
    if (use === undefined || ('to' in use && isSet(use.to))) continue
    advice.push({ kind: 'variable', name, use })
  }
  for (const [platform, { token, lists }] of Object.entries(allowLists)) {
    const isUsed = inFiles.includes(token)
    const hasList = lists.some((name) => inFiles.includes(name) || isSet(name))
    if (isUsed && !hasList) advice.push({ kind: 'allow-list', platform, variable: lists[1] })
  }
}

const useOf = (name: string): VariableUse | undefined => {
  const known = Object.hasOwn(archonVariables, name) ? archonVariables[name] : undefined
  const [, platform] = Object.entries(missingPlatforms).find(([start]) => name.startsWith(start)) ?? []
  return known ?? (platform === undefined ? undefined : { kind: 'no-platform', platform })
}

/** The variables that a file sets to something. */
const namesIn = async (file: string): Promise<string[]> => {
  const text = await readUntrustedText(file, { maxBytes: 256 * 1024, followLink: true }).catch(() => undefined)
  return (text ?? '').split('\n').flatMap((line) => {
    const [, name, value] = /^\s*(?:export\s+)?([A-Z][A-Z0-9_]*)=\s*(.?)/.exec(line) ?? []
    return name === undefined || value === '' || value === '#' ? [] : [name]
  })
}
