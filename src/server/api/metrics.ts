import { createRoute, z } from '@hono/zod-openapi'
import type { ConversationsContext } from '../../conversations/context.ts'
import type { ServerDeps } from '../deps.ts'
import type { App } from '../server-env.ts'
import type { Sample } from '../metrics.ts'
import { failures } from '../routes.ts'

const route = createRoute({
  method: 'get',
  path: '/metrics',
  summary: 'Get Prometheus metrics',
  responses: { 200: { description: 'The metrics', content: { 'text/plain': { schema: z.string() } } }, ...failures },
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
  coppice_messages_accepted_total: 'Messages accepted.',
  coppice_messages_duplicate_total: 'Duplicate deliveries.',
  coppice_messages_handled_total: 'Messages processed, by outcome.',
  coppice_replies_sent_total: 'Replies delivered.',
  coppice_cleanup_removed_total: 'Environments removed by cleanup.',
  coppice_messages: 'Messages waiting or running.',
  coppice_replies: 'Replies waiting for delivery or refused.',
  coppice_environments: 'Live environments.',
  coppice_info: 'The version.',
  coppice_uptime_seconds: 'Seconds since the server started.',
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
