import { createRoute, z } from '@hono/zod-openapi'
import type { Changes } from '../conversations/changes.ts'
import type { ConversationsContext } from '../conversations/context.ts'
import type { Conversations } from '../conversations/conversations.ts'
import type { App, ServerDeps } from './deps.ts'
import { failures } from './routes.ts'

/** What has been counted since the start of the process. */
export type Metrics = {
  /** The same door, with what goes through it counted: the one that every platform gets. */
  counting(accept: Conversations['accept']): Conversations['accept']
  /** A message was worked on and how that ended. */
  handled(outcome: string): void
  counters(): readonly Sample[]
}

type Sample = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number }

export const createMetrics = (changes: Changes): Metrics => {
  const samples = new Map<string, { -readonly [K in keyof Sample]: Sample[K] }>()
  const count = (name: string, labels: Readonly<Record<string, string>>, by = 1): void => {
    const key = `${name} ${JSON.stringify(labels)}`
    const known = samples.get(key)
    if (known === undefined) samples.set(key, { name, labels, value: by })
    else known.value += by
  }
  changes.subscribe((change) => {
    if (change.type === 'reply') count('coppice_replies_sent_total', { platform: change.platform, role: change.role })
    if (change.type === 'cleanup') count('coppice_cleanup_removed_total', {}, change.removed)
  })
  return {
    counting: (accept) => async (message) => {
      const answer = await accept(message)
      count(`coppice_messages_${answer.outcome}_total`, { platform: message.platform })
      return answer
    },
    handled: (outcome) => count('coppice_messages_handled_total', { outcome }),
    counters: () => [...samples.values()],
  }
}

const route = createRoute({
  method: 'get',
  path: '/metrics',
  summary: 'Counters and gauges for Prometheus',
  responses: { 200: { description: 'Text', content: { 'text/plain': { schema: z.string() } } }, ...failures },
})

export const addMetrics = (app: App, { context, version, metrics }: ServerDeps): void => {
  app.openapi(route, async (c) => {
    const samples = [...metrics.counters(), ...(await gauges(context)), ...processGauges(version)]
    return c.text(exposition(samples), 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' })
  })
}

const gauges = async ({ isolation: { store, host } }: ConversationsContext): Promise<Sample[]> => {
  const [messages, replies, codebases] = await Promise.all([
    store.inbox.counts(),
    store.outbox.counts(),
    store.codebases.list(host),
  ])
  const states = (name: string, counts: Readonly<Record<string, number>>): Sample[] =>
    Object.entries(counts).map(([state, value]) => ({ name, labels: { state }, value }))
  const samples = [...states('coppice_messages', messages), ...states('coppice_replies', replies)]
  for (const { id, name: codebase } of codebases) {
    const live = Map.groupBy(await store.environments.live(id), ({ status }) => status)
    for (const [status, { length }] of live) {
      samples.push({ name: 'coppice_environments', labels: { codebase, status }, value: length })
    }
  }
  return samples
}

const processGauges = (version: string): Sample[] => [
  { name: 'coppice_info', labels: { version }, value: 1 },
  { name: 'coppice_uptime_seconds', labels: {}, value: Math.round(process.uptime()) },
  { name: 'process_resident_memory_bytes', labels: {}, value: process.memoryUsage.rss() },
  { name: 'nodejs_heap_size_used_bytes', labels: {}, value: process.memoryUsage().heapUsed },
]

const help: Readonly<Record<string, string>> = {
  coppice_messages_accepted_total: 'Messages that were accepted.',
  coppice_messages_duplicate_total: 'Deliveries that were known already.',
  coppice_messages_handled_total: 'Messages that were worked on, by how that ended.',
  coppice_replies_sent_total: 'Replies that were delivered.',
  coppice_cleanup_removed_total: 'Environments that cleanup removed.',
  coppice_messages: 'Messages that wait or are worked on.',
  coppice_replies: 'Replies that wait for delivery or were refused.',
  coppice_environments: 'Live environments.',
  coppice_info: 'The version.',
  coppice_uptime_seconds: 'Seconds since the start.',
  process_resident_memory_bytes: 'Resident memory.',
  nodejs_heap_size_used_bytes: 'Used heap.',
}

const exposition = (samples: readonly Sample[]): string =>
  [...Map.groupBy(samples, ({ name }) => name)]
    .map(([name, group]) =>
      [
        `# HELP ${name} ${help[name] ?? name}`,
        `# TYPE ${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}`,
        ...group.map(({ labels, value }) => `${name}${labelText(labels)} ${value}`),
        '',
      ].join('\n'),
    )
    .join('')

const labelText = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
