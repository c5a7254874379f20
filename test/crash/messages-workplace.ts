import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Workplace } from '../../src/commands/command.ts'
import { type Delivery, DeliveryError } from '../../src/conversations/outbox/delivery.ts'
import type { Settings } from '../../src/domain/config/settings.ts'
import type { IncomingMessage } from '../../src/domain/message.ts'
import type { IsolationContext } from '../../src/isolation/context.ts'
import { createEnvironments } from '../../src/isolation/environments.ts'
import { createEngine, type Engine } from '../../src/main/engine.ts'
import { reconcileAll } from '../../src/main/reconcile-all.ts'
import type { Sandbox } from '../helpers/repo.ts'
import { noFleet } from '../helpers/no-fleet.ts'

/** Where the double of the platform listens, and how long a message it takes. */
export type DoubleAddress = { readonly url: string; readonly limit: number }

/** All that happens when a server starts, with the double as its only platform. */
export const startEngine = async (context: IsolationContext, double: DoubleAddress): Promise<Engine> => {
  const engine = engineOf(context, double)
  await reconcileAll(context)
  await engine.conversations.start()
  return engine
}

export const engineOf = (context: IsolationContext, double: DoubleAddress): Engine => {
  const provider = createEnvironments(context)
  const workplace: Workplace = {
    context,
    environments: async () => provider,
    fleet: noFleet,
    keepSpares: () => undefined,
    platforms: async () => new Map([['double', { reach: 'server', persistent: false }]]),
    databaseName: 'the database of a test',
  }
  const delivery = deliveryTo(double)
  return createEngine(workplace, { deliveries: new Map([['double', delivery]]) })
}

const deliveryTo = ({ url, limit }: DoubleAddress): Delivery => ({
  platform: 'double',
  limit,
  send: async (message) => {
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify(message) })
    await answer.text()
    if (!answer.ok) throw new DeliveryError('unreachable', `the double answered ${answer.status}`)
  },
})

export const agentSettings = (box: Pick<Sandbox, 'path'>): Partial<Settings> => ({
  agentDefault: 'command',
  agentCommand: `sh '${box.path('agent.sh')}'`,
})

/**
 * The agent: commits in its tree and says so in a log outside of it. Whoever started it or was started by it holds a
 * lock of the tree, so that two at once are seen. A first try of `slow` stays, with a grandchild in a session of its own.
 */
export const writeAgent = (box: Pick<Sandbox, 'path'>): void => {
  const log = box.path('agent.log')
  const file = box.path('agent.sh')
  writeFileSync(
    file,
    `
exec 9>"${box.path('tree-')}$(basename "$COPPICE_DIR")"
flock -n 9 || echo "overlap $COPPICE_MESSAGE $COPPICE_ATTEMPT" >> '${log}'
text=$(cat)
knows=no
grep -q "this is attempt $COPPICE_ATTEMPT" "$COPPICE_CONTEXT" && knows=yes
echo "start $COPPICE_MESSAGE $COPPICE_ATTEMPT $knows" >> '${log}'
case "$text $COPPICE_ATTEMPT" in 'slow 1')
  setsid sleep 300 &
  echo $! > '${box.path('grandchild')}'
  touch '${box.path('agent-runs')}'
  wait
esac
echo "$text, attempt $COPPICE_ATTEMPT" >> "note-$COPPICE_MESSAGE"
git add "note-$COPPICE_MESSAGE" && git commit -q -m "message $COPPICE_MESSAGE" || exit 1
echo "end $COPPICE_MESSAGE $COPPICE_ATTEMPT" >> '${log}'
echo "Did: $text"
echo "${'A line that makes the reply longer than one message of the platform may be. '.repeat(3)}"
`,
  )
  chmodSync(file, 0o755)
}

export type AgentLine = {
  readonly what: string
  readonly id: string
  readonly attempt: number
  readonly knows: string | undefined
}

export const agentLog = (box: Pick<Sandbox, 'path'>): AgentLine[] => {
  const file = box.path('agent.log')
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.map((line) => {
    const [what = '', id = '', attempt = '', knows] = line.split(' ')
    return { what, id, attempt: Number(attempt), knows }
  })
}

export const message = (conversationId: string, text: string, kind: 'message' | 'closed' = 'message') =>
  ({
    platform: 'double',
    conversationId,
    deliveryId: `${conversationId}/${kind}/${text}`,
    kind,
    text,
    details: {},
  }) satisfies IncomingMessage

/** Nothing waits, nothing runs, nothing is to be delivered. Looks until that is so, also at a store that is away. */
export const untilQuiet = async ({ store, host }: Pick<IsolationContext, 'store' | 'host'>): Promise<void> => {
  const deadline = Date.now() + 60_000
  const look = async (): Promise<string> => {
    const { waiting, running } = await store.inbox.counts()
    const replies = await store.outbox.counts()
    const leases = await store.leases.all(host)
    const busy = waiting + running + replies.waiting + leases.length
    return busy === 0 ? '' : JSON.stringify({ waiting, running, replies, leases })
  }
  for (;;) {
    const left = await look().catch(String)
    if (left === '') return
    if (Date.now() > deadline) throw new Error(`it does not come to rest: ${left}`)
    await delay(20)
  }
}
