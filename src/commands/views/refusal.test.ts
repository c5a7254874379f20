import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cannotTell, type GateAnswer, no } from '../../domain/removal/gates.ts'
import type { IsolatedEnvironment } from '../../domain/environment.ts'
import { type Refusal, refusalText } from './refusal.ts'
import type { Fact } from '../../domain/removal/reason.ts'
import { chatCommandText } from '../chat-table.ts'
import type { View } from './view.ts'

const issue = { branch: 'issue-42', path: '/trees/app/issue-42' } as IsolatedEnvironment
const view = {
  paint: (_style: string, text: string) => text,
  now: 0,
  userHome: undefined,
  commandText: (words: string) => `coppice ${words}`,
  columns: undefined,
}
const say = (...reasons: GateAnswer[]): string => sayOf(issue, reasons, view)
const sayOf = (
  environment: IsolatedEnvironment,
  reasons: GateAnswer[],
  shown: View,
  more: Partial<Refusal> = {},
): string =>
  refusalText(
    {
      outcome: 'refused',
      environment,
      reasons,
      forced: false,
      restoreDays: 30,
      hold: { days: 14, mergedHours: 1 },
      codebase: 'app',
      checkoutPath: '/app',
      repoPath: '/app/.git',
      push: undefined,
      ...more,
    },
    shown,
  )

test('a mount is to be unmounted, and force is not offered', () => {
  const fact = {
    kind: 'mount',
    path: '/trees/app/issue-42/my data',
    name: 'my data',
    what: 'bind mount of /data',
  } as const
  expect(say(no('no-mount', fact))).toBe(
    [
      'Cannot remove worktree `issue-42`: something is mounted inside it: my data (bind mount of /data).',
      " 1. Unmount it:  umount '/trees/app/issue-42/my data'",
    ].join('\n'),
  )
})

test('an agent at work is to be stopped, and its item closed: its processes are not named one by one', () => {
  const reasons = [
    no('not-in-use', { kind: 'lease', purpose: "the fleet's agent ash", pid: 7 }),
    no('not-in-use', { kind: 'agent', name: 'ash' }),
    no('not-in-use', { kind: 'process', pid: 8, command: 'claude' }),
    no('nobody-elses', { kind: 'item', id: 11 }),
  ]
  expect(say(...reasons)).toBe(
    [
      "Cannot remove worktree `issue-42`: the fleet's agent ash is working in it, process 8 (claude) is inside it, item 11 needs it until it is landed or closed.",
      ' 1. Stop the agent:  coppice fleet down ash',
      ' 2. Close the item:  coppice item close 11',
    ].join('\n'),
  )
  expect(say(no('nobody-elses', { kind: 'crew', name: 'rust' }))).toContain(
    ' 1. Remove the crew member:  coppice crew remove rust',
  )
})

test('a worktree inside is to be removed or moved by the repository it belongs to, and force is not offered', () => {
  const name = '.claude/worktrees/a'
  const path = `/trees/app/issue-42/${name}`
  const reason = no('no-worktree-inside', { kind: 'worktree-inside', path, name, repository: '/other/.git' })
  expect(say(reason).split('\n').slice(1)).toEqual([
    ` 1. Remove that worktree:  first copy out the ignored files you need (git deletes them too), then: git -C /other/.git worktree remove ${path}`,
    ` 2. Move it out:           git -C /other/.git worktree move ${path} <path>`,
  ])
})

test('a repository inside can be moved out, or removed by force and restored', () => {
  const name = 'node_modules/lib'
  const path = `/trees/app/issue-42/${name}`
  const reason = no('no-repository-inside', {
    kind: 'repository-inside',
    path,
    name,
    work: { kind: 'commits', count: 1 },
  })
  expect(say(reason).split('\n')).toEqual([
    'Cannot remove worktree `issue-42`: it contains a repository: node_modules/lib (1 commit on no remote).',
    ' 1. Keep the repository:  push its commits, or move it out: mv /trees/app/issue-42/node_modules/lib <path>',
    ' 2. Remove it anyway:     coppice worktree remove issue-42 --force   (kept for 30 days: coppice worktree restore issue-42)',
  ])
})

