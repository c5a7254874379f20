import type { Transaction } from 'kysely'
import type { Engine } from '../engine.ts'
import type { Tables } from '../tables.ts'
import * as ground from './0001-ground.ts'
import * as conversations from './0002-conversations.ts'
import * as usage from './0003-usage.ts'
import * as mergeAnswers from './0004-merge-answers.ts'
import * as repositoryInode from './0005-repository-inode.ts'
import * as pageSessions from './0006-page-sessions.ts'
import * as runWatches from './0007-run-watches.ts'
import * as trust from './0008-trust.ts'
import * as formerCodebase from './0009-former-codebase.ts'
import * as watchedTime from './0010-watched-time.ts'
import * as vouchedCommit from './0011-vouched-commit.ts'
import * as vouchedLog from './0012-vouched-log.ts'
import * as mergedPullRequests from './0013-merged-pull-requests.ts'
import * as sharing from './0014-sharing.ts'
import * as imported from './0015-imported.ts'
import * as platformMemory from './0016-platform-memory.ts'
import * as readConfig from './0017-read-config.ts'
import * as fleet from './0019-fleet.ts'
import * as patrol from './0020-patrol.ts'
import * as landing from './0021-landing.ts'
import * as fleetEvents from './0022-fleet-events.ts'
import * as snapshotsOfEnvironments from './0018-snapshots-of-environments.ts'

export type Migration = {
  readonly number: number
  readonly name: string
  readonly up: (transaction: Transaction<Tables>, engine: Engine) => Promise<void>
}

/** In order, numbered without gaps; a released one is never edited. */
export const migrations: readonly Migration[] = [
  { number: 1, name: 'ground', up: ground.up },
  { number: 2, name: 'conversations', up: conversations.up },
  { number: 3, name: 'usage', up: usage.up },
  { number: 4, name: 'merge-answers', up: mergeAnswers.up },
  { number: 5, name: 'repository-inode', up: repositoryInode.up },
  { number: 6, name: 'page-sessions', up: pageSessions.up },
  { number: 7, name: 'run-watches', up: runWatches.up },
  { number: 8, name: 'trust', up: trust.up },
  { number: 9, name: 'former-codebase', up: formerCodebase.up },
  { number: 10, name: 'watched-time', up: watchedTime.up },
  { number: 11, name: 'vouched-commit', up: vouchedCommit.up },
  { number: 12, name: 'vouched-log', up: vouchedLog.up },
  { number: 13, name: 'merged-pull-requests', up: mergedPullRequests.up },
  { number: 14, name: 'sharing', up: sharing.up },
  { number: 15, name: 'imported', up: imported.up },
  { number: 16, name: 'platform-memory', up: platformMemory.up },
  { number: 17, name: 'read-config', up: readConfig.up },
  { number: 18, name: 'snapshots-of-environments', up: snapshotsOfEnvironments.up },
  { number: 19, name: 'fleet', up: fleet.up },
  { number: 20, name: 'patrol', up: patrol.up },
  { number: 21, name: 'landing', up: landing.up },
  { number: 22, name: 'fleet-events', up: fleetEvents.up },
]
