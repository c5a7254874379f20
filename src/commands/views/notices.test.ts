import { expect, test } from 'vitest'
import { readRemovalData } from '../../domain/journal-data.ts'
import { toBranchName, toEnvironmentId } from '../../domain/names.ts'
import type { Notice } from '../../domain/notice.ts'
import { chatCommandText } from '../chat-table.ts'
import { describeBranchOutcome, describeRemovalReason } from './merged.ts'
import { describeNotice } from './notices.ts'
import { asProgram } from './view.ts'

const chat = { commandText: chatCommandText, chat: true } as const
const branch = toBranchName('a_b')

test.each<[Notice, string, string]>([
  [
    { kind: 'related', environmentId: toEnvironmentId('e'), branch, by: { kind: 'commits', number: '42' } },
    'Commits on `a_b` mention #42: `coppice worktree link a_b --conversation <platform:id>` to share it',
    'Commits on `a_b` mention #42: `/worktree link a_b` to share it',
  ],
  [
    { kind: 'recovered', operation: 'create', name: 'a_b', saved: '0_1' },
    'recovered from an interrupted create a_b (its changes are saved: coppice worktree restore 0_1)',
    'recovered from an interrupted create a_b (its changes are saved: `/worktree restore 0_1`)',
  ],
  // Nobody can do that from a chat: it is said as the command line's.
  [
    { kind: 'adopted-untrusted', branch },
    'It is treated like a fork. If you trust it: coppice worktree trust a_b',
    'It is treated like a fork. If you trust it, run on the server: `coppice worktree trust a_b`',
  ],
  [
    { kind: 'submodule-not-fetched', path: 'lib', why: { kind: 'repository-there' } },
    'Submodule lib was not fetched: its repository is still there. Check it out yourself: git submodule update',
    'Submodule lib was not fetched: its repository is still there. Tell the agent to run `git submodule update`.',
  ],
])('a command in a notice is said as it is called here, and is code in a chat: %j', (notice, terminal, inChat) => {
  expect(describeNotice(notice, asProgram)).toBe(terminal)
  expect(describeNotice(notice, chat)).toBe(inChat)
})

test('what an earlier version wrote down in words about a removal is told in those words', () => {
  const data = {
    was: 'active',
    branchGoes: false,
    note: '2 commits not on main',
    why: 'by slack:C1',
    trigger: 'command',
  }
  const { note, why } = readRemovalData({ id: '1', kind: 'remove', data })
  expect(describeBranchOutcome({ deleted: false, note })).toBe('branch kept: 2 commits not on main')
  expect(describeRemovalReason(why)).toBe('by slack:C1')
  const unknown = { ...data, note: { kind: 'from the future' } }
  expect(() => readRemovalData({ id: '1', kind: 'remove', data: unknown })).toThrow('unreadable')
})
