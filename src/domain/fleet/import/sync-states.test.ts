import { expect, test } from 'vitest'
import type { Phase, SourceSnapshot } from '../item.ts'
import { syncStep, type There } from './sync-states.ts'

/** `there/here` when they last agreed, `there/here` now, and what is done. */
const rules: readonly (readonly [string, string, string])[] = [
  ['ready/ready', 'ready/ready', 'nothing'],
  ['working/waiting', 'working/waiting', 'nothing'],
  // Only the item has changed.
  ['ready/ready', 'ready/working', 'push working'],
  ['working/working', 'working/waiting', 'push waiting'],
  ['waiting/waiting', 'waiting/ready', 'push ready'],
  ['working/waiting', 'working/ready', 'push ready'],
  ['working/working', 'working/done', 'push done'],
  // Only the issue has changed.
  ['ready/ready', 'done/ready', 'pull done'],
  ['waiting/waiting', 'done/waiting', 'pull done'],
  ['working/working', 'done/working', 'leave at-work'],
  ['ready/ready', 'waiting/ready', 'pull waiting'],
  ['ready/ready', 'working/ready', 'pull waiting'],
  ['waiting/waiting', 'working/waiting', 'agree'],
  ['working/working', 'ready/working', 'leave at-work'],
  ['waiting/waiting', 'ready/waiting', 'pull ready'],
  ['done/done', 'ready/done', 'leave final'],
  // Both have.
  ['ready/ready', 'working/working', 'agree'],
  ['ready/ready', 'done/done', 'agree'],
  ['ready/ready', 'working/done', 'push done'],
  ['ready/ready', 'done/waiting', 'pull done'],
  ['ready/ready', 'done/working', 'leave at-work'],
  ['ready/ready', 'working/waiting', 'agree'],
  ['ready/ready', 'waiting/working', 'push working'],
  ['working/working', 'ready/waiting', 'push waiting'],
  // Without a memory, whatever differs has changed on both sides.
  ['', 'ready/ready', 'agree'],
  ['', 'ready/working', 'push working'],
  ['', 'done/ready', 'pull done'],
  // An issue that is gone says nothing.
  ['ready/ready', 'gone/ready', 'leave gone'],
  ['ready/ready', 'gone/working', 'leave gone'],
  ['done/done', 'gone/done', 'nothing'],
  ['', 'gone/ready', 'leave gone'],
]

const pair = (text: string): readonly [There, Phase] => text.split('/') as [There, Phase]

test.each(rules)('%s, then %s: %s', (before, now, expected) => {
  const known: SourceSnapshot['phases'] =
    before === '' ? undefined : { there: pair(before)[0] as Phase, here: pair(before)[1] }
  const step = syncStep(...pair(now), known)
  const detail = 'to' in step ? step.to : 'why' in step ? step.why : undefined
  expect([step.kind, ...(detail === undefined ? [] : [detail])].join(' ')).toBe(expected)
})
