import type { Clock, Ids } from '../domain/clock.ts'
import type { PlatformCapabilities } from '../domain/platform-capabilities.ts'
import type { Rule } from '../domain/config/rules.ts'
import type { Logger } from '../process/log.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { Check, CheckParts } from './checks.ts'
import type { PlatformMemory } from './memory.ts'
import type { Platform } from './platform.ts'

/**
 * Everything the rest of the program knows about a platform that needs an account. The settings reader, redaction, the
 * setup guide, `coppice platforms` and the server read this, so a new platform is a folder and a line in `remote.ts`.
 * The platform's SDK is loaded only by `create`.
 */
export type PlatformDescriptor<Table extends SettingTable> = {
  /** By key: `platforms.<name>.<key>` in config.yaml. */
  readonly settings: Table
  /** As its makers spell it. */
  readonly title: string
  readonly guide: Guide
  readonly capabilities: PlatformCapabilities
  /** Whether anything is set that shows that the user wants this platform. */
  isConfigured(settings: ValuesOf<Table>): boolean
  /** Throws an AppError that names the first missing or invalid setting. Doesn't ask the service. */
  validate(settings: ValuesOf<Table>): void
  /** Verifies the configuration with the service, without changing anything there. */
  check(settings: ValuesOf<Table>, parts: CheckParts): Promise<readonly Check[]>
  /** Throws what `validate` throws. */
  create(settings: ValuesOf<Table>, parts: PlatformParts): Promise<Platform>
}

export const isAnySet = (...values: readonly unknown[]): boolean => values.some((value) => value !== undefined)

export type SettingTable = Readonly<Record<string, PlatformSetting>>

export type PlatformSetting = {
  /** The environment variable, which overrides the file. */
  readonly variable: string
  /** The values of rules marked `secret` are redacted in all output. */
  readonly rule: Rule<unknown>
  /** One line for the setup guide and docs/configuration.md. */
  readonly about: string
}

/** All optional. */
export type ValuesOf<Table extends SettingTable> = {
  readonly [Key in keyof Table]?: Table[Key] extends { readonly rule: Rule<infer Value> } ? Value : never
}

/** The setup steps. */
export type Guide = {
  readonly steps: readonly string[]
  /** Something to paste as a whole. */
  readonly paste?: { readonly what: string; readonly text: string }
}

export type PlatformParts = {
  readonly log: Logger
  readonly clock: Clock
  readonly ids: Ids
  /** Credentials issued by the service at run time are added here, to be redacted too. */
  readonly secrets: Pick<Secrets, 'add' | 'forget'>
  readonly memory: PlatformMemory
}
