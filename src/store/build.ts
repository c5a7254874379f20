import type { Kysely } from 'kysely'
import { codebaseStore } from './codebases.ts'
import { conversationStore } from './conversations/conversations.ts'
import type { Database, Engine } from './engine.ts'
import { environmentStore } from './environments/environments.ts'
import { eventStore } from './events.ts'
import { fleetAgentStore } from './fleet/agents.ts'
import { fleetControlStore } from './fleet/control.ts'
import { formulaRunStore } from './fleet/formula-runs.ts'
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

export const buildStore = (db: Kysely<Tables>, engine: Engine, ends: Pick<Database, 'close' | 'onLost'>): Store => {
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
    events: eventStore(db),
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
    transaction: (work) =>
      db.isTransaction
        ? work(store)
        : db.transaction().execute((transaction) => work(buildStore(transaction, engine, ends))),
    onLost: (listener) => ends.onLost(listener),
    close: () => ends.close(),
  }
  return store
}
