import { describe, expect, test } from 'vitest'
import { gateNames, refusals, type Answer, type GateAnswer, type GateName } from './gates.ts'

const answer = (gate: GateName, value: Answer): GateAnswer => ({ gate, answer: value })
const neverForced: readonly GateName[] = ['ours', 'no-mount', 'not-in-use', 'no-worktree-inside']

describe.each(gateNames)('the gate %s', (gate) => {
  test('lets a yes through', () => {
    expect(refusals([answer(gate, 'yes')], false)).toEqual([])
    expect(refusals([answer(gate, 'yes')], true)).toEqual([])
  })

  test('refuses a no without force', () => {
    expect(refusals([answer(gate, 'no')], false)).toEqual([answer(gate, 'no')])
  })

  test('refuses what it cannot tell, with force or without', () => {
    expect(refusals([answer(gate, 'cannot-tell')], false)).toHaveLength(1)
    expect(refusals([answer(gate, 'cannot-tell')], true)).toHaveLength(1)
  })

  test('gives way to --force unless it is about a live process, a mount or something that is not ours', () => {
    expect(refusals([answer(gate, 'no')], true)).toHaveLength(neverForced.includes(gate) ? 1 : 0)
  })
})

test('all reasons are listed, in the order of the gates', () => {
  const answers = gateNames.flatMap((gate) => [answer(gate, 'no'), answer(gate, 'cannot-tell'), answer(gate, 'yes')])
  expect(refusals(answers, false)).toHaveLength(gateNames.length * 2)
  expect(refusals(answers, true).map((a) => `${a.gate} ${a.answer}`)).toEqual([
    'ours no',
    'ours cannot-tell',
    'no-mount no',
    'no-mount cannot-tell',
    'not-in-use no',
    'not-in-use cannot-tell',
    'nobody-elses cannot-tell',
    'nothing-uncommitted cannot-tell',
    'nothing-unreachable cannot-tell',
    'no-worktree-inside no',
    'no-worktree-inside cannot-tell',
    'no-repository-inside cannot-tell',
    'no-kept-files cannot-tell',
  ])
})
