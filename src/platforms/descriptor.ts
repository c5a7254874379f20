import type { Clock, Ids } from '../domain/clock.ts'
import type { PlatformCapabilities } from '../domain/platform-capabilities.ts'
import type { Rule } from '../domain/config/rules.ts'
import type { Logger } from '../process/log.ts'
import type { Secrets } from '../process/redaction/redact.ts'
import type { Check, CheckParts } from './checks.ts'
import type { Platform } from './platform.ts'

/**
 * All that the rest of the program knows of a platform that needs an account. The settings reader, redaction, the setup
 * guide, `coppice platforms` and the server read this, so that a new platform is a folder and a line in `remote.ts`.
 * Nothing here loads the platform's SDK: that happens in `make`.
 */
export type PlatformDescriptor<Table extends SettingTable> = {
  /** By key: `platforms.<name>.<key>` in config.yaml. */
  readonly settings: Table
  /** As its makers write it. */
  readonly title: string
  readonly guide: Guide
  readonly capabilities: PlatformCapabilities
  /** Whether somebody wants this platform: there is something by which it could be reached. */
  isConfigured(settings: ValuesOf<Table>): boolean
  /** Asks the service whether it accepts what is configured. Changes nothing there. */
  check(settings: ValuesOf<Table>, parts: CheckParts): Promise<readonly Check[]>
  /** Throws an AppError that names the first setting that is missing or wrong. */
  make(settings: ValuesOf<Table>, parts: PlatformParts): Promise<Platform>
}

export type SettingTable = Readonly<Record<string, PlatformSetting>>

export type PlatformSetting = {
  /** The environment variable, which wins over the file. */
  readonly variable: string
  /** A rule marked `secret` has its value hidden wherever text leaves the program. */
  readonly rule: Rule<unknown>
  /** One line for the setup guide and docs/configuration.md. */
  readonly about: string
}

/** Any of them may be missing. */
export type ValuesOf<Table extends SettingTable> = {
  readonly [Key in keyof Table]?: Table[Key] extends { readonly rule: Rule<infer Value> } ? Value : never
}

/** How to get from nothing to a first answer. */
export type Guide = {
  readonly steps: readonly string[]
  /** Something to paste, whole. */
  readonly paste?: { readonly what: string; readonly text: string }
}

export type PlatformParts = {
  readonly log: Logger
  readonly clock: Clock
  readonly ids: Ids
  /** Credentials that the service hands out while the platform runs are added here, to be hidden like the others. */
  readonly secrets: Pick<Secrets, 'add' | 'forget'>
}