describe('in a chat, whose readers have no shell on the server', () => {
  const chat = { ...view, commandText: chatCommandText, chat: true } as const
  const path = '/trees/app/issue-42/x'
  const git = { gitDir: '/app/.git/modules/lib', remote: 'origin', tracksPushes: true, filesAreGone: false }
  const server =
    'Ask whoever runs the server:  `coppice worktree remove issue-42 --codebase app` there lists the commands'
  const agent = (what: string): string => `\`/worktree link issue-42\`, then tell the agent to ${what}`
  const rows: [Fact, string][] = [
    [{ kind: 'changed', count: 2 }, `Commit:            ${agent('commit its work')}`],
    [{ kind: 'untracked', count: 1 }, `Discard changes:   ${agent('discard its changes')}`],
    [
      { kind: 'hidden', paths: ['a'] },
      `Show the changes to git:  ${agent('clear assume-unchanged and skip-worktree')}`,
    ],
    [{ kind: 'operation', operation: 'rebase' }, `Abort the rebase:  ${agent('abort or finish it')}`],
    [
      { kind: 'submodule', path: '__lib__', problem: 'has files but no .git' },
      `Move the submodule's files out:  ${agent('move them to another directory')}`,
    ],
    [{ kind: 'submodule', path: 'lib', problem: 'has changes' }, 'Commit in the submodule:  '],
    [{ kind: 'submodule', path: 'lib', problem: 'is at another commit' }, 'Commit:            '],
    [
      { kind: 'submodule-commits', submodule: git, tips: [{ at: 'head' }], hasMoreTips: false } as unknown as Fact,
      `Push the submodule's commits:  ${agent('push them')}`,
    ],
    [{ kind: 'mount', path, name: 'x', what: 'tmpfs' }, server],
    [{ kind: 'worktree-inside', path, name: 'x', repository: '/other/.git' }, server],
    [{ kind: 'repository-inside', path, name: 'x', work: { kind: 'commits', count: 1 } }, server],
    [{ kind: 'process', pid: 12, command: 'vim' }, server],
    [{ kind: 'lock', reason: 'by hand' }, server],
    [{ kind: 'you' }, server],
    [{ kind: 'kept-file', path: '.env' }, server],
    [{ kind: 'unknown', why: 'no answer' }, 'Find out more:  `coppice doctor` on the server'],
  ]

  test.each(rows)('no command needs one: %j', (fact, expected) => {
    const gate = fact.kind === 'unknown' ? cannotTell('nothing-uncommitted', fact) : no('nothing-uncommitted', fact)
    const [, ...ways] = sayOf(issue, [gate], chat).split('\n')
    expect(ways.join('\n')).toContain(expected)
    expect(ways.join('\n')).not.toMatch(/git |\/trees|\/app|umount|mv |cd |kill|ps -/)
  })

  test('only what is to be typed is code, so that it can be copied', () => {
    const [, ...ways] = sayOf(issue, [no('nothing-uncommitted', { kind: 'untracked', count: 1 })], chat).split('\n')
    expect(ways.at(-1)).toBe(
      ' 3. Remove it anyway:  `/worktree remove issue-42 --force`   (kept for 30 days: `/worktree restore issue-42`)',
    )
  })

  test("the conversation's own worktree needs no link, and its agent no shell to be stopped", () => {
    const reasons = [
      no('nothing-uncommitted', { kind: 'changed', count: 1 }),
      no('not-in-use', { kind: 'process', pid: 12, command: 'vim' }),
    ]
    const [, ...ways] = sayOf(issue, reasons, chat, { isCurrent: true, push: 'push' }).split('\n')
    expect(ways).toEqual([
      ' 1. Stop the process:             `/stop`, if the agent started it',
      ' 2. Commit and push:              tell the agent to commit and push its work',
      ' 3. Discard changes:              tell the agent to discard its changes',
      ` 4. ${server}`,
    ])
  })
})

describe('the way to discard the changes of a submodule', () => {
  let dir = ''
  const shell = (command: string, cwd: string): void =>
    void execFileSync('bash', ['-c', command], { cwd, env: { PATH: process.env['PATH'], HOME: dir }, stdio: 'pipe' })
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'coppice-refusal-'))
    const who = '-c user.name=t -c user.email=t@example.org'
    shell(`git init -q a && cd a && echo one > f && git add f && git ${who} commit -q -m f && echo two > f`, dir)
  })
  afterAll(() => rmSync(dir, { recursive: true }))

  /** A worktree and a submodule in it, both with a change; beside it, what another reading of its name leads to. */
  const pasted = (name: string | Buffer, decoy: string): { discarded: string; kept: string; names: string[] } => {
    const path = join(mkdtempSync(join(dir, 'x-')), 'tree')
    const inTree = (below: string): Buffer =>
      Buffer.concat([Buffer.from(`${path}/`), Buffer.from(name), Buffer.from(below)])
    cpSync(join(dir, 'a'), path, { recursive: true })
    mkdirSync(join(path, decoy))
    cpSync(join(dir, 'a'), join(path, 'module'), { recursive: true })
    renameSync(join(path, 'module'), inTree(''))
    const fact = { kind: 'submodule', path: name.toString(), problem: 'has changes' } as const
    const lines = sayOf({ ...issue, path }, [no('nothing-uncommitted', fact)], view).split('\n')
    const [how = ''] = lines.flatMap((line) => /^ \d\. Discard the submodule's changes: +(.+)$/.exec(line)?.[1] ?? [])
    expect(how).toMatch(/^git -C .* reset --hard && git -C .* clean -fd$/)
    try {
      shell(how, join(path, '..'))
    } catch {
      // The files tell.
    }
    const read = (file: Buffer | string): string => readFileSync(file, 'utf8')
    return { discarded: read(inTree('/f')), kept: read(join(path, 'f')), names: readdirSync(join(path, '..')) }
  }

  test.each([
    ['lib\tx', 'lib x'],
    ['lib\nx', 'lib x'],
    ['lib\u00a0x', 'lib x'],
    ['lib\u3000x', 'lib x'],
    ['lib\u0007x', 'lib?x'],
    ["lib\n 1. Discard the submodule's changes:  touch pwned", 'lib'],
    ["it's", 'its'],
    ['$(touch pwned)', 'pwned'],
    ['`touch pwned`', 'pwned'],
    [String.raw`a\'; touch pwned; '`, 'a'],
    ['-x', 'x'],
    ['a!b', 'a'],
  ])('acts on %j and on nothing else', (name, decoy) => {
    expect(pasted(name, decoy)).toEqual({ discarded: 'one\n', kept: 'two\n', names: ['tree'] })
  })

  test('does nothing where the name is not UTF-8', () => {
    const name = Buffer.from([0x61, 0xff])
    expect(pasted(name, 'a\ufffd')).toEqual({ discarded: 'two\n', kept: 'two\n', names: ['tree'] })
  })
})
