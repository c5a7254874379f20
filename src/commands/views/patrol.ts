import { counted, withFullStop } from '../../domain/text/words.ts'
import type { Finding } from '../../fleet/patrol/row.ts'
import { describeParkReason } from './items.ts'

/** A sentence. One that begins with an agent's name keeps that as it is. */
export const describeFinding = (finding: Finding, now: number): string => withFullStop(clauseFor(finding, now))

const clauseFor = (finding: Finding, now: number): string => {
  const { agent = 'an agent', item } = finding
  const its = item === undefined ? '' : ` (item ${item})`
  switch (finding.did) {
    case 'start-recovered':
      return `The start of ${agent}${its} was interrupted, and was completed or undone`
    case 'stop-recovered':
      return `The stop of ${agent}${its} was interrupted, and was completed or cancelled`
    case 'crashed':
      return `${agent}${its} crashed${how(finding.row)}`
    case 'stopped':
      return `${agent}${its} crashed while its pool was shrinking; its worktree and item were kept`
    case 'restarted':
      return `${agent}${its} was started again in its worktree (restart ${finding.restarts})`
    case 'parked':
      return `Item ${item ?? ''} was parked: ${describeParkReason(finding.reason)}`
    case 'finished':
      return finding.outcome === 'refused'
        ? `An interrupted \`coppice done\` of ${agent}${its} had no effect yet, so ${agent} has to run it again`
        : `An interrupted \`coppice done\` of ${agent}${its} was completed`
    case 'nudged':
      return `${agent}${its} has shown no sign of life for ${minutes(finding.since, now)}, and was asked to continue`
    case 'stuck':
      return `${agent}${its} is stuck: no sign of life for ${minutes(finding.since, now)}`
    case 'revived':
      return `${agent}${its} shows signs of life again`
    case 'told':
      return `${finding.supervisor} was asked to deal with ${agent}${its}`
    case 'paused':
      return `${counted(finding.agents.length, 'agent')} died at once (${finding.agents.join(', ')}), so no more are started until \`coppice fleet up\``
    case 'unhooked':
      return `Item ${item ?? ''} is open again: its agent and worktree are gone`
    case 'removed':
      return `${agent} had no item, and was removed with its worktree`
    case 'ended':
      return `A session of ${agent} without an agent or worktree was ended`
    case 'reclaimed':
      return `The name ${agent} is free again: files of an agent that is gone were deleted`
  }
}

const minutes = (since: number, now: number): string => counted(Math.round((now - since) / 60_000), 'minute')

const how = (row: string): string => {
  if (row === 'zombie') return ', and its session was ended'
  return row === 'outlived-session' ? ', and what had survived of it was ended' : ''
}
