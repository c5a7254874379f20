import type { Codebase } from '../../domain/environment.ts'
import type { Landing, LandingPush } from '../../domain/fleet/landing.ts'
import { hasLanded, landingBase } from '../../isolation/codebases/landing/target.ts'
import type { FleetContext } from '../context.ts'
import { type BatchOutcome, confirmPush } from './batch.ts'
import { gatesDigest, runGates, unapprovedGates } from './gates.ts'
import { refuse } from './settle.ts'

/** Its pull request was merged: the gates run once on the result. Red: a person is told, and nothing is reverted. */
export const verifyMerged = async (
  context: FleetContext,
  codebase: Codebase,
  landing: Landing,
  signal?: AbortSignal,
): Promise<BatchOutcome> => {
  const { isolation } = context
  const { store, clock } = isolation
  const commit = landing.mergeCommit ?? landing.sha
  const base = await landingBase(isolation, codebase, landing.baseBranch, { signal })
  if ('blocked' in base) return { outcome: 'blocked', why: base.blocked }
  // The code host said so; only the branch itself proves it.
  if (!(await hasLanded(isolation, codebase, base.target, commit, { signal }))) {
    await refuse(context, landing, { why: { kind: 'merge-undone' } })
    return { outcome: 'worked' }
  }
  const unapproved = await unapprovedGates(context, codebase, base.config)
  if (unapproved !== undefined) return { outcome: 'blocked', why: { kind: 'not-approved', commands: unapproved } }
  const attempts = landing.attempts + 1
  if (!(await store.landings.move(landing.id, 'queued', 'testing', clock(), { attempts }))) {
    return { outcome: 'worked' }
  }
  const { branch } = base.target
  const run = { commit, base: { branch, sha: base.sha }, config: base.config, landing, signal }
  const { passed, gate } = await runGates(context, codebase, run)
  if (!passed && gate !== undefined) {
    const { command, log } = gate
    await refuse(context, { ...landing, state: 'testing' }, { why: { kind: 'gate-failed', command, log }, gate })
    return { outcome: 'worked' }
  }
  const merged: LandingPush = {
    base: branch,
    from: commit,
    to: commit,
    members: [{ id: landing.id, landedSha: commit }],
    gate,
    gates: gatesDigest(base.config),
  }
  await confirmPush(context, codebase, merged)
  return { outcome: 'worked' }
}
