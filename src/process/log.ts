import type { Clock } from '../domain/clock.ts'
import { HIDDEN } from './redaction/hide.ts'
import type { Redact } from './redaction/redact.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, unknown>>

/** Messages are static, so they can be counted and searched; variable data goes into fields. */
export type Logger = {
  readonly debug: (message: string, fields?: LogFields) => void
  readonly info: (message: string, fields?: LogFields) => void
  readonly warn: (message: string, fields?: LogFields) => void
  readonly error: (message: string, fields?: LogFields) => void
  readonly child: (fields: LogFields) => Logger
}

export type LoggerOptions = {
  readonly write: (line: string) => void
  readonly level: LogLevel
  readonly clock: Clock
  readonly redact: Redact
  readonly base?: LogFields
}

/** The only logger: one JSON object per line, every string redacted. Never throws: logging must not stop the work. */
export const createLogger = (options: LoggerOptions): Logger => {
  const { write, level, clock, redact, base = {} } = options
  const at = (lineLevel: LogLevel) => (message: string, fields?: LogFields) => {
    if (LEVELS.indexOf(lineLevel) < LEVELS.indexOf(level)) return
    try {
      const plain = plainValue({ ...base, ...fields }, redact, [])
      const head = { time: new Date(clock()).toISOString(), level: lineLevel, message: redact(message) }
      write(`${JSON.stringify({ ...head, ...(plain as object), ...head })}\n`)
    } catch {
      // A full disk or a throwing getter: continue without this line.
    }
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => createLogger({ ...options, base: { ...base, ...fields } }),
  }
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

const MAX_DEPTH = 8

/**
 * Fields with such names are hidden: a password has no pattern. Numbers stay (`tokens: 812` is a count).
 */
const SECRET_NAME = /authorization|cookie|password|passphrase|secret|token|api[_-]?key/i

/** Redacts each string rather than the finished line, so no pattern can break the JSON. */
const plainValue = (value: unknown, redact: Redact, ancestors: readonly unknown[]): unknown => {
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'bigint' || typeof value === 'symbol') return redact(String(value))
  if (typeof value === 'function') return '[function]'
  if (typeof value !== 'object' || value === null) return value
  if (ancestors.includes(value)) return '[circular]'
  if (ancestors.length >= MAX_DEPTH) return '[deep]'
  const inside = [...ancestors, value]
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString()
  if (value instanceof Error) return plainValue(errorFields(value), redact, inside)
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`
  if (value instanceof Map || value instanceof Set) return plainValue([...value], redact, inside)
  if (Array.isArray(value)) return value.map((item) => plainValue(item, redact, inside))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      redact(name),
      SECRET_NAME.test(name) && (typeof item === 'string' || typeof item === 'object')
        ? HIDDEN
        : plainValue(item, redact, inside),
    ]),
  )
}

/** message, stack and cause aren't enumerable, so JSON would show `{}`. */
const errorFields = (error: Error): Record<string, unknown> => ({
  ...Object.fromEntries(Object.entries(error)),
  name: error.name,
  message: error.message,
  stack: error.stack,
  ...(error.cause === undefined ? {} : { cause: error.cause }),
})
