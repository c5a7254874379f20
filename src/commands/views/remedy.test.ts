import { expect, test } from 'vitest'
import { coppice, type Remedy, remedy, shell } from '../../domain/remedy.ts'
import { chatCommandText } from '../chat-table.ts'
import { remedySentence } from './remedy.ts'
import { asProgram } from './view.ts'

const chat = { commandText: chatCommandText, chat: true } as const

test.each<[Remedy, string, string]>([
  ['choose another name', 'Choose another name.', 'Choose another name.'],
  [
    remedy`run ${coppice('worktree list')} for a list`,
    'Run `coppice worktree list` for a list.',
    'Run `/worktree list` for a list.',
  ],
  // With a full stop it would be about another file; in a chat `__lib__` would be bold.
  [remedy`delete it: ${shell('rm __lib__')}`, 'Delete it: rm __lib__', 'Delete it: `rm __lib__` on the server.'],
  [remedy`${shell('umount /mnt')}`, 'umount /mnt', 'Ask whoever runs the server (its log has the command).'],
  [remedy`delete it: ${shell('rm "`x`"')}`, 'Delete it: rm "`x`"', 'Delete it: `` rm "`x`" `` on the server.'],
  // What a chat cannot do stays the command line's.
  [remedy`try ${coppice('doctor --fix')}`, 'Try `coppice doctor --fix`.', 'Try `coppice doctor --fix` on the server.'],
  [
    remedy`if it is done: ${shell('git -C /srv/app worktree unlock /srv/x')}`,
    'If it is done: git -C /srv/app worktree unlock /srv/x',
    'If it is done: ask whoever runs the server (its log has the command).',
  ],
  [
    remedy`run ${shell('codex login')} on the server`,
    'Run `codex login` on the server.',
    'Run `codex login` on the server.',
  ],
  [
    remedy`${remedy`wait ${2} days`}. ${remedy`Or remove it: ${coppice('worktree remove a')}`}`,
    'Wait 2 days. Or remove it: coppice worktree remove a',
    'Wait 2 days. Or remove it: `/worktree remove a`.',
  ],
])(
  'a command in a remedy is said as it is called here, ready to be pasted or as code: %j',
  (parts, terminal, inChat) => {
    expect(remedySentence(parts, asProgram)).toBe(terminal)
    expect(remedySentence(parts, chat)).toBe(inChat)
  },
)
