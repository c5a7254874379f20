import type { Kysely } from 'kysely'
import { codebaseStore } from './codebases.ts'
import { conversationStore } from './conversations/conversations.ts'
import type { Database, Engine } from './engine.ts'
import { environmentStore } from './environments/environments.ts'
import { type EventListeners, type EventRecording, eventStore, type NewEvent, numberEvents } from './events.ts'
import { fleetAgentStore } from './fleet/agents.ts'
import { fleetControlStore } from './fleet/control.ts'
import { formulaRunStore } from './fleet/formula-runs.ts'
import { hookStore } from './fleet/hooks.ts'
import { itemStore } from './fleet/items.ts'
import { landingStore } from './fleet/landings.ts'
import { patrolNoteStore } from './fleet/patrol-notes.ts'
import { gitSnapshotStore } from './git-snapshots.ts'
import { inboxStore } from './inbox/inbox.ts'
import { journalStore } from './journal.ts'
import { leaseStore } from './leases.ts'
import { mergeAnswerStore } from './merge-answers.ts'
import { mergedPullRequestStore } from './merged-pull-requests.ts'
import { outboxStore } from './conversations/outbox.ts'
import { platformMemoryStore } from './conversations/platform-memory.ts'
import { pageSessionStore } from './page-sessions.ts'
import { portStore } from './ports.ts'
import { restorePointStore } from './restore-points.ts'
import { runWatchStore } from './run-watches.ts'
import { sessionStore } from './conversations/sessions.ts'
import { spareStore } from './spares.ts'
import type { Store } from './store.ts'
import type { Tables } from './tables.ts'
import { usageStore } from './usage.ts'

type Ends = Pick<Database, 'close' | 'onLost'>

export const buildStore = (db: Kysely<Tables>, engine: Engine, ends: Ends): Store => {
  const listeners: EventListeners = new Set()
  const store: Store = assemble(db, engine, ends, {
    listeners,
    record: (event) => store.transaction((inside) => inside.events.record(event)),
  })
  return store
}

const assemble = (db: Kysely<Tables>, engine: Engine, ends: Ends, recording: EventRecording): Store => {
  const store: Store = {
    engine: engine.name,
    codebases: codebaseStore(db, engine),
    environments: environmentStore(db, engine),
    conversations: conversationStore(db, engine),
    sessions: sessionStore(db, engine),
    inbox: inboxStore(db, engine),
    outbox: outboxStore(db),
    restorePoints: restorePointStore(db),
    leases: leaseStore(db),
    journal: journalStore(db, engine),
    spares: spareStore(db),
    ports: portStore(db),
    mergeAnswers: mergeAnswerStore(db),
    mergedPullRequests: mergedPullRequestStore(db),
    events: eventStore(db, recording),
    usage: usageStore(db),
    runWatches: runWatchStore(db),
    gitSnapshots: gitSnapshotStore(db),
    pageSessions: pageSessionStore(db),
    platformMemory: platformMemoryStore(db),
    items: itemStore(db, engine),
    fleetAgents: fleetAgentStore(db, engine),
    formulaRuns: formulaRunStore(db),
    landings: landingStore(db),
    fleetControl: fleetControlStore(db, engine),
    patrolNotes: patrolNoteStore(db),
    hooks: hookStore(db),
    transaction: async (work) => {
      if (db.isTransaction) return work(store)
      const { listeners } = recording
      const recorded: NewEvent[] = []
      const record = async (event: NewEvent): Promise<void> => void recorded.push(event)
      const { answer, first } = await db.transaction().execute(async (transaction) => {
        const done = await work(assemble(transaction, engine, ends, { listeners, record }))
        return { answer: done, first: await numberEvents(transaction, recorded) }
      })
      if (first !== undefined) for (const listener of listeners) listener(first)
      return answer
    },
    onLost: (listener) => ends.onLost(listener),
    close: () => ends.close(),
  }
  return store
}
