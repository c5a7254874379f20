import { createHash } from 'node:crypto'
import { type EventFilter, eventFilters } from '../fleet/event-record.ts'
import type { ListKeys } from './file.ts'
import * as rule from './rules.ts'
import type { Rule } from './rules.ts'

/** What is done with certain events of the fleet. */
export type HookSettings = {
  readonly on: readonly EventFilter[]
  readonly action: HookAction
  /** For a command or a webhook. */
  readonly timeoutMs: number
}

export type HookAction =
  | { readonly kind: 'command'; readonly command: string }
  | { readonly kind: 'webhook'; readonly url: string; readonly secret: string | undefined }
  | { readonly kind: 'conversation'; readonly platform: string; readonly conversationId: string }

/** Identifies a hook by what it does, so that it keeps its position wherever it is in the file, and whatever it is on. */
export const hookKey = ({ action }: Pick<HookSettings, 'action'>): string => {
  const what =
    action.kind === 'command'
      ? action.command
      : action.kind === 'webhook'
        ? action.url
        : `${action.platform}:${action.conversationId}`
  return createHash('sha256').update(`${action.kind}\n${what}`).digest('hex').slice(0, 32)
}

/** For people: without what may be secret, such as a webhook's path. `at`: its place in the file, from 0. */
export const hookLabel = ({ action }: Pick<HookSettings, 'action'>, at: number): string => {
  switch (action.kind) {
    case 'command':
      return `hook ${at + 1} (command)`
    case 'webhook':
      return `hook ${at + 1} (webhook to ${URL.parse(action.url)?.host ?? 'nowhere'})`
    case 'conversation':
      return `hook ${at + 1} (message to ${action.platform}:${action.conversationId})`
  }
}

/** A URL with a user name is refused by `fetch`. */
const webhookUrl: Rule<string> = {
  expected: 'an http or https URL, such as https://example.com/hook, without a user name or password',
  secret: true,
  read: (value) => {
    const url = typeof value === 'string' && value.length <= 2_000 ? URL.parse(value) : null
    const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
    return isUsable ? url.href : undefined
  },
}

const conversation: Rule<{ readonly platform: string; readonly conversationId: string }> = {
  expected: 'a conversation as platform:id, such as slack:C123:456',
  read: (value) => {
    const [, platform, conversationId] =
      typeof value === 'string' && value.length <= 540 ? (/^([a-z][a-z0-9-]*):(\S+)$/.exec(value) ?? []) : []
    return platform === undefined || conversationId === undefined ? undefined : { platform, conversationId }
  },
}

export const hookTable = {
  on: {
    default: ['needs-you'] as readonly EventFilter[],
    rule: rule.list(rule.oneOf(eventFilters), eventFilters.length),
    about: 'The events that it gets. `needs-you`: all events that need a person.',
  },
  command: {
    rule: rule.command,
    about:
      "A command to run with `sh -c` in Coppice's home directory. It gets the event as JSON on standard input and in variables such as `COPPICE_EVENT_TEXT`.",
  },
  webhook: { rule: webhookUrl, about: 'A URL to post the event to, as JSON.' },
  secret: {
    rule: { ...rule.text, secret: true },
    about: 'Signs what is posted to the webhook: `X-Coppice-Signature-256` is its HMAC with this key.',
  },
  conversation: { rule: conversation, about: 'A conversation to send a message to.' },
  timeout: {
    default: 30_000,
    rule: rule.duration(1_000, 600_000, '30s'),
    about: 'How long the command or the webhook may take.',
  },
} as const satisfies Record<
  string,
  { readonly default?: unknown; readonly rule: Rule<unknown>; readonly about: string }
>

/** `hooks` in `config.yaml`. */
export const hookKeys = (): ListKeys<readonly HookSettings[]> => ({
  most: 50,
  keys: new Map(Object.entries<{ readonly rule: Rule<unknown> }>(hookTable).map(([key, row]) => [key, row.rule])),
  finish: (entries) => {
    const hooks: HookSettings[] = []
    for (const [at, entry] of entries.entries()) {
      const read = hookOf(entry)
      if ('problem' in read) return { ...read, at: [at, read.key] }
      const twin = hooks.findIndex((one) => hookKey(one) === hookKey(read))
      if (twin !== -1) {
        const problem = `it does the same as hooks[${twin}]: list all events in the \`on\` of one of them`
        return { at: [at, read.action.kind], problem }
      }
      hooks.push(read)
    }
    return { value: hooks }
  },
})

const actions = ['command', 'webhook', 'conversation'] as const

const hookOf = (
  entry: ReadonlyMap<string, unknown>,
): HookSettings | { readonly key: string; readonly problem: string } => {
  const given = <K extends keyof typeof hookTable>(key: K): ReturnType<(typeof hookTable)[K]['rule']['read']> =>
    entry.get(key) as ReturnType<(typeof hookTable)[K]['rule']['read']>
  const [kind, more] = actions.filter((key) => entry.has(key))
  if (kind === undefined) return { key: 'on', problem: 'a hook needs a command, a webhook or a conversation' }
  if (more !== undefined) return { key: more, problem: `a hook has one action, not both a ${kind} and a ${more}` }
  if (entry.has('secret') && kind !== 'webhook') return { key: 'secret', problem: 'only a webhook has a secret' }
  if (entry.has('timeout') && kind === 'conversation') {
    return { key: 'timeout', problem: 'only a command or a webhook has a timeout' }
  }
  const [command, url, to] = [given('command'), given('webhook'), given('conversation')]
  const action: HookAction | undefined =
    command !== undefined
      ? { kind: 'command', command }
      : url !== undefined
        ? { kind: 'webhook', url, secret: given('secret') }
        : to && { kind: 'conversation', ...to }
  if (action === undefined) return { key: kind, problem: 'it must not be empty' }
  return {
    action,
    on: given('on') ?? hookTable.on.default,
    timeoutMs: given('timeout') ?? hookTable.timeout.default,
  }
}

/** Never read as a whole: each key of a hook has its own rule. */
export const anyHooks: Rule<readonly HookSettings[]> = { expected: 'a list of hooks', read: () => undefined }
